"""Drawings: labels, units and series, not pixels."""

import subprocess
import sys

import matplotlib as mpl
import pytest
from msgspec.structs import replace

from kvbench.report import figures
from kvbench.report.model import (
    Bar,
    BarGroup,
    BarPanel,
    Curve,
    CurvePanel,
    LinePanel,
    LineSeries,
)
from tests.report.page import Page

CURVE = Curve(
    label="4 KiB, depth 1",
    colour=0,
    dashed=False,
    percent=(50.0, 90.0, 99.0, 99.9),
    latency_s=(80e-6, 100e-6, 300e-6, 2e-3),
    repetitions=(((50.0, 99.0), (70e-6, 280e-6)), ((50.0, 99.0), (90e-6, 320e-6))),
)
CURVES = CurvePanel(
    title="reads: latency percentiles",
    description="80 µs at 50 %",
    x_label="share of I/Os that were at most this slow (%)",
    y_label="latency (log scale)",
    curves=(CURVE, replace(CURVE, label="4 KiB, depth 8", colour=1)),
)
DEPTH = LinePanel(
    title="IOPS against queue depth",
    description="more is more",
    x_label="queue depth (I/Os in flight per job)",
    y_label="IOPS (1/s)",
    unit="1/s",
    from_zero=True,
    series=(
        LineSeries(
            label="512 B",
            colour=0,
            variant=0,
            x=(1.0, 8.0, 64.0),
            median=(9e3, 6e4, 9e4),
            dots=((1.0, 8e3), (1.0, 1e4), (8.0, 6e4), (64.0, 9e4)),
        ),
        LineSeries(
            label="4 KiB",
            colour=1,
            variant=0,
            x=(1.0, 8.0),
            median=(8e3, 5e4),
            dots=((1.0, 8e3), (8.0, 5e4)),
        ),
    ),
)
BARS = BarPanel(
    title="latency of each tenant",
    description="twice as long",
    what="latency",
    groups=(
        BarGroup(
            label="lookup",
            metric="latency_p99",
            unit="s",
            bars=(
                Bar(label="alone", colour=0, median=1e-4, dots=(0.9e-4, 1e-4, 1.1e-4)),
                Bar(label="mixed", colour=1, median=2.2e-4, dots=(2e-4, 2.2e-4, 2.6e-4)),
            ),
        ),
        BarGroup(
            label="writer",
            metric="bandwidth",
            unit="B/s",
            bars=(
                Bar(label="alone", colour=0, median=2e9, dots=(2e9,)),
                Bar(label="mixed", colour=1, median=None, dots=()),
            ),
        ),
    ),
)


def texts(svg: str) -> list[str]:
    page = Page(svg)
    assert page.problems == []
    return [text.strip() for path, text in page.texts if path.split()[-1] in ("text", "tspan")]


def paths(svg: str, colour: int) -> int:
    """Return how many lines are drawn in one colour, those of the legend among them."""
    found = [a.get("style", "") for a in Page(svg).named("path")]
    return sum(f"stroke: var(--c{colour}," in style and "fill: none" in style for style in found)


def test_curves_have_labels_units_and_nines_on_the_axis() -> None:
    shown = texts(figures.draw(CURVES, "one"))
    assert CURVES.x_label in shown
    assert CURVES.y_label in shown
    assert {"50", "90", "99", "99.9"} <= set(shown)
    assert {"100 µs", "1 ms"} <= set(shown)
    assert {"4 KiB, depth 1", "4 KiB, depth 8"} <= set(shown)


def test_every_repetition_is_a_thin_line_beside_the_bold_one() -> None:
    assert paths(figures.draw(CURVES, "one"), 0) == 4  # bold, two repetitions, legend


def test_rates_start_at_zero_and_depths_are_named() -> None:
    shown = texts(figures.draw(DEPTH, "one"))
    assert {"0", "1", "8", "64"} <= set(shown)
    assert {"20k", "40k", "60k", "80k"} <= set(shown)
    assert DEPTH.x_label in shown
    assert DEPTH.y_label in shown


def test_every_repetition_is_a_dot() -> None:
    page = Page(figures.draw(DEPTH, "one"))
    assert len(page.named("use")) >= 6


def test_a_latency_against_depth_is_logarithmic_with_units() -> None:
    latency = replace(DEPTH, unit="s", from_zero=False, y_label="p99 latency (log scale)")
    series = tuple(
        replace(
            s,
            median=tuple(m / 1e8 for m in s.median),
            dots=tuple((d, v / 1e8) for d, v in s.dots),
        )
        for s in latency.series
    )
    shown = texts(figures.draw(replace(latency, series=series), "one"))
    assert {"100 µs", "200 µs", "500 µs"} <= set(shown)
    assert "0" not in shown


def test_tenants_have_axes_of_their_own_from_zero() -> None:
    shown = texts(figures.draw(BARS, "one"))
    assert shown.count("0") == 2
    assert shown.count("alone") == 2
    assert shown.count("mixed") == 2
    assert {"p99 latency", "bandwidth", "100 µs", "1 GB/s"} <= set(shown)
    assert {"no", "number"} <= set(shown)


def test_a_single_line_needs_no_legend() -> None:
    shown = texts(figures.draw(replace(CURVES, curves=(CURVE,)), "one"))
    assert CURVE.label not in shown


def test_names_are_text_and_not_markup_or_mathematics() -> None:
    label = "$x^2$ <b>&amp; 測試"
    panel = replace(CURVES, curves=(replace(CURVE, label=label), CURVE), title="<i>")
    svg = figures.draw(panel, "one")
    assert label in texts(svg)
    assert not Page(svg).named("b")
    assert not Page(svg).named("i")


def test_ids_carry_the_name_of_the_figure() -> None:
    ids = [a["id"] for _, a in Page(figures.draw(DEPTH, "fig-7")).elements if "id" in a]
    assert ids
    assert all(name.startswith("fig-7-") for name in ids)


@pytest.mark.parametrize("panel", [CURVES, DEPTH, BARS])
def test_a_drawing_leaves_no_trace_in_matplotlib(
    panel: CurvePanel | LinePanel | BarPanel,
) -> None:
    before = dict(mpl.rcParams)
    first = figures.draw(panel, "one")
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"font.size": 30, "axes.grid": False}):
        assert figures.draw(panel, "one") == first


def test_pyplot_is_never_imported() -> None:
    code = "import kvbench.report.html, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
