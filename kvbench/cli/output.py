"""What the verbs share in printing: one JSON document on stdout, advice on stderr."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import msgspec

from kvbench.errors import ExitCode


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document on stdout and nothing else"
    )


def named_path(text: str) -> Path:
    """Return a path argument, which must have a name."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    if text == "-":
        raise argparse.ArgumentTypeError("a name is needed: standard output is for --json and text")
    return Path(text)


def print_answer(text: str) -> None:
    """Print an answer whose exit code must hold even when its reader has gone."""
    try:
        print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()


def try_print(text: str) -> OSError | None:
    """Print an answer; return why it could not be printed, and then nothing more is tried."""
    try:
        print(text)
        sys.stdout.flush()
    except OSError as error:
        forget_stdout()
        return error
    return None


def code_after(code: ExitCode, failed: OSError | None) -> ExitCode:
    """Return the code of a run, which also holds where its reader has gone: a pipe or a terminal.

    A summary that is lost on the way, as on a full disk, is no success; the run's own trouble wins.
    """
    gone = failed is None or failed.errno in (errno.EPIPE, errno.EIO)
    return code if gone or code != ExitCode.OK else ExitCode.ENVIRONMENT


def forget_stdout() -> None:
    """Drop what stdout still holds, or Python would fail on it once more while it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:  # noqa: ANN401 - any record that msgspec can encode
    """Print ``value`` as one indented JSON document."""
    print_answer(json_text(value))


def json_text(value: Any) -> str:  # noqa: ANN401 - any record that msgspec can encode
    """Return ``value`` as one indented JSON document."""
    encoded = msgspec.json.encode(value, enc_hook=_plain, order="deterministic")
    return msgspec.json.format(encoded, indent=2).decode()


def advise(text: str) -> None:
    """Print advice to stderr, as one line of visible characters."""
    print(f"kvbench: {printable(text)}", file=sys.stderr)


def advise_at_once(text: str) -> None:
    """Print advice to stderr past Python's buffer, as a signal handler must.

    The code that the signal interrupted may be in the midst of a write to stderr, and Python
    refuses a second one into the same buffer.
    """
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):  # no stream of the system: nothing waits inside it
        advise(text)
        return
    with suppress(OSError):
        os.write(descriptor, f"kvbench: {printable(text)}\n".encode(errors="replace"))


def tell_files(files: Sequence[Path], *, beside: bool = False) -> None:
    """Say which files were written, PNG files by their folder.

    ``beside``: on stderr, as stdout has an answer that a program may read.
    """
    pictures: dict[Path, int] = {}
    lines = []
    for path in files:
        if path.suffix == ".png":
            pictures[path.parent] = pictures.get(path.parent, 0) + 1
        else:
            lines.append(f"wrote {path}")
    for folder, count in pictures.items():
        figures = "1 figure" if count == 1 else f"{count} figures"
        lines.append(f"wrote {figures} into {folder}")
    for line in lines:
        print(line, file=sys.stderr if beside else sys.stdout)


def printable(text: str) -> str:
    """Return ``text`` with everything that could move a terminal's cursor shown as its number."""
    return "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in text
    )


class Unbreakable(io.TextIOBase):
    """A stream for progress and advice: when nobody can read it, the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what can be flushed."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's own descriptor."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute in the base
        """The stream's own encoding."""
        return self._stream.encoding


def _plain(value: object) -> object:
    """Arrays become lists, paths become text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def speaks_unicode(stream: TextIO) -> bool:
    """Return whether the stream can carry more than ASCII."""
    return "utf" in (stream.encoding or "").lower()
