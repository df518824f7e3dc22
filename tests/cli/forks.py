"""One process that has imported all of kvbench, and forks a kvbench for each call of it.

Most of the time of a short kvbench is the start of Python and its numeric libraries.  A fork has
its own arguments, folder, descriptors and exit code, as a kvbench that was started from a shell.

A call is one message with two descriptors, for stdout and stderr; the answers are the pid of the
fork, and its exit code.
"""

import importlib
import json
import os
import socket
import sys
from functools import partial

from tests.nvme_vm.inside.driver import become_kvbench, load_everything

MESSAGE_BYTES_MAX = 1 << 20
READY = b"ready"


def serve(calls: socket.socket) -> None:
    """Answer calls until the other end is closed."""
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
            out, err = descriptors
            become_kvbench(asked["arguments"], out, err, first=partial(os.chdir, asked["cwd"]))
        for descriptor in descriptors:
            os.close(descriptor)
        calls.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        calls.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(end)
