"""``make calibrate-gate``: a device against itself, twenty times, through the default gate."""

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from kvbench.units import MIB
from tests.gate.planted import BASE_IOPS, gate, measure
from tests.host.loops import loop_over
from tests.throttle import throttled, why_no_throttle

PAIRS = 20
FAILS_MAX = 1


def same_device() -> None:
    """Print the verdicts of twenty pairs of runs on one throttled loop device."""
    reason = why_no_throttle()
    if reason:
        sys.exit(f"not measured: {reason}")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="kvbench-") as name:
        folder = Path(name)
        backing = folder / "backing"
        backing.write_bytes(os.urandom(32 * MIB))
        with loop_over(backing) as device, throttled(device) as throttle:
            for pair in range(1, PAIRS + 1):
                sides = [
                    measure(throttle, device, BASE_IOPS, folder, "--label", f"{side}{pair}")
                    for side in "ab"
                ]
                _, answer = gate(sides[0], sides[1], folder)
                outcomes[answer["outcome"]] += 1
                print(f"pair {pair}: {answer['outcome']}  {'; '.join(answer['reasons'])}")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"a device against itself, {PAIRS} pairs: {counts} (wanted: at most {FAILS_MAX} FAIL)")
    if outcomes["FAIL"] > FAILS_MAX:
        sys.exit(1)
