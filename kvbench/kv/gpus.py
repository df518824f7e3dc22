"""``gpus.toml`` -> GPUs by name: peaks and the table of estimated prefill times."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from kvbench import document
from kvbench.errors import UsageError
from kvbench.kv import entries
from kvbench.kv.models import Line, Name, Weights
from kvbench.units import MS_PER_S

Flops = Annotated[float, Meta(ge=1e12, le=1e18)]
Share = Annotated[float, Meta(gt=0, le=1)]


class PrefillRow(Struct, frozen=True, kw_only=True):
    """One row of the table: milliseconds to the first token by prompt tokens, or why none."""

    model: Name
    tp: Annotated[int, Meta(ge=1, le=1024)]
    weights: Weights
    also: tuple[Name, ...] = ()
    ttft_ms: dict[str, Annotated[float, Meta(gt=0, le=1e9)]] = {}
    missing: Annotated[str, Meta(max_length=200)] = ""

    @property
    def points(self) -> list[tuple[int, float]]:
        """Prompt tokens and seconds, in rising order."""
        return sorted((int(tokens), ms / MS_PER_S) for tokens, ms in self.ttft_ms.items())


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU.  ``mfu_*`` is lowest, median and highest share of the peak over the table's rows."""

    name: Name
    title: Line
    peak_flops_bf16: Flops
    mfu_dense: tuple[Share, Share, Share]
    mfu_mixture: tuple[Share, Share, Share]
    peak_flops_fp8: Flops | None = None
    also: tuple[Name, ...] = ()
    prefill: tuple[PrefillRow, ...] = ()


class Gpus(Struct, frozen=True, kw_only=True):
    """The GPUs by name, and where their figures come from."""

    gpus: dict[str, Gpu]
    table_source: str
    peaks_source: str


def load_gpus(path: Path) -> Gpus:
    """Return the GPUs of ``path`` by name, in the file's order.

    Raises:
        UsageError: the file or an entry is wrong, or a name stands twice.
    """
    shown = document.printable(str(path))
    values = document.read_toml(path)
    document.allow_only(values, ("format", "gpu", "table_source", "peaks_source"), shown)
    gpus: dict[str, Gpu] = {}
    taken: set[str] = set()
    for number, table in enumerate(entries.tables(values, "gpu", shown), start=1):
        where = f"{shown}: gpu[{number}]"
        gpu = _checked(table, where)
        for name in (gpu.name, *gpu.also):
            if name in taken:
                raise UsageError(f"the name {name!r} stands twice", where=where)
            taken.add(name)
        gpus[gpu.name] = gpu
    sources = [values.get(key) for key in ("table_source", "peaks_source")]
    match sources:
        case [str(table_source), str(peaks_source)]:
            return Gpus(gpus=gpus, table_source=table_source, peaks_source=peaks_source)
        case _:
            raise UsageError("table_source and peaks_source must be text", where=shown)


def find_gpu(gpus: Gpus, name: str) -> Gpu:
    """Return a GPU by name, whatever the case.

    Raises:
        UsageError: there is none of this name.
    """
    asked = name.strip().lower().replace("_", "-")
    names = {alias: gpu for gpu in gpus.gpus.values() for alias in (gpu.name, *gpu.also)}
    if asked in names:
        return names[asked]
    near = document.nearest(asked, names)
    raise UsageError(
        f"unknown GPU {document.brief(name)!r}",
        hint=near or f"known: {', '.join(gpus.gpus)}",
    )


def _checked(table: dict[str, object], where: str) -> Gpu:
    gpu = entries.record(table, Gpu, where)
    for number, row in enumerate(gpu.prefill, start=1):
        place = f"{where}.prefill[{number}]"
        if bool(row.ttft_ms) == bool(row.missing):
            raise UsageError("needs either ttft_ms or missing", where=place)
        for tokens in row.ttft_ms:
            if not (tokens.isascii() and tokens.isdigit() and 1 <= len(tokens) <= 12):
                raise UsageError(f"not a number of tokens: {document.brief(tokens)!r}", where=place)
        times = [seconds for _, seconds in row.points]
        if row.ttft_ms and (len(times) < 2 or any(a >= b for a, b in pairwise(times))):
            raise UsageError("ttft_ms needs two points or more, and rising times", where=place)
    if list(gpu.mfu_dense) != sorted(gpu.mfu_dense) or list(gpu.mfu_mixture) != sorted(
        gpu.mfu_mixture
    ):
        raise UsageError("mfu is lowest, median, highest, in this order", where=where)
    return gpu
