"""How the numbers were made, in plain words, saying only what applies to this run.  Pure."""

from kvbench.measure.model import MeasuredRun
from kvbench.measure.precision import STOPPED_COVERAGE
from kvbench.metrics import BEYOND_MIN
from kvbench.report.words import short
from kvbench.workload.schema import Stream


def method_words(run: MeasuredRun) -> tuple[tuple[str, str], ...]:
    """Return (term, explanation) for what a reader must know to judge the numbers."""
    plan = run.record.plan
    ceilings = sum(cell.purpose == "ceiling" for cell in plan.cells)
    words = [
        (
            "Sample",
            "The repetition is the statistical sample, not the I/O. Each number is the median over "
            f"the repetitions that count ({plan.repetitions} planned), with their range, or from 6 "
            "repetitions on a distribution-free 95 % interval of the median.",
        ),
        (
            "Order",
            f"Each repetition is one pass over all cells, shuffled by the plan's seed {plan.seed}, "
            "so that a drifting device favours no workload. fio draws other offsets in every cell.",
        ),
        (
            "Checks",
            "After every cell, what was asked is compared with what was got. A cell that fails is "
            "invalid: it is kept and shown here, and no summary uses it. A doubtful cell is used, "
            "and its mark stands beside every number made from it.",
        ),
        (
            "Percentiles",
            "They are read from fio's full histograms, per repetition, and are never averaged. One "
            f"is shown only when at least {BEYOND_MIN} I/Os lie beyond it (p99.9 needs 10,000 "
            'I/Os); else it is "too few I/Os". fio cannot see beyond 17.1 s: such a latency is '
            '"≥ 17.1 s".',
        ),
        ("Latency", "From the submission of an I/O to its reaping, as the application sees it."),
        (
            "Units",
            "KiB, MiB and GiB are powers of 1024. KB/s, MB/s and GB/s are powers of 1000. "
            "IOPS with k, M or G are thousands, millions or billions of I/Os per second.",
        ),
    ]
    if plan.until_precise is not None:
        text = (
            "The run was to end once every interval was narrower than "
            f"{100 * plan.until_precise:g} % of its median. Intervals that are narrow by chance "
            f"end it sooner, so where it ended by itself {STOPPED_COVERAGE}."
        )
        words.append(("Until precise", text))
    streams = {
        w.name: [p.stream for c in plan.cells if c.workload == w.name for p in c.placed]
        for w in plan.workloads
    }

    def users(wanted: str) -> str:
        return ", ".join(
            short(name) for name, own in streams.items() if any(_has(s, wanted) for s in own)
        )

    if names := users("throughput"):
        text = (
            "Used to find a peak: registered files and buffers, no random map, I/Os submitted "
            "and reaped in batches, with polling above depth 1. Such rates are higher, and their "
            "latencies longer, than those of a program that submits I/Os one by one. "
            f"Workloads: {names}."
        )
        words.append(("Throughput shape", text))
    if names := users("barrier"):
        text = (
            "A request is a group of I/Os submitted together; the next waits for all of them. Its "
            "time is that of its slowest I/O; of several steps one after the other, the sum of "
            f"theirs. Workloads: {names}."
        )
        words.append(("Request time", text))
    if names := users("open loop"):
        text = (
            "I/Os arrive at a fixed mean rate (Poisson), whether or not earlier ones are done, so "
            f"waiting is part of the latency. Workloads: {names}."
        )
        words.append(("Open loop", text))
    if names := users("compute"):
        text = (
            "Computed, not waited for: from the times of the steps, loaded back to back, follows "
            "how long a GPU that computes so long per step would wait for data. "
            f"Workloads: {names}."
        )
        words.append(("Stall", text))
    if names := ", ".join(short(w.name) for w in plan.workloads if w.load is not None):
        text = (
            "The peak is a closed loop. The shares are open loops at a rate that follows from the "
            "peak of the same repetition. The usable rate is the highest one that a bounded search "
            f"found to keep the tail within the limit. Workloads: {names}."
        )
        words.append(("Load", text))
    if names := ", ".join(short(w.name) for w in plan.workloads if w.matrix):
        text = (
            "Each victim is measured by itself and beside each aggressor; a ratio is of two cells "
            f"of one repetition. Workloads: {names}."
        )
        words.append(("Victims and aggressors", text))
    if isolated := ", ".join(short(w.name) for w in plan.workloads if w.isolate):
        text = f"Each stream is measured by itself and beside the others. Workloads: {isolated}."
        words.append(("Tenants", text))
    if ceilings:
        text = (
            f"{ceilings} cells with fio's null engine and the same job shapes tell what this host "
            "can generate. A cell that comes close to it measures the host, not the target."
        )
        words.append(("Host ceiling", text))
    return tuple(words)


def _has(stream: Stream, what: str) -> bool:
    match what:
        case "throughput":
            return stream.shape == "throughput"
        case "barrier":
            return stream.barrier
        case "compute":
            return stream.compute_s is not None
        case _:
            return stream.rate_iops is not None
