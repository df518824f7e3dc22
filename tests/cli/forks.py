"""One process that has imported all of kvbench, and forks a kvbench for each call of it.

Most of the time of a short kvbench is the start of Python and its numeric libraries.  A fork has
its own arguments, folder, descriptors and exit code, as a kvbench that was started from a shell.

A call is one message with two descriptors, for stdout and stderr; the answers are the pid of the
fork, and its exit code.
"""

import contextlib
import importlib
import json
import os
import socket
import sys
import traceback

MESSAGE_BYTES_MAX = 1 << 20
READY = b"ready"


def serve(calls: socket.socket) -> None:
    """Answer calls until the other end is closed."""
    from tests.nvme_vm.inside.driver import load_everything

    load_everything()
    importlib.import_module("matplotlib.backends.backend_svg")
    calls.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(calls, MESSAGE_BYTES_MAX, 2)
        if not message:
            return
        asked = json.loads(message)
        pid = os.fork()
        if not pid:
            calls.close()
            _be_kvbench(asked["arguments"], asked["cwd"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        calls.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        calls.send(str(os.waitstatus_to_exitcode(status)).encode())


def _be_kvbench(arguments: list[str], cwd: str, descriptors: list[int]) -> None:
    """Become kvbench, and never return."""
    from kvbench.cli import main

    code = 1
    try:
        os.chdir(cwd)
        for place, descriptor in enumerate(descriptors, start=1):
            os.dup2(descriptor, place)
            os.close(descriptor)
        sys.argv = ["kvbench", *arguments]
        main.entry()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would show it
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(end)
