"""What the probes say of made-up runs: a planted step, cliff or knee, none, and too little."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from kvbench.host.model import Fact
from kvbench.measure.model import Finding, MeasuredCell, MeasuredRun, Measurement, Outcome
from kvbench.measure.reading_model import Reading
from kvbench.measure.readings import read_probes
from kvbench.measure.relations import with_relations
from kvbench.measure.summarise import summarise
from kvbench.measure.timeline import CellTimeline, StreamTimeline, Timeline, Window
from kvbench.plan import Cell, Plan, TargetSpec, make_plan
from kvbench.store.records import AfterTrim
from kvbench.units import GIB, KIB, MIB
from kvbench.workload.catalog import find_workload
from kvbench.workload.schema import SweepValue
from tests import records

ValueOf = Callable[[Cell, str], float | None]  # cell, metric
NO_TIMELINE = Timeline(cells=())


def a_plan(name: str, *, repetitions: int = 3, kind: str = "file", block: int = 512) -> Plan:
    target = TargetSpec(
        path="/data/file",
        kind="file" if kind == "file" else "block",
        size_bytes=2 * GIB,
        own_file=kind == "file",
        logical_block_bytes=block,
    )
    return make_plan([find_workload(name)], target, repetitions=repetitions, seed=1, may_write=True)


def a_run(
    plan: Plan,
    value_of: ValueOf = lambda *_: None,
    *,
    metrics: Sequence[str] = (),
    outcome: Callable[[Cell], Outcome] = lambda _: "valid",
    findings: Callable[[Cell], tuple[Finding, ...]] = lambda _: (),
    after_trim: Callable[[Cell], tuple[AfterTrim, ...]] = lambda _: (),
) -> MeasuredRun:
    cells = [
        MeasuredCell(
            cell=cell,
            outcome=outcome(cell),
            findings=findings(cell),
            measurements=tuple(
                Measurement(
                    stream=cell.placed[0].stream.name,
                    direction="write" if cell.placed[0].stream.writes else "read",
                    metric=metric,
                    value=value_of(cell, metric),
                    io_count=20,
                    reason="" if value_of(cell, metric) is not None else "nobody knows",
                )
                for metric in metrics
            ),
            histograms=(),
            after_trim=after_trim(cell),
        )
        for cell in plan.cells
        if cell.purpose == "measure"
    ]
    related = with_relations(cells, plan)
    return MeasuredRun(
        record=records.a_run_record(plan),
        end=records.an_end_record(),
        cells=related,
        summaries=summarise(plan, related),
        damage=(),
    )


def only(run: MeasuredRun, timeline: Timeline = NO_TIMELINE) -> Reading:
    (reading,) = read_probes(run, timeline)
    return reading


def said(reading: Reading) -> str:
    return " ".join(reading.sentences)


def wobble(cell: Cell) -> float:
    """The repetitions differ a little, each in its own way."""
    return 1 + 0.02 * (cell.repetition - 2)


# --- indirection unit


def rates(below: dict[SweepValue, float]) -> ValueOf:
    """IOPS that fall as writes grow, but for those below a unit."""

    def value(cell: Cell, _metric: str) -> float:
        size = cell.parameters["block_size"]
        return 20_000 / (1 + float(size) / 65536) * below.get(size, 1.0) * wobble(cell)

    return value


@pytest.mark.parametrize("unit", [4 * KIB, 16 * KIB, 32 * KIB])
def test_writes_below_a_unit_that_cost_more_show_the_unit(unit: int) -> None:
    sizes = (512, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB)
    slow: dict[SweepValue, float] = {size: 0.5 for size in sizes if size < unit}
    run = a_run(a_plan("indirection-unit"), rates(slow), metrics=["iops"])
    reading = only(run)
    assert reading.answer == "seen"
    assert f"A step at {unit // KIB} KiB" in said(reading)
    assert "range of n=3" in said(reading)
    assert reading.caveats


def test_a_fixed_cost_per_write_is_no_step() -> None:
    reading = only(a_run(a_plan("indirection-unit"), rates({}), metrics=["iops"]))
    assert reading.answer == "not-seen"
    assert "No step seen: from 512 B to 64 KiB" in said(reading)


def test_a_step_that_one_repetition_does_not_show_is_none() -> None:
    def value(cell: Cell, _metric: str) -> float:
        slow = cell.parameters["block_size"] == 2 * KIB and cell.repetition != 2
        return 500.0 if slow else 1000.0

    assert only(a_run(a_plan("indirection-unit"), value, metrics=["iops"])).answer == "not-seen"


def test_sizes_below_the_drives_own_block_are_named() -> None:
    plan = a_plan("indirection-unit", block=4096)
    reading = only(a_run(plan, rates({4096: 0.4}), metrics=["iops"]))
    assert "A step at 8 KiB" in said(reading)
    assert "512 B is not supported here: its 512 B blocks are not a multiple" in said(reading)


@pytest.mark.parametrize("repetitions", [1, 2])
def test_a_step_of_few_repetitions_may_be_chance(repetitions: int) -> None:
    plan = a_plan("indirection-unit", repetitions=repetitions)
    reading = only(a_run(plan, rates({2 * KIB: 0.4, KIB: 0.4, 512: 0.4}), metrics=["iops"]))
    assert reading.answer == "cannot-say"
    assert "Perhaps a step at 4 KiB" in said(reading)
    assert ("n=1, no interval" if repetitions == 1 else "range of n=2") in said(reading)


def noisy_rates(seed: int, spread: float, below: dict[SweepValue, float]) -> ValueOf:
    """Equal rates that vary by ``spread``, but for those below a unit."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, float] = {}

    def value(cell: Cell, _metric: str) -> float:
        if cell.cell_id not in drawn:
            drawn[cell.cell_id] = 1000 * float(np.exp(rng.normal(0, spread)))
        return drawn[cell.cell_id] * below.get(cell.parameters["block_size"], 1.0)

    return value


