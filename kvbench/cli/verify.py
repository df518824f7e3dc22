"""``kvbench verify``: is what the last integrity cells of a run wrote still there?  Reads only."""

import argparse
import sys
from collections.abc import Callable
from datetime import datetime

from kvbench.cli import output
from kvbench.cli.stored import add_results_argument
from kvbench.cli.taking import stop_on_signals
from kvbench.errors import ExitCode, Refused, StoreError, UsageError
from kvbench.fio.cell_limits import refuse_unfit
from kvbench.host import guard, lease
from kvbench.host.boot import boot_id
from kvbench.store import journal, layout
from kvbench.store.read import RunArchive, find_run, list_runs, read_record, read_run
from kvbench.store.records import RunRecord
from kvbench.store.redact import is_redacted
from kvbench.units import GIB, format_size

LONG_BYTES = 4 * GIB  # what takes long enough to be asked how far it is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run's id, folder or label, or 'latest'")
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="where the run's target is now, when its path has changed; it is known by serial and "
        "namespace, a file by its inode",
    )
    add_results_argument(parser)
    output.add_json_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Read back and tell: exit 0 when all is intact, 4 when not, 6 with nothing to judge."""
    from kvbench.integrity.agree import check_agreement
    from kvbench.integrity.expected import expected_regions
    from kvbench.integrity.judge import bad_blocks
    from kvbench.integrity.left_out import left_out
    from kvbench.integrity.reader import check_regions
    from kvbench.integrity.same import check_same, shown
    from kvbench.integrity.words import judged_bytes, lines, verdict

    archive = read_run(find_run(arguments.results, arguments.run))
    record = archive.record
    begun = _begun(archive)
    identity = guard.check_readable(arguments.target or _stored_path(record))
    check_same(record.identity, identity, same_boot=begun[-1].boot_id == boot_id())
    for cell in record.plan.cells:
        if cell.once:
            refuse_unfit(cell)  # a stored plan may be a stranger's
    later = _written_later(archive)
    if later:
        raise UsageError(
            f"a later run wrote to this target, so what this one wrote is not there: {later}",
            where=str(archive.folder),
            hint=f"kvbench verify {later}, if that one has integrity cells",
        )
    regions = expected_regions(record, begun, (cell.record for cell in archive.cells))
    end_bytes = max((region.end_bytes for region in regions), default=0)
    if end_bytes > identity.size_bytes:
        raise Refused(
            f"has {identity.size_bytes} bytes, and the run says that it wrote up to {end_bytes}",
            where=identity.path,
        )
    check_agreement(archive, begun)
    if not regions:
        raise UsageError(
            "nothing is left to verify: later cells of this run wrote over it",
            where=str(archive.folder),
        )
    total = sum(region.end_bytes - region.start_bytes for region in regions)
    with lease.hold(identity, exclusive=False), stop_on_signals() as stop:
        output.advise(f"reading {format_size(total)} of {shown(identity)}")
        checks = check_regions(
            identity.real_path, regions, stop=stop, tell=_teller(total, quiet=arguments.json)
        )
    bad = bad_blocks(checks)
    judged = judged_bytes(checks)
    parts = left_out(record.plan, begun, regions, checks, identity.size_bytes)
    code = ExitCode.CELL_FAILED if bad else ExitCode.OK if judged else ExitCode.INCONCLUSIVE
    if arguments.json:
        output.print_json(
            {
                "run_id": record.run_id,
                "target": identity.real_path,
                "target_bytes": identity.size_bytes,
                "checked_bytes": total,
                "judged_bytes": judged,
                "not_judged_bytes": sum(part.bytes for part in parts),
                "not_judged": parts,
                "verdict": verdict(checks),
                "bad_blocks": bad,
                "regions": checks,
                "exit_code": int(code),
            }
        )
    else:
        print(f"run {record.run_id} on {shown(identity)}")
        output.print_answer("\n".join(lines(checks, parts, identity.size_bytes)))
        sys.stdout.flush()
    return int(code)


def _stored_path(record: RunRecord) -> str:
    """Return where the run's target was; a redacted run hides names in /dev that are chosen."""
    identity = record.identity
    return identity.real_path if is_redacted(identity) else identity.path


def _teller(total_bytes: int, *, quiet: bool) -> Callable[[int], None]:
    """Return what tells how far the reading is, in steps of a tenth; nothing of what is short."""
    done = told = 0

    def tell(read_bytes: int) -> None:
        nonlocal done, told
        done += read_bytes
        tenths = 10 * done // total_bytes
        if tenths > told and total_bytes > LONG_BYTES and not quiet:
            told = tenths
            output.advise(f"{format_size(done)} of {format_size(total_bytes)} read")

    return tell


def _begun(archive: RunArchive) -> tuple[journal.Begun, ...]:
    """Return the cells that changed the target, in order.

    Raises:
        UsageError: none was to write blocks that can be verified, or none has begun.
    """
    from kvbench.integrity.expected import verifiable

    if not verifiable(archive.record.plan):
        raise UsageError(
            "this run has no cell that writes blocks to be verified",
            where=str(archive.folder),
            hint="run --suite integrity",
        )
    begun = journal.read(archive.folder)
    if not begun:
        raise UsageError(
            "this run was ended before it wrote anything, so there is nothing to verify",
            where=str(archive.folder),
        )
    return begun


def _written_later(archive: RunArchive) -> str:
    """Return a later run beside this one that changed the same target, "" when there is none.

    A run whose record cannot be read is passed over: the blocks themselves will tell.
    """
    try:  # a run that was resumed wrote after those that came between
        started = [_time(cell.record.started_at) for cell in archive.cells]
        last = max([_time(archive.record.created_at), *started])
    except (ValueError, TypeError):
        return ""
    for folder in list_runs(archive.folder.resolve().parent):
        try:
            other = read_record(folder / layout.RUN_FILE, RunRecord)
            later = _time(other.created_at) > last
        except (StoreError, ValueError, TypeError):
            continue
        another = other.run_id != archive.record.run_id and other.plan.writing_cells > 0
        if later and another and _one_target(archive.record, other):
            return other.run_id
    return ""


def _time(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def _one_target(mine: RunRecord, other: RunRecord) -> bool:
    """Return whether two runs were on one target, as far as their records tell."""
    a, b = mine.identity, other.identity
    if a.kind != b.kind:
        return False
    if a.kind == "file":
        return (a.device_number, a.inode) == (b.device_number, b.inode)
    if a.serial or a.wwid:
        return (a.serial, a.wwid) == (b.serial, b.wwid)
    return a.diskseq is not None and a.diskseq == b.diskseq
