"""``make calibrate-devices``: does kvbench see the latency that a device was given?

Two guests in virtual time make the same devices and run ``kvbench run`` on each; this machine
measures what the runs stored.  Whatever else runs here changes nothing but the time it takes.
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kvbench.metrics import percentile_name
from kvbench.store.read import RunArchive
from tests.nvme_vm import boot
from tests.nvme_vm.known import CASES, MARGIN
from tests.nvme_vm.rows import Row, Unmeasured, rows_of

BOOTS = 2
TIMEOUT_S = 3600
LINE = "{:<11}{:<9}{:>7}  {:>13}  {:>11}{:>11}{:>9}  {:>7}{:>7}  {}"


def known_devices(folder: Path) -> None:
    """Print a table of configured and measured latencies; exit with 1 when one is wrong."""
    started = time.monotonic()
    try:
        boot.build()
        runs = _boots(folder)
        rows = [
            row
            for device, loads in CASES
            for row in rows_of(device, loads, [run[device.name] for run in runs])
        ]
    except (boot.GuestFailed, Unmeasured) as error:
        sys.exit(f"FAIL: {error}")
    print("\n".join(table(rows)))
    wrong = sum(not row.right for row in rows)
    verdict = f"FAIL: {wrong} rows are wrong" if wrong else "PASS"
    print(f"{verdict}; {len(rows)} rows, {time.monotonic() - started:.0f} s")
    if wrong:
        sys.exit(1)


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines to print."""
    names = [f"boot {number}, ms" for number in range(1, BOOTS + 1)]
    heads = ("device", "load", "", "configured", *names, "I/Os", "off", "apart", "")
    lines = [
        *(f"{device.name}: {device.summary}" for device, _ in CASES),
        f"right: within {MARGIN:.1%} of the configured latency, and the same in both boots",
        LINE.format(*heads),
    ]
    for row in rows:
        configured = " or ".join(f"{one * 1e3:g}" for one in row.configured_s)
        lines.append(
            LINE.format(
                row.device.name,
                row.load.name,
                percentile_name(row.percentile),
                f"{configured} ms",
                *(f"{value * 1e3:.3f}" for value in row.values_s),
                min(row.io_counts),
                f"{row.worst_off:+.1%}",
                f"{row.spread:.1%}",
                "" if row.right else "WRONG",
            )
        )
    return lines


def _boots(folder: Path) -> list[dict[str, RunArchive]]:
    """Boot all guests at once; each needs one CPU."""
    shares = [folder / f"boot-{number}" for number in range(1, BOOTS + 1)]
    for share in shares:
        share.mkdir()
    with ThreadPoolExecutor(BOOTS) as pool:
        pending = [
            pool.submit(boot.measure_in_guest, CASES, share, timeout_s=TIMEOUT_S)
            for share in shares
        ]
        return [one.result() for one in pending]