def test_rates_that_vary_by_chance_seldom_make_a_step() -> None:
    plan = a_plan("indirection-unit")
    answers = [
        only(a_run(plan, noisy_rates(seed, 0.25, {}), metrics=["iops"])) for seed in range(200)
    ]
    assert sum(reading.answer == "seen" for reading in answers) <= 14  # 5 %, and twice its spread
    perhaps = [reading for reading in answers if "Perhaps a step at" in said(reading)]
    assert len(perhaps) > 40
    assert {reading.answer for reading in perhaps} <= {"cannot-say"}
    assert "give more --repetitions" in said(perhaps[0])


def test_a_large_step_is_told_from_the_chance_of_three_repetitions() -> None:
    plan = a_plan("indirection-unit")
    slow: dict[SweepValue, float] = dict.fromkeys((512, KIB, 2 * KIB), 0.4)
    answers = [
        only(a_run(plan, noisy_rates(seed, 0.1, slow), metrics=["iops"])) for seed in range(50)
    ]
    assert all("A step at 4 KiB" in said(reading) for reading in answers)


def test_without_rates_nothing_is_said() -> None:
    run = a_run(a_plan("indirection-unit"), metrics=["iops"], outcome=lambda _: "invalid")
    assert only(run).answer == "cannot-say"


# --- idle


def sleepy(ratio: float) -> ValueOf:
    def value(cell: Cell, _metric: str) -> float:
        return (ratio if cell.parameters["pause"] == 1.0 else 1.0) * 100e-6 * wobble(cell)

    return value


def test_what_a_sleep_costs_is_seen_with_its_reads() -> None:
    reading = only(a_run(a_plan("idle-then-read"), sleepy(3.0), metrics=["latency_mean"]))
    assert reading.answer == "seen"
    assert "after 1.00 s a read takes 300 us" in said(reading)
    assert "60 reads in all" in said(reading)


