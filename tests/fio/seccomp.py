"""Run a command in which io_uring's three system calls answer with an errno, as in a container.

    python seccomp.py ERRNO COMMAND [ARGUMENT...]

Needs neither root nor a container: a classic BPF filter on this process, kept over exec.
"""

import ctypes
import os
import struct
import sys

IO_URING_CALLS = (425, 426, 427)  # setup, enter, register: the same on every architecture
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF operations
ANSWER_ALLOW, ANSWER_ERRNO = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def step(operation: int, if_true: int, if_false: int, value: int) -> bytes:
    """Return one struct sock_filter."""
    return struct.pack("HBBI", operation, if_true, if_false, value)


def refuse(number: int) -> None:
    """Answer io_uring's calls with errno ``number`` from now on."""
    steps = [step(LOAD_WORD, 0, 0, 0)]  # the number of the system call
    for index, call in enumerate(IO_URING_CALLS):
        steps.append(step(JUMP_IF_EQUAL, len(IO_URING_CALLS) - index, 0, call))
    steps += [step(RETURN, 0, 0, ANSWER_ALLOW), step(RETURN, 0, 0, ANSWER_ERRNO | number)]
    buffer = ctypes.create_string_buffer(b"".join(steps))
    program = Program(len(steps), ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl refused")


if __name__ == "__main__":
    refuse(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - that is its purpose
