"""Figures as PNG files: one per panel, on white, named by the figure's id."""

import io
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from kvbench.report import compare_view, html, view
from kvbench.report.matrix import matrix_figure
from kvbench.report.model import Figure, LinePanel
from kvbench.report.png import DPI, draw_png, file_names, pngs_of
from kvbench.report.points import Index
from kvbench.report.timeline_model import Band, TimeAxis, TimeLine, TimelinePanel, TimeMark
from tests.report.example import ALL, MATRIX, all_valid, job_texts, make_run
from tests.report.sides import SMALL, compared, drive


@pytest.fixture(scope="module")
def figures() -> list[Figure]:
    run = make_run(ALL[:4], judge=all_valid)
    matrix = matrix_figure(Index(make_run([MATRIX], judge=all_valid)), MATRIX, "matrix-1")
    assert matrix is not None
    return [*html.figures_of(view.build(run, job_texts(run))), matrix]


@pytest.fixture(scope="module")
def drawn(figures: list[Figure]) -> list[tuple[tuple[str, bytes], ...]]:
    return [tuple(pngs_of(figure)) for figure in figures]


def images(pngs: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Image.Image]]:
    for name, png in pngs:
        yield name, Image.open(io.BytesIO(png))


def test_each_panel_is_a_file_named_by_the_figure(
    figures: list[Figure], drawn: list[tuple[tuple[str, bytes], ...]]
) -> None:
    assert len(figures) >= 4
    names = [name for figure in figures for name in file_names(figure)]
    assert len(names) == len(set(names))
    for figure, pngs in zip(figures, drawn, strict=True):
        assert [name for name, _ in pngs] == list(file_names(figure))
        assert all(name.startswith(figure.figure_id) for name, _ in pngs)


def test_a_picture_is_large_on_white_and_says_what_it_shows(
    figures: list[Figure], drawn: list[tuple[tuple[str, bytes], ...]]
) -> None:
    for figure, pngs in zip(figures, drawn, strict=True):
        for (_, image), panel in zip(images(pngs), figure.panels, strict=True):
            assert image.width >= 4.5 * DPI
            pixels = np.asarray(image.convert("RGB"))
            assert (pixels[0] == 255).all()
            assert (pixels[:, 0] == 255).all()
            assert (pixels < 100).any()
            text = getattr(image, "text")  # noqa: B009 - of PNG images only
            assert panel.title in text["Title"]
            assert text["Description"] == panel.description[:4000]


def test_a_file_is_the_same_for_the_same_figure(
    figures: list[Figure], drawn: list[tuple[tuple[str, bytes], ...]]
) -> None:
    assert tuple(pngs_of(figures[0])) == drawn[0]


def test_grid_lines_are_faint(figures: list[Figure]) -> None:
    panel = next(p for f in figures for p in f.panels if isinstance(p, LinePanel))
    bare = replace(figures[0], panels=(panel,))
    ((_, image),) = images(pngs_of(bare))
    pixels = np.asarray(image.convert("RGB"))
    faint = ((pixels > 0xC8) & (pixels < 0xFA)).all(axis=2)
    dark = (pixels < 0x60).all(axis=2)
    assert (faint.mean(axis=1) > 0.5).any()  # a grid line from side to side
    assert (dark.mean(axis=1) > 0.5).sum() <= 3  # but the axis itself none is dark


def test_a_run_over_time_is_drawn_wide() -> None:
    line = TimeLine(label="reads", colour=0, steps=False, pieces=(((0.0, 5.0), (0.001, 0.002)),))
    axis = TimeAxis(label="latency", unit="s", scale="log", lines=(line,))
    panel = TimelinePanel(
        title="over time",
        description="two reads",
        end_s=5.0,
        axes=(axis, axis),
        bands=(Band(begin_s=1, end_s=2, level="bad"),),
        marks=(TimeMark(at_s=3, label="reset"),),
    )
    image = Image.open(io.BytesIO(draw_png(panel, "The run over time")))
    assert image.width > 9 * DPI


def test_hostile_names_are_drawn_as_text() -> None:
    name = "$x^2$ <b> \u202e \u05d0 \x00" + "y" * 10_000
    run = make_run(SMALL[:1], judge=all_valid)
    figure = html.figures_of(view.build(run, job_texts(run)))[0]
    figure = replace(figure, title=name[:300])
    for _, image in images(pngs_of(figure)):
        assert image.width < 4000
        assert image.height < 4000


def test_figures_of_a_comparison_have_files_too() -> None:
    runs = [drive("alpha", jitter=1), drive("beta", slower=0.7, jitter=2)]
    found = compare_view.build(compared(runs), runs)
    names = [name for role in found.roles for f in role.figures for name in file_names(f)]
    assert names
    assert len(names) == len(set(names))