def test_a_drive_that_does_not_sleep_shows_no_price() -> None:
    reading = only(a_run(a_plan("idle-then-read"), sleepy(1.2), metrics=["latency_mean"]))
    assert reading.answer == "not-seen"
    assert said(reading).count("no clear difference") == 3


# --- map


def rising_from(span: float) -> ValueOf:
    def value(cell: Cell, _metric: str) -> float:
        size = float(cell.parameters["span_size"])
        return (100e-6 if size <= span else 300e-6) * wobble(cell)

    return value


def test_a_flat_map_names_how_far_was_looked() -> None:
    reading = only(a_run(a_plan("map-span"), rising_from(1e18), metrics=["latency_p50"]))
    assert reading.answer == "not-seen"
    assert "no knee from 16 MiB to 2 GiB" in said(reading)
    assert any("beyond" in caveat for caveat in reading.caveats)


# --- trims


def looked(**counts: int) -> tuple[AfterTrim, ...]:
    return (replace(AfterTrim(stream="trim", unit_bytes=4096, reads=3, units=100), **counts),)


def test_zeroes_on_a_file_say_nothing_of_the_drive() -> None:
    run = a_run(a_plan("deallocate-then-read"), after_trim=lambda _: looked(zero=100))
    reading = only(run)
    assert "Of 300 trimmed blocks of 4 KiB, 300 return zeroes. Each returned the same" in said(
        reading
    )
    assert "file system's" in reading.caveats[0]


def test_old_data_and_changing_data_are_told() -> None:
    plan = a_plan("deallocate-then-read", kind="block")
    run = a_run(plan, after_trim=lambda _: looked(zero=60, old=40, changed=5, zero_before=1))
    text = said(only(run))
    assert "180 return zeroes; 120 return what stood there before" in text
    assert "15 did not return the same in every one of 3 reads" in text
    assert "120 blocks were not emptied" in text
    assert "3 of the blocks were zeroes before" in only(run).caveats[0]


def test_trims_that_nobody_read_have_a_reason() -> None:
    why = (AfterTrim(stream="trim", unit_bytes=4096, reason="O_DIRECT does not work here"),)
    reading = only(a_run(a_plan("deallocate-then-read"), after_trim=lambda _: why))
    assert reading.answer == "cannot-say"
    assert "O_DIRECT does not work here" in said(reading)


# --- sustained writes


def written(plan: Plan, rates_of: Callable[[int], Sequence[float]]) -> Timeline:
    """Windows of a second with so many bytes per second, by repetition."""
    cells = []
    for cell in plan.cells:
        if cell.purpose != "measure":
            continue
        windows = tuple(
            Window(
                begin_s=float(place),
                end_s=place + 1.0,
                rate=rate / MIB,
                count=round(rate / MIB),
                percentiles_s=(None, None, None),
            )
            for place, rate in enumerate(rates_of(cell.repetition))
        )
        stream = StreamTimeline(stream="write", direction="write", what="I/Os", windows=windows)
        cells.append(
            CellTimeline(cell=cell, begin_s=0.0, end_s=30.0, streams=(stream,), health=None)
        )
    return Timeline(cells=tuple(cells))


def test_a_planted_cliff_is_told_with_bytes_and_both_levels() -> None:
    plan = a_plan("sustained-write")
    timeline = written(plan, lambda _: [2e9] * 10 + [5e8] * 20)
    reading = only(a_run(plan), timeline)
    assert reading.answer == "seen"
    assert "A cliff in 3 of 3 repetitions." in said(reading)
    assert "after 18.63 GiB (10 s) it falls from 2.00 GB/s to 500 MB/s (25%)" in said(reading)


def falls_in(*repetitions: int, to: float = 5e8) -> Callable[[int], Sequence[float]]:
    return lambda n: [2e9] * 10 + [to if n in repetitions else 2e9] * 20


