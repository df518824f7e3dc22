"""What can go wrong for a user: one class per exit code.  Nothing here prints or exits."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The process exit codes, as documented in the README."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    ENVIRONMENT = 3
    CELL_FAILED = 4
    STORE = 5
    INCONCLUSIVE = 6
    REFUSED = 7
    BUG = 70
    INTERRUPTED = 130


class KvbenchError(Exception):
    """A failure that a user can act on.

    Args:
        message: one sentence that says what happened.
        where: the file, key or device concerned, shown before the message.
        hint: what to do next, shown after it.
    """

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(KvbenchError):
    """A wrong argument, or a file from the user that cannot be used."""

    exit_code = ExitCode.USAGE


class EnvironmentMissing(KvbenchError):
    """The machine lacks something: fio, io_uring, a permission."""

    exit_code = ExitCode.ENVIRONMENT


class CellFailed(KvbenchError):
    """fio did not do what a cell asked for."""

    exit_code = ExitCode.CELL_FAILED


class StoreError(KvbenchError):
    """The results store cannot be written or read."""

    exit_code = ExitCode.STORE


class NotComparable(KvbenchError):
    """Two things that were to be compared are not what was to be compared."""

    exit_code = ExitCode.INCONCLUSIVE


class Refused(KvbenchError):
    """The guard will not touch the target."""

    exit_code = ExitCode.REFUSED


class Interrupted(KvbenchError):
    """The user stopped kvbench; what was measured is kept."""

    exit_code = ExitCode.INTERRUPTED
