"""Comparisons and gates -> the sheets of a workbook.  Pure."""

from collections.abc import Callable, Iterator, Sequence

from kvbench.compare.model import Change, Comparison, Key, Sample
from kvbench.gate.model import Gate
from kvbench.report.compare_words import letter, number_words
from kvbench.report.sheets import NUMBER, SHEETS, in_unit, texts, with_parameters, yes
from kvbench.report.workbook import Plain, Sheet, SheetColumn


def of_comparison(comparison: Comparison, verdict: str) -> list[Sheet]:
    """Return the runs, what differs, the numbers by unit with each run against the first."""
    letters = [letter(place) for place in range(len(comparison.sides))]
    runs = tuple(
        (
            *(one, side.name, side.run_id, side.label, side.device, side.created_at),
            *(side.repetitions, side.incomplete),
        )
        for one, side in zip(letters, comparison.sides, strict=True)
    )
    names = ("side", "name", "run", "label", "device", "started", "repetitions", "incomplete")

    def columns(unit: str) -> tuple[SheetColumn, ...]:
        return (
            *texts(*NUMBER, "primary"),
            *(c for one in letters for c in sample_columns(one, unit)),
            *(c for one in letters[1:] for c in change_columns(one, unit)),
        )

    numbers = [
        (
            row.unit,
            row.key,
            (
                *number_values(row.key, row.role),
                yes(row.primary),
                *(value for sample in row.samples for value in sample_values(sample)),
                *(value for change in row.changes[1:] for value in change_values(change)),
            ),
        )
        for row in comparison.rows
    ]
    return [
        Sheet(name="comparison", columns=texts("verdict"), rows=((verdict,),)),
        Sheet(name="runs", columns=texts(*names), rows=runs),
        Sheet(
            name="differences",
            columns=texts("aspect", "by the policy", *letters),
            rows=tuple((d.aspect, d.effect, *d.values) for d in comparison.differences),
        ),
        Sheet(
            name="winners",
            columns=texts("role", "winner", "why"),
            rows=tuple(
                (one.role, None if one.winner is None else letters[one.winner], one.text)
                for one in comparison.winners
            ),
        ),
        *by_unit(numbers, columns),
    ]


def of_gate(gate: Gate) -> list[Sheet]:
    """Return the verdict, what differs, the gated numbers by unit, what is required."""
    about: list[tuple[Plain, ...]] = [("verdict", gate.outcome)]
    about += [("reason", reason) for reason in gate.reasons]
    about += [("doubt", doubt) for doubt in gate.doubts]
    about += [("policy", gate.policy), ("confidence (%)", 100 * gate.confidence)]
    for title, side in zip(("baseline", "candidate"), gate.sides, strict=True):
        about += [(title, side.run_id), (f"{title} label", side.label)]
        about += [(f"{title} drive", side.device), (f"{title} repetitions", side.repetitions)]
    about += [("rerun", name) for name in gate.reruns]

    def columns(unit: str) -> tuple[SheetColumn, ...]:
        return (
            *texts(*NUMBER, "of the gate"),
            *sample_columns("baseline", unit),
            *sample_columns("candidate", unit),
            *change_columns("", unit),
        )

    numbers = [
        (
            row.unit,
            row.key,
            (
                *number_values(row.key, row.role),
                "BETTER" if row.improved else row.verdict,
                *sample_values(row.baseline),
                *sample_values(row.candidate),
                *change_values(row.change),
            ),
        )
        for row in gate.rows
    ]
    return [
        Sheet(name="gate", columns=texts("what", "value"), rows=tuple(about)),
        Sheet(
            name="differences",
            columns=texts("aspect", "by the policy", "baseline", "candidate"),
            rows=tuple((d.aspect, d.effect, *d.values) for d in gate.differences),
        ),
        *by_unit(numbers, columns),
        Sheet(
            name="required",
            columns=texts("role", "level", "verdict", "why"),
            rows=tuple(
                (one.required.role, one.required.level, one.verdict, one.reason)
                for one in gate.required
            ),
        ),
    ]


def by_unit(
    numbers: Sequence[tuple[str, Key, tuple[Plain, ...]]],
    columns: Callable[[str], tuple[SheetColumn, ...]],
) -> Iterator[Sheet]:
    """Yield a sheet for each unit that has a row; ``numbers`` are (unit, key, row)."""
    for unit, name in SHEETS.items():
        own = [(key.parameters, row) for of_row, key, row in numbers if of_row == unit]
        if own:
            yield with_parameters(name, columns(unit), own)


def number_values(key: Key, role: str) -> tuple[Plain, ...]:
    """Return the cells of the columns ``NUMBER``."""
    point = number_words(key)[0]
    return (key.workload, role, point, key.stream, key.direction, key.metric)


def sample_columns(name: str, unit: str) -> tuple[SheetColumn, ...]:
    """Return the columns of a number of one run."""
    return (
        *in_unit(unit, name, f"{name} low", f"{name} high"),
        *texts(f"{name} interval", f"{name} n", f"{name} doubts", f"{name} reason"),
    )


def sample_values(sample: Sample | None) -> tuple[Plain, ...]:
    """Return the cells of ``sample_columns``."""
    if sample is None:
        return (None, None, None, None, 0, None, "not in this run")
    ends = (sample.median, sample.low, sample.high)
    doubts = "; ".join((*sample.doubts, *sample.notes))
    return (*ends, sample.interval, sample.n, doubts, sample.reason)


def change_columns(name: str, unit: str) -> tuple[SheetColumn, ...]:
    """Return the columns of a change: per cent, or a difference in the unit without a ratio."""
    first = f"{name} " if name else ""
    return (
        *texts(f"{first}verdict"),
        *in_unit("%", f"{first}change", f"{first}change low", f"{first}change high"),
        *in_unit(unit, f"{first}difference", f"{first}difference low", f"{first}difference high"),
        *texts(f"{first}p"),
        *in_unit("%", f"{first}margin"),
        *texts(f"{first}why"),
    )


def change_values(change: Change | None) -> tuple[Plain, ...]:
    """Return the cells of ``change_columns``."""
    if change is None:
        return (None,) * 10
    ends = (change.estimate, change.low, change.high)
    ratio = tuple(None if end is None else 100 * (end - 1) for end in ends)
    none = (None, None, None)
    shifts = (*ratio, *none) if change.kind == "ratio" else (*none, *ends)
    margin = None if change.margin is None else 100 * change.margin
    return (change.verdict, *shifts, change.p, margin, change.reason)