def test_a_cliff_in_one_of_several_repetitions_may_be_chance() -> None:
    plan = a_plan("sustained-write")
    once = only(a_run(plan), written(plan, falls_in(1)))
    assert once.answer == "cannot-say"
    assert once.sentences[0] == "A cliff in 1 of 3 repetitions."
    assert "One alone may be chance, or the cache was still full in the others" in said(once)
    assert only(a_run(plan), written(plan, falls_in(1, 3))).answer == "seen"
    plan = a_plan("sustained-write", repetitions=2)
    assert only(a_run(plan), written(plan, falls_in(2))).answer == "cannot-say"
    assert only(a_run(plan), written(plan, falls_in(1, 2))).answer == "seen"


def test_one_repetition_alone_may_show_a_clear_cliff() -> None:
    plan = a_plan("sustained-write", repetitions=1)
    clear = only(a_run(plan), written(plan, falls_in(1)))
    assert clear.answer == "seen"
    assert clear.sentences[0] == "A cliff in 1 of 1 repetitions."
    assert "It was seen once" in said(clear)
    slight = only(a_run(plan), written(plan, falls_in(1, to=1.4e9)))
    assert slight.answer == "cannot-say"
    assert "One alone may be chance: give more" in said(slight)


def test_a_level_line_says_within_how_many_bytes_no_cliff_was_seen() -> None:
    plan = a_plan("sustained-write")
    reading = only(a_run(plan), written(plan, lambda _: [1e9, 1.1e9, 0.9e9] * 10))
    assert reading.answer == "not-seen"
    assert "No cliff was seen in 3 repetitions, each of at least 27.94 GiB" in said(reading)


def test_too_short_a_write_cannot_say() -> None:
    plan = a_plan("sustained-write")
    reading = only(a_run(plan), written(plan, lambda _: [1e9] * 4))
    assert reading.answer == "cannot-say"


# --- integrity


def test_a_run_whose_data_came_back_says_how_much_was_checked() -> None:
    run = a_run(a_plan("integrity-large", repetitions=1))
    assert "No: 2,866 blocks in 2 cells" in said(only(run))


def test_wrong_data_is_the_answer() -> None:
    wrong = Finding(check="read-back", severity="invalid", text="1 of 9 blocks did not read back")
    run = a_run(
        a_plan("integrity-large", repetitions=1),
        outcome=lambda cell: "failed" if cell.parameters["phase"] == "write" else "valid",
        findings=lambda cell: (wrong,) if cell.parameters["phase"] == "write" else (),
    )
    reading = only(run)
    assert "YES: in 1 of 2 cells other data came back" in said(reading)
    assert "1 of 9 blocks did not read back" in said(reading)


def test_a_run_without_probes_says_nothing() -> None:
    run = a_run(records.a_plan())
    assert read_probes(replace(run), NO_TIMELINE) == ()


def test_a_rise_that_is_not_steady_cannot_be_called_flat() -> None:
    def value(cell: Cell, _metric: str) -> float:
        size = float(cell.parameters["span_size"])
        return {1: 100e-6, 2: 250e-6, 3: 90e-6}.get(cell.repetition, 1e-4) * (
            1.0 if size < 2 * GIB else 1.9 - cell.repetition * 0.1
        )

    reading = only(a_run(a_plan("map-span"), value, metrics=["latency_p50"]))
    assert reading.answer in ("cannot-say", "seen")
    assert "no knee from" not in said(reading)


def test_repetitions_of_a_long_write_that_differ_are_told() -> None:
    plan = a_plan("sustained-write")
    rate = {1: 2e9, 2: 2e9, 3: 5e8}
    reading = only(a_run(plan), written(plan, lambda repetition: [rate[repetition]] * 30))
    assert reading.answer == "not-seen"
    assert "differ by a factor of 4: a cliff may lie between them" in said(reading)


def test_reads_without_a_percentile_beside_the_writer_say_why() -> None:
    reading = only(a_run(a_plan("read-under-write"), metrics=["latency_p50", "latency_p99"]))
    assert reading.answer == "cannot-say"
    assert "No median to compare: " in said(reading)
    assert "nobody knows" in said(reading)


