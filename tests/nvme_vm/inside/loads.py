"""Small workloads for the guest: one stream of one direction, as short as a second."""

from pathlib import Path

TEXT = """format = 1
summary = "random {direction}s of {block_size}, for tests"
role = "memory"
source = "a test"
evidence = "probe"
cannot_express = "nothing is meant by it"
primary = ["io.iops"]

[timing]
runtime = "{runtime}"
ramp = "0ms"

[[stream]]
name = "io"
direction = "{direction}"
pattern = "random"
block_size = "{block_size}"
queue_depth = {queue_depth}
span_percent = {span_percent}
"""


def write_load(
    path: Path,
    *,
    direction: str = "read",
    block_size: str = "4KiB",
    runtime: str = "1s",
    queue_depth: str = "1",
    span_percent: str = "100",
) -> str:
    """Write a workload file and return its name."""
    path.write_text(
        TEXT.format(
            direction=direction,
            block_size=block_size,
            runtime=runtime,
            queue_depth=queue_depth,
            span_percent=span_percent,
        )
    )
    return str(path)
