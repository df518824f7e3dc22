"""What was found on a target -> lines of text.  Pure."""

from collections.abc import Iterator, Sequence

from kvbench.integrity.judge import bad_blocks
from kvbench.integrity.left_out import WHY_WORDS, LeftOut
from kvbench.integrity.model import BAD, Kind, Region, RegionCheck, Span
from kvbench.units import format_size

MEANINGS: dict[Kind, str] = {
    "good": "as the last cell wrote them",
    "older": "as the cell before wrote them, which is allowed where the last one was cut off",
    "unwritten": "not written before the first cell was cut off; nothing can be said of them",
    "stale": "older than what was surely written there",
    "lost": "without the block that was surely written there",
    "torn": "torn or corrupt: a checksum does not fit",
    "misplaced": "written for another place",
    "unreadable": "unreadable: the device gave an error",
}
CANNOT_SAY = (
    "What is judged is what the device returns now. Its own cache may answer, unless it lost power "
    "since. A block that is older is told from a newer one by the time in its header, on a clock "
    "that begins anew with every boot, and a block of another boot by its number, which does not "
    "fit into the row of the cell's. fio's header names no run and no boot: a whole pass that "
    "another boot began at the same uptime would not be told."
)

ATOMIC = (
    "The last cell there was cut off: a drive that loses power keeps a write whole only up to its "
    "atomic write unit (NVMe: AWUPF, often one logical block or 4 KiB). What is torn beyond that "
    "is allowed to it, and as many blocks as were in flight can be."
)


def lines(
    checks: Sequence[RegionCheck], parts: Sequence[LeftOut] = (), size_bytes: int | None = None
) -> Iterator[str]:
    """Yield what was found, region by region, what was not judged, and what it means.

    Args:
        checks: the regions.
        parts: what of the target was not judged.
        size_bytes: of the target, None to leave that out.
    """
    for check in checks:
        yield ""
        yield from _region(check)
    if size_bytes is not None:
        yield ""
        yield from _coverage(checks, parts, size_bytes)
    yield ""
    yield verdict(checks)
    yield CANNOT_SAY


def judged_bytes(checks: Sequence[RegionCheck]) -> int:
    """Return how many bytes were read and could be judged."""
    return sum(check.blocks * check.region.block_bytes - check.unknown_bytes for check in checks)


def _coverage(
    checks: Sequence[RegionCheck], parts: Sequence[LeftOut], size_bytes: int
) -> Iterator[str]:
    yield f"judged      {format_size(judged_bytes(checks))} of {format_size(size_bytes)}"
    for part in parts:
        places = ", ".join(f"{start} to {end}" for start, end in part.places)
        more = f" and {part.more_places:,} more places" if part.more_places else ""
        where = f" (bytes {places}{more})" if places else ""
        yield f"not judged  {format_size(part.bytes)} {WHY_WORDS[part.why]}{where}"
    if not parts:
        yield "not judged  nothing"


def verdict(checks: Sequence[RegionCheck]) -> str:
    """Return the answer in one sentence."""
    blocks, bad = sum(check.blocks for check in checks), bad_blocks(checks)
    if bad:
        return f"FAILED: {bad:,} of {blocks:,} blocks are not what they must be"
    unwritten = sum(check.counts.get("unwritten", 0) for check in checks)
    sure = blocks - unwritten
    rest = f"; of {unwritten:,} nothing can be said" if unwritten else ""
    if not sure:
        return f"NOTHING TO JUDGE: none of {blocks:,} blocks had been written before the cut"
    return f"INTACT: {sure:,} of {blocks:,} blocks are whole and in their place{rest}"


def _region(check: RegionCheck) -> Iterator[str]:
    region = check.region
    size = format_size(region.end_bytes - region.start_bytes)
    yield (
        f"bytes {region.start_bytes} to {region.end_bytes} ({size}), "
        f"blocks of {format_size(region.block_bytes)}"
    )
    for line in _writers(region):
        yield f"  {line}"
    yield f"  {check.blocks:,} blocks read"
    for kind, count in check.counts.items():
        mark = "!!" if kind in BAD else "  "
        yield f"  {mark} {count:>12,} {kind:<10} {MEANINGS[kind]}"
    if check.lost_durable:
        yield (
            f"  !! {check.lost_durable:>12,} at least, of the writes that had returned as durable "
            "before the cut, are gone"
        )
    if check.not_ordered:
        yield (
            "     a block that another boot wrote at the same uptime would pass here: "
            f"{check.not_ordered}"
        )
    if check.counts.get("torn") and region.layers[0].end_s is None:
        yield f"     {ATOMIC}"
    for span in check.spans:
        yield f"  !! {_span(span, region)}"
    if check.more_spans:
        yield f"  !! and {check.more_spans:,} more places"


def _writers(region: Region) -> Iterator[str]:
    for place, layer in enumerate(region.layers):
        when = "before it" if place else "written by"
        end = "" if layer.end_s is not None else ", which was cut off"
        yield f"{when} cell {layer.cell_id}, {layer.workload}/{layer.stream}{end}"
    if not region.settled:
        yield "before it: nothing that is known"


def _span(span: Span, region: Region) -> str:
    blocks = (span.end_bytes - span.start_bytes) // region.block_bytes
    count = f" ({blocks:,} blocks)" if blocks > 1 else ""
    holds = span.holds_offset_bytes
    holds_words = "" if holds is None else f": it holds the block of offset {holds}"
    return f"{span.kind} at offset {span.start_bytes}{count}{holds_words}"