@pytest.mark.parametrize(("ratio", "answer"), [(3.0, "seen"), (1.0, "not-seen")])
def test_what_a_writer_costs_is_a_ratio_of_reads_that_do_not_overlap(
    ratio: float, answer: str
) -> None:
    def value(cell: Cell, _metric: str) -> float:
        return (ratio if cell.alone is None else 1.0) * 1e-4 * wobble(cell)

    plan = a_plan("read-under-write")
    reading = only(a_run(plan, value, metrics=["latency_p50", "latency_p99"]))
    assert reading.answer == answer
    median_only = only(a_run(plan, value, metrics=["latency_p50"]))
    assert median_only.answer == ("seen" if answer == "seen" else "cannot-say")
    assert "No p99 to compare" in said(median_only)
    if answer == "seen":
        assert "300 us (294 us to 306 us, range of n=3) beside the writer" in said(reading)
        assert "3 times, and the two do not overlap" in said(reading)


def with_facts(run: MeasuredRun, **values: str) -> MeasuredRun:
    facts = tuple(Fact(name=name, value=value) for name, value in values.items())
    return replace(run, record=replace(run.record, facts=facts))


def test_what_the_device_and_the_host_say_of_themselves_stands_beside_the_reading() -> None:
    run = with_facts(
        a_run(a_plan("indirection-unit"), rates({}), metrics=["iops"]),
        physical_block_bytes="4096",
        write_cache="write back",
        virtual_machine="yes",
    )
    reading = only(run)
    assert "The device itself names a physical block of 4 KiB." in reading.sentences
    assert reading.caveats[0] == "the drive's write cache is on"
    assert "virtual machine" in reading.caveats[-1]
    idle = a_run(a_plan("idle-then-read"), sleepy(3.0), metrics=["latency_mean"])
    reading = only(with_facts(idle, cpu_idle_exit_us="133"))
    assert "takes 133 us to leave" in reading.caveats[0]


@pytest.mark.parametrize("repetitions", [1, 2])
def test_a_difference_of_few_repetitions_may_be_chance(repetitions: int) -> None:
    def beside(cell: Cell, _metric: str) -> float:
        return (9.0 if cell.alone is None else 1.0) * 1e-4 * wobble(cell)

    for plan, value, metric in (
        (a_plan("read-under-write", repetitions=repetitions), beside, "latency_p50"),
        (a_plan("idle-then-read", repetitions=repetitions), sleepy(9.0), "latency_mean"),
    ):
        reading = only(a_run(plan, value, metrics=[metric]))
        assert reading.answer == "cannot-say"
        assert "ewer than 3 repetitions cannot tell" in said(reading)


def test_blocks_that_were_zeroes_before_the_trim_are_no_answer() -> None:
    plan = a_plan("deallocate-then-read", kind="block")
    run = a_run(plan, after_trim=lambda _: looked(zero=100, zero_before=100))
    assert only(run).answer == "cannot-say"


def test_a_difference_by_chance_is_seldom_seen() -> None:
    def chance(seed: int) -> ValueOf:
        rng = np.random.default_rng(seed)
        drawn: dict[tuple[str, str], float] = {}

        def value(cell: Cell, metric: str) -> float:
            key = cell.cell_id, metric
            if key not in drawn:
                drawn[key] = 1e-4 * float(np.exp(rng.normal(0, 0.4)))
            return drawn[key]

        return value

    for name, metrics in (
        ("read-under-write", ["latency_p50", "latency_p99"]),
        ("idle-then-read", ["latency_mean"]),
    ):
        plan = a_plan(name)
        answers = [only(a_run(plan, chance(seed), metrics=metrics)) for seed in range(300)]
        assert sum(reading.answer == "seen" for reading in answers) <= 24, name  # 5 % and two sigma
        unsure = [reading for reading in answers if reading.answer == "cannot-say"]
        assert unsure, name
        assert all("chance" in said(reading) for reading in unsure), name
