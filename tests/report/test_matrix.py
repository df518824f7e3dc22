"""Victims beside aggressors, as data and as a page."""

import re
from pathlib import Path
from typing import cast

import pytest

from kvbench.report import html, text, view
from kvbench.report.matrix import KEY, STEPS, matrix_figure
from kvbench.report.model import Figure, HeatPanel
from kvbench.report.points import Index
from tests.report.example import MATRIX, TENANTS, all_valid, job_texts, make_run
from tests.report.page import Page


@pytest.fixture(scope="module")
def figure() -> Figure:
    found = matrix_figure(Index(make_run([MATRIX], judge=all_valid)), MATRIX, "matrix-1")
    assert found is not None
    return found


def test_every_pair_has_a_cell_with_text_and_a_level(figure: Figure) -> None:
    (panel,) = figure.panels
    heat = cast("HeatPanel", panel)
    assert heat.columns == ("writer", "big-reads", "trimmer")
    assert [row[0] for row in heat.rows] == ["rows", "pages", "blocks"]
    for _, _, cells in heat.rows:
        assert all(cell.text.endswith(" x") and "n=3" in cell.detail for cell in cells)
        assert [cell.level for cell in cells] == sorted(cell.level or 0 for cell in cells)
    assert len(KEY) == len(STEPS) + 1


def test_a_victim_with_too_few_ios_for_a_p999_is_told_by_its_p99(figure: Figure) -> None:
    heat = cast("HeatPanel", figure.panels[0])
    assert [row[1].partition(",")[0] for row in heat.rows] == ["p99.9", "p99.9", "p99"]
    assert "p99 stands where" in figure.how_to_read


def test_a_pair_that_was_not_run_says_so() -> None:
    run = make_run([MATRIX], judge=all_valid, repetitions=1, cells_done=12)
    found = matrix_figure(Index(run), MATRIX, "matrix-1")
    assert found is not None
    heat = cast("HeatPanel", found.panels[0])
    cells = [cell for _, _, row in heat.rows for cell in row]
    assert [(cell.text, cell.level) for cell in cells].count(("not run", None)) == 3


def test_a_workload_without_sides_has_no_matrix() -> None:
    assert matrix_figure(Index(make_run([TENANTS])), TENANTS, "matrix-1") is None


def test_rows_are_of_victims_in_pairs_and_of_everybody_alone() -> None:
    run = make_run([MATRIX], judge=all_valid)
    (table,) = view.build(run, job_texts(run)).roles[0].tables
    settings = [row.setting for row in table.groups[0].rows]
    assert settings.count("alone") == 6
    assert settings.count("beside writer") == 3
    assert {column.metric for column in table.columns} >= {"latency_p99.9", "jain_index"}


def test_the_page_and_the_terminal_have_the_matrix() -> None:
    run = make_run([MATRIX], judge=all_valid)
    report = view.build(run, job_texts(run))
    page = Page(html.render(report))
    assert page.problems == []
    tables = [a for a in page.named("table") if a.get("class") == "heat"]
    assert len(tables) == 1
    assert "5 x and more" in page.text("p")
    shown = text.render(report)
    assert re.search(r"rows \(p99\.9, alone .*\): [\d.]+ x beside writer", shown)
    assert max(map(len, shown.splitlines())) <= text.COLUMNS


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_ink_on_every_shade_can_be_read_in_both_schemes() -> None:
    css = Path(html.__file__).with_name("report.css").read_text()
    inks = re.findall(r"--ink: (#\w{6})", css)
    shades = [re.findall(r"--heat\d: (#\w{6})", line) for line in css.splitlines()]
    schemes = [found for found in shades if found]
    assert [len(found) for found in schemes] == [5, 5]
    for ink, own in zip(inks, schemes, strict=True):
        for shade in own:
            low, high = sorted((luminance(ink), luminance(shade)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, shade
