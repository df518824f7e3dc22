"""A preparation -> what was done, and its rounds as a figure.  Pure."""

from kvbench.report.model import Figure, LinePanel, LineSeries, PlainTable, PreparationView
from kvbench.report.steady import state_mark, with_mark
from kvbench.report.words import metric_label, quantity, sentence, short
from kvbench.stats.steady import RANGE_SHARE_MAX, SLOPE_SHARE_MAX, WINDOW_ROUNDS
from kvbench.store.preparation import STATE_WORDS, FillPass, Preparation, SteadyMetric
from kvbench.units import format_bandwidth, format_size, format_time

_RATES = ("iops", "bandwidth")


def preparation_view(preparation: Preparation) -> PreparationView:
    """Return what a reader sees of a preparation."""
    rounds = max((len(metric.values) for metric in preparation.metrics), default=0)
    state = (
        f"prepared {STATE_WORDS[preparation.state]}: {rounds} rounds of "
        f"{format_time(preparation.round_s)} of {short(preparation.workload)}"
    )
    facts = [("purge", sentence(preparation.purge.text))]
    facts += [
        (f"fill {number}", fill_words(one)) for number, one in enumerate(preparation.fills, start=1)
    ]
    facts.append(("coverage", sentence(preparation.coverage.text)))
    facts += [
        (metric_label(metric.metric), _metric_words(metric)) for metric in preparation.metrics
    ]
    facts.append(("state", state))
    return PreparationView(words=state, facts=tuple(facts), figure=_figure(preparation))


def fill_words(done: FillPass) -> str:
    """Return how a pass went."""
    rate = done.written_bytes / done.wall_s if done.wall_s > 0 else 0.0
    counted = "not counted by the device"
    if done.device_written_bytes is not None:
        counted = f"the device counted {format_size(done.device_written_bytes)}"
    return (
        f"{done.pattern}, blocks of {format_size(done.block_bytes)}: "
        f"{format_size(done.written_bytes)} in {format_time(done.wall_s)} "
        f"({format_bandwidth(rate)}), {counted}"
    )


def round_words(number: int, metrics: tuple[SteadyMetric, ...]) -> str:
    """Return what one more round shows."""
    parts = [
        f"{metric_label(one.metric)} {_value(one, one.values[-1])} ({steady_words(one)})"
        for one in metrics
    ]
    return f"round {number}: {', '.join(parts)}"


def steady_words(metric: SteadyMetric) -> str:
    """Return what the criterion says of a metric, with its numbers and their limits."""
    if metric.state == "too few rounds":
        have = len(metric.values) - metric.first_round + 1
        return f"{have} of {WINDOW_ROUNDS} rounds"
    if metric.range_share is None or metric.slope_share is None:
        return metric.state
    return (
        f"{metric.state}, range {100 * metric.range_share:.1f} % (limit "
        f"{100 * RANGE_SHARE_MAX:.0f}), slope {100 * metric.slope_share:+.1f} % (limit "
        f"{100 * SLOPE_SHARE_MAX:.0f})"
    )


def _metric_words(metric: SteadyMetric) -> str:
    window = ""
    if metric.mean is not None:
        last = metric.first_round + WINDOW_ROUNDS - 1
        window = f"mean {_value(metric, metric.mean)} of rounds {metric.first_round} to {last}, "
    short_of = metric.state == "too few rounds" and metric.reason
    why = f" ({sentence(metric.reason)})" if short_of else ""
    return f"{window}{steady_words(metric)}{why}"


def _value(metric: SteadyMetric, value: float | None) -> str:
    return "no value" if value is None else quantity(metric.metric, metric.unit, value)


def _figure(preparation: Preparation) -> Figure | None:
    panels = tuple(p for metric in preparation.metrics if (p := _panel(metric)) is not None)
    if not panels:
        return None
    figure = Figure(
        figure_id="steady-state",
        title="Rounds of the preparation",
        question="Did the device settle?",
        how_to_read=f"One point is one round. Over the last {WINDOW_ROUNDS} rounds the line marks "
        f"the mean and the strip 10 % to either side: steady is a range of at most "
        f"{100 * RANGE_SHARE_MAX:.0f} % of the mean and a fitted line that moves by at most "
        f"{100 * SLOPE_SHARE_MAX:.0f} % of it.",
        panels=panels,
        table=_table(preparation),
    )
    return with_mark(figure, state_mark(preparation.state))


def _panel(metric: SteadyMetric) -> LinePanel | None:
    """Return the rounds of one metric; fewer than two are no line."""
    points = [(n, v) for n, v in enumerate(metric.values, start=1) if v is not None]
    if len(points) < 2:
        return None
    label = metric_label(metric.metric)
    series = [
        LineSeries(
            label=label,
            colour=0,
            variant=0,
            x=tuple(float(n) for n, _ in points),
            median=tuple(v for _, v in points),
            dots=tuple((float(n), v) for n, v in points),
        )
    ]
    if metric.mean is not None:
        x = (float(metric.first_round), float(metric.first_round + WINDOW_ROUNDS - 1))
        half = RANGE_SHARE_MAX / 2 * metric.mean
        series.append(
            LineSeries(
                label=f"mean of the last {WINDOW_ROUNDS}, 10 % either side",
                colour=1,
                variant=1,
                x=x,
                median=(metric.mean,) * 2,
                low=(metric.mean - half,) * 2,
                high=(metric.mean + half,) * 2,
            )
        )
    first, last = _value(metric, points[0][1]), _value(metric, points[-1][1])
    return LinePanel(
        title=f"{label} per round",
        description=f"{first} in round {points[0][0]}, {last} in round {points[-1][0]}; "
        f"{steady_words(metric)}.",
        x_label="round",
        y_label=label if metric.metric in _RATES else f"{label} (log scale)",
        unit=metric.unit,
        from_zero=metric.metric in _RATES,
        series=tuple(series),
        x_scale="linear",
    )


def _table(preparation: Preparation) -> PlainTable:
    rounds = max((len(metric.values) for metric in preparation.metrics), default=0)
    return PlainTable(
        caption="Rounds of the preparation",
        head=("round", *(metric_label(metric.metric) for metric in preparation.metrics)),
        rows=tuple(
            (str(number + 1), *(_value(m, _at(m, number)) for m in preparation.metrics))
            for number in range(rounds)
        ),
    )


def _at(metric: SteadyMetric, place: int) -> float | None:
    return metric.values[place] if place < len(metric.values) else None
