"""A load curve on a simulated device: which rate is tried next, and which is usable."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kvbench.measure.load import decide_rate, try_of, with_rate, with_usable
from kvbench.measure.model import Finding, MeasuredCell, Measurement, Outcome
from kvbench.plan import Cell, CellLoad, Plan
from kvbench.workload.schema import Load
from tests import records

PEAK = 100_000.0
LIMIT_S = 0.001
TailOf = Callable[[float], float | None]  # rate -> p99.9 in seconds; None is too few I/Os


def a_load(steps: int = 5, percents: tuple[int, ...] = (10, 30, 50, 70, 90)) -> Load:
    return Load(percents=percents, queue_depth=512, limit_s=LIMIT_S, search_steps=steps)


def a_plan(load: Load, jobs: int = 1) -> Plan:
    stream = records.a_stream(jobs=jobs, queue_depth=32)
    return records.a_plan(records.a_workload(streams=(stream,), sweep=(), load=load), repetitions=1)


def number(metric: str, value: float | None) -> Measurement:
    reason = "" if value is not None else "too few I/Os: 10 of 10,000 needed"
    return Measurement(
        stream="reads", direction="read", metric=metric, value=value, io_count=50, reason=reason
    )


def measured(
    cell: Cell, tail_of: TailOf, outcome: Outcome = "valid", overloaded_from: float = 1e18
) -> MeasuredCell:
    """What the simulated device gives for one cell."""
    rate = cell.placed[0].stream.rate_iops
    findings: tuple[Finding, ...] = ()
    if rate is not None and rate >= overloaded_from:
        text = f"overloaded: offered {rate:g}/s"
        findings = (Finding(check="overloaded", severity="doubt", text=text, stream="reads"),)
    numbers = [number("iops", rate or PEAK)]
    if rate is not None:
        numbers.append(number("latency_p99.9", tail_of(rate)))
    return MeasuredCell(
        cell=cell, outcome=outcome, findings=findings, measurements=tuple(numbers), histograms=()
    )


def curve(
    tail_of: TailOf,
    load: Load | None = None,
    *,
    jobs: int = 1,
    outcome: Callable[[Cell], Outcome] = lambda _: "valid",
    overloaded_from: float = 1e18,
) -> list[MeasuredCell]:
    """A whole curve, each rate decided from the cells before it as a run does."""
    load = load or a_load()
    plan = a_plan(load, jobs)
    done: list[MeasuredCell] = []
    for cell in plan.cells:
        if cell.load is None or cell.purpose == "ceiling":
            continue
        decided = cell
        if cell.undecided:
            decision = decide_rate(cell, load, done)
            if decision.rate_iops is None:
                failed = MeasuredCell(
                    cell=cell, outcome="failed", findings=(), measurements=(), histograms=()
                )
                done.append(failed)
                continue
            decided = with_rate(cell, decision.rate_iops)
        done.append(measured(decided, tail_of, outcome(cell), overloaded_from))
    return list(with_usable(done, plan))


def usable(cells: list[MeasuredCell]) -> dict[str, Measurement]:
    found = [(c, m) for c in cells for m in c.measurements if m.metric.startswith("usable_")]
    assert {c.cell.load.kind for c, _ in found if c.cell.load} <= {"peak"}
    assert [m.metric for _, m in found] in (["usable_iops", "usable_share"], [])
    return {m.metric: m for _, m in found}


def rates(cells: list[MeasuredCell], kind: str) -> list[float | None]:
    return [
        c.cell.placed[0].stream.rate_iops
        for c in cells
        if c.cell.load is not None and c.cell.load.kind == kind
    ]


def breaks_at(rate: float) -> TailOf:
    return lambda offered: 0.0005 if offered <= rate else 0.005


@pytest.mark.parametrize("truth", [1_234.0, 33_333.0, 50_000.0, 71_000.0, 99_000.0])
@pytest.mark.parametrize("steps", [3, 5, 8])
def test_the_search_alone_comes_within_the_peak_over_two_to_the_steps(
    truth: float, steps: int
) -> None:
    cells = curve(breaks_at(truth), a_load(steps, percents=()))
    found = usable(cells)["usable_iops"]
    grain = PEAK / 2**steps
    if found.value is None:
        assert truth < grain + 1
    else:
        assert truth - grain - 1 <= found.value <= truth
    assert len(rates(cells, "search")) == steps


@pytest.mark.parametrize("truth", [12_000.0, 33_333.0, 71_000.0])
def test_shares_that_were_measured_narrow_the_search(truth: float) -> None:
    found = usable(curve(breaks_at(truth), a_load(4)))["usable_iops"]
    assert found.value is not None
    assert truth - 0.2 * PEAK / 2**4 - 1 <= found.value <= truth


def test_shares_are_those_of_the_peak() -> None:
    cells = curve(breaks_at(PEAK))
    expected = [PEAK * percent / 100 for percent in (10, 30, 50, 70, 90)]
    assert sorted(r for r in rates(cells, "share") if r) == expected


def test_a_rate_is_a_whole_number_per_job() -> None:
    cells = curve(breaks_at(40_001.0), replace(a_load(6), jobs=3))
    for rate in rates(cells, "share") + rates(cells, "search"):
        assert rate is not None
        assert rate % 3 == 0


def test_a_device_that_passes_everywhere_is_usable_up_to_just_below_its_peak() -> None:
    found = usable(curve(lambda _: 1e-4, a_load(4)))
    assert found["usable_iops"].value == pytest.approx(PEAK * (1 - 0.1 / 2**4), abs=1)
    assert found["usable_share"].value == pytest.approx(100 * (1 - 0.1 / 2**4), abs=0.01)


def test_a_device_that_passes_nowhere_has_no_usable_rate_and_says_why() -> None:
    found = usable(curve(lambda _: 0.005))
    for metric in ("usable_iops", "usable_share"):
        assert found[metric].value is None
        assert found[metric].reason.startswith("no rate that was tried: even at ")
        assert "p99.9 was 5" in found[metric].reason


def test_a_pass_above_a_failure_never_counts() -> None:
    def lucky(rate: float) -> float:
        return 0.0001 if rate < 25_000 or 60_000 < rate < 80_000 else 0.01

    cells = curve(lucky, a_load(6))
    found = usable(cells)["usable_iops"].value
    assert found is not None
    assert 20_000 < found <= 25_000
    assert all(rate is not None and rate < 30_000 for rate in rates(cells, "search"))


def test_an_overloaded_loop_fails_even_if_its_tail_is_short() -> None:
    found = usable(curve(lambda _: 1e-4, a_load(6), overloaded_from=42_000.0))
    value = found["usable_iops"].value
    assert value is not None
    assert 41_000 < value < 42_000


def test_too_few_ios_are_neither_a_pass_nor_a_failure() -> None:
    cells = curve(lambda _: None)
    found = usable(cells)["usable_iops"]
    assert found.value is None
    assert "too few I/Os: 10 of 10,000 needed" in found.reason
    assert rates(cells, "search") == [PEAK / 2] * 5  # nothing is learned, so nothing moves


def test_a_rate_without_enough_ios_does_not_hide_those_that_passed() -> None:
    found = usable(curve(lambda rate: None if rate < 20_000 else breaks_at(45_000)(rate)))
    value = found["usable_iops"].value
    assert value is not None
    assert 44_000 < value <= 45_000


@pytest.mark.parametrize("outcome", ["failed", "invalid"])
def test_without_a_peak_no_rate_is_decided(outcome: Outcome) -> None:
    cells = curve(
        breaks_at(5e4),
        outcome=lambda c: outcome if c.load and c.load.kind == "peak" else "valid",
    )
    assert usable(cells) == {}
    assert set(rates(cells, "share") + rates(cells, "search")) == {None}
    share = next(c.cell for c in cells if c.cell.load and c.cell.load.kind == "share")
    decision = decide_rate(share, a_load(), cells[:1])
    assert decision.rate_iops is None
    assert decision.reason == f"the peak that its rate is a share of is {outcome}"
    assert "was not measured" in decide_rate(share, a_load(), []).reason


def test_an_open_loop_that_does_not_count_teaches_nothing() -> None:
    cells = curve(
        breaks_at(80_000),
        a_load(0),
        outcome=lambda c: "invalid" if c.load == CellLoad(kind="share", percent=70) else "valid",
    )
    assert usable(cells)["usable_iops"].value == 50_000
    assert usable(cells)["usable_iops"].doubts == ()
    seventy = next(c for c in cells if c.cell.parameters["load"] == "70 %")
    assert try_of(seventy, a_load()).answer == "unknown"
    assert try_of(seventy, a_load()).words == "its cell is invalid"


def test_a_rate_of_a_spoiled_cell_below_the_usable_one_is_a_doubt() -> None:
    cells = curve(
        breaks_at(80_000),
        a_load(0),
        outcome=lambda c: "invalid" if c.load == CellLoad(kind="share", percent=50) else "valid",
    )
    found = usable(cells)["usable_iops"]
    assert found.value == 70_000
    (doubt,) = found.doubts
    assert doubt.endswith("not known whether the tail kept its limit at 50.0k/s")


def test_a_tail_beyond_what_fio_sees_is_a_failure() -> None:
    plan = a_plan(a_load())
    share = next(c for c in plan.cells if c.load and c.load.kind == "share")
    cell = measured(with_rate(share, 10_000.0), lambda _: 1e-4)
    numbers = tuple(replace(m, censored=True) for m in cell.measurements)
    assert try_of(replace(cell, measurements=numbers), a_load()).answer == "fail"


def test_the_usable_rate_carries_the_doubts_of_its_open_loop() -> None:
    doubt = Finding(check="host-bound", severity="doubt", text="the host was busy")
    plan = a_plan(a_load())
    cells = [c for c in curve(breaks_at(5e4)) if c.cell.purpose == "measure"]
    bare = [replace(c, measurements=c.measurements[:2], findings=(doubt,)) for c in cells]
    bare = [
        replace(c, measurements=c.measurements[:1])
        if c.cell.load and c.cell.load.kind == "peak"
        else c
        for c in bare
    ]
    found = usable(list(with_usable(bare, plan)))
    assert found["usable_iops"].value == 50_000
    assert found["usable_iops"].doubts == ("the host was busy",)


def test_a_peak_has_no_rate_to_decide() -> None:
    peak = next(c for c in a_plan(a_load()).cells if c.load and c.load.kind == "peak")
    with pytest.raises(ValueError, match="no rate to decide"):
        decide_rate(peak, a_load(), [])
