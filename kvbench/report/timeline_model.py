"""A run over time as a reader sees it: axes one below the other that share the time.  Data only."""

from typing import Literal

from msgspec import Struct


class TimeLine(Struct, frozen=True, kw_only=True):
    """One quantity over time; ``pieces`` are (seconds, values), apart where nothing was seen.

    A piece of ``steps`` has the borders of its intervals in seconds, one more than values.
    """

    label: str
    colour: int
    steps: bool
    pieces: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]


class HeatStrip(Struct, frozen=True, kw_only=True):
    """A stretch of time and of an axis in which ``share`` (0 to 1) of what was seen lies."""

    begin_s: float
    end_s: float
    low: float
    high: float
    share: float


class TimeAxis(Struct, frozen=True, kw_only=True):
    """What is on one of the axes."""

    label: str
    unit: str
    scale: Literal["log", "zero", "free"]
    lines: tuple[TimeLine, ...]
    heat: tuple[HeatStrip, ...] = ()


class Band(Struct, frozen=True, kw_only=True):
    """A stretch of time that is marked."""

    begin_s: float
    end_s: float
    level: Literal["bad", "ceiling"]


class TimeMark(Struct, frozen=True, kw_only=True):
    """A moment that is marked on all axes."""

    at_s: float
    label: str


class TimeStrip(Struct, frozen=True, kw_only=True):
    """A stretch of time and what a pointer on it is told, in lines."""

    begin_s: float
    end_s: float
    text: str


class TimelinePanel(Struct, frozen=True, kw_only=True):
    """The whole drawing; ``key`` says what bands and marks are."""

    title: str
    description: str
    end_s: float
    axes: tuple[TimeAxis, ...]
    bands: tuple[Band, ...]
    marks: tuple[TimeMark, ...]
    strips: tuple[TimeStrip, ...] = ()
    mark: str = ""  # whether the device was steady, inside the drawing
