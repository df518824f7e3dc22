"""What the points of a drawing say, and whose they are."""

import xml.etree.ElementTree as ET

from matplotlib.figure import Figure as Drawing
from msgspec.structs import replace

from kvbench.report import figures
from kvbench.report.hover import note
from kvbench.report.svg import to_svg
from tests.report.page import Page
from tests.report.test_figures import BARS, CURVES, DEPTH


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own drawing


def titles(svg: str, tag: str = "use") -> list[str]:
    root = parsed(svg)
    return [
        part.findtext("title") or "" for part in root.iter(tag) if part.find("title") is not None
    ]


def test_every_repetition_says_its_value_with_unit_place_and_n() -> None:
    said = titles(figures.draw(DEPTH, "one"))
    dots = sum(len(series.dots) for series in DEPTH.series)
    medians = sum(len(series.x) for series in DEPTH.series)
    assert len(said) == dots + medians
    assert "512 B\nIOPS: 8.00k /s\nqueue depth: 1\none of n=2 repetitions" in said
    assert "512 B\nIOPS: 60.0k /s\nqueue depth: 8\nmedian of n=1" in said


def test_a_percentile_curve_says_its_values_at_the_usual_places() -> None:
    svg = figures.draw(CURVES, "one")
    said = titles(svg)
    assert "4 KiB, depth 1\n300 µs at 99 %\nmedian of n=2 repetitions" in said
    assert "4 KiB, depth 1\nrepetition 2 of 2" in titles(svg, "g")


def test_bars_and_their_dots_speak() -> None:
    svg = figures.draw(BARS, "one")
    assert "lookup, mixed\np99 latency: 220 µs\nmedian of n=3" in titles(svg, "g")
    assert "lookup, mixed\np99 latency: 260 µs\none of n=3 repetitions" in titles(svg)


def test_all_parts_of_a_series_carry_its_number() -> None:
    root = parsed(figures.draw(DEPTH, "one"))
    sides = [part.attrib["data-side"] for part in root.iter() if "data-side" in part.attrib]
    # line, places of medians, dots, and two parts of the legend
    assert sorted(sides) == ["0"] * 5 + ["1"] * 5


def test_a_marker_outside_the_axes_takes_no_label_of_another() -> None:
    drawing = Drawing()
    axes = drawing.add_axes((0, 0, 1, 1))
    axes.set_yscale("log")
    (line,) = axes.plot([1, 2, 3], [1.0, 0.0, 2.0], "o")
    note(line, ["one", "two", "three"])
    svg = to_svg(drawing, figure_id="x", title="t", description="d")
    assert titles(svg) == []


def test_a_label_is_text_and_the_note_leaves_no_id() -> None:
    label = "<b>&\"' ⟨U+202E⟩"
    series = replace(DEPTH.series[0], label=label)
    svg = figures.draw(replace(DEPTH, series=(series,)), "one")
    assert not Page(svg).named("b")
    assert titles(svg)[0].startswith(label)
    assert "kvbench-note" not in svg


def test_markers_say_their_style_once() -> None:
    root = parsed(figures.draw(DEPTH, "one"))
    groups = [part for part in root.iter("g") if len(part.findall("use")) > 1]
    assert groups
    assert all("style" not in marker.attrib for group in groups for marker in group.findall("use"))
