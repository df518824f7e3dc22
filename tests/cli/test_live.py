"""What a run shows while it runs."""

import io

import pytest
from msgspec.structs import replace

from kvbench.cli.live import LiveView, drive_words
from kvbench.fio.launch import LiveCounters
from kvbench.host.health_model import HealthSample
from kvbench.host.model import DeviceCounters
from tests.records import a_plan

FIRST = DeviceCounters(
    read_ios=100,
    read_sectors=0,
    write_ios=50,
    write_sectors=0,
    read_ticks_ms=1000,
    write_ticks_ms=500,
)
LATER = replace(FIRST, read_ios=1100, write_ios=1050, read_ticks_ms=1200, write_ticks_ms=600)


def samples(*counters: DeviceCounters | None, heat: float | None = None) -> list[HealthSample]:
    return [
        HealthSample(at_s=float(place), counters=one, temperature_c=heat)
        for place, one in enumerate(counters)
    ]


def test_the_latency_of_the_device_is_of_the_last_second() -> None:
    early = replace(FIRST, read_ios=0, read_ticks_ms=0)
    assert drive_words(samples(early, FIRST, LATER)) == "device 150 us"  # 300 ms over 2,000 I/Os


@pytest.mark.parametrize(
    "counters",
    [
        (),
        (FIRST,),
        (FIRST, FIRST),
        (None, LATER),
        (FIRST, replace(LATER, write_ticks_ms=None)),
    ],
)
def test_what_the_kernel_does_not_tell_is_not_shown(
    counters: tuple[DeviceCounters | None, ...],
) -> None:
    assert drive_words(samples(*counters)) == ""


def test_a_temperature_is_shown_where_the_drive_has_one() -> None:
    assert drive_words(samples(FIRST, LATER, heat=41.85)) == "device 150 us, 42 C"
    assert drive_words(samples(None, heat=0.0)) == "0 C"


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def shown(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool) -> str:
    """Return all that is written while one cell runs."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.stderr", screen)
    cell = a_plan().cells[-1]
    with LiveView(quiet=quiet, repetitions=2) as view:
        view.cell_started(cell, 3, 4, 9.0)
        for elapsed, moved in ((0.5, 4096 * 100), (1.0, 4096 * 1100)):
            counters = LiveCounters(elapsed_s=elapsed, read_bytes=moved, write_bytes=0)
            view.cell_running(cell, counters, samples(FIRST, LATER, heat=41.0))
        assert view._progress is None or view._progress.finished is False
        if view._progress is not None:
            view._progress.refresh()
    return screen.getvalue()


def test_a_terminal_shows_rate_latency_temperature_cells_and_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = shown(Terminal(), monkeypatch, quiet=False)
    for part in ("cell 3 of 4", "IOPS", "MB/s", "device 150 us", "41 C", "8 s left"):
        assert part in text
    assert "\a" not in text


def test_elsewhere_it_is_one_plain_line_per_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(io.StringIO(), monkeypatch, quiet=False)
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


@pytest.mark.parametrize("screen", [Terminal(), io.StringIO()])
def test_quiet_shows_nothing(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(screen, monkeypatch, quiet=True) == ""
