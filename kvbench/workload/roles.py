"""The types that a role card and the controller file become.  Data only: ``role_files`` loads.

A card says what a drive must reach in one role, level by level.  The five controller requirements
say which probes stand for what a host can only see from outside.
"""

from typing import Literal

from msgspec import Struct

from kvbench.metrics import METRICS
from kvbench.workload.schema import Evidence, Role, Stream, SweepValue

Bound = Literal["at_least", "at_most"]
Of = Literal["worst", "best"]
ControllerKey = Literal[
    "small-io-rate", "latency-spread", "map-growth", "gpu-submission", "tenant-isolation"
]

CONTROLLER_KEYS: tuple[ControllerKey, ...] = (
    "small-io-rate",
    "latency-spread",
    "map-growth",
    "gpu-submission",
    "tenant-isolation",
)


class Subject(Struct, frozen=True, kw_only=True):
    """The I/O that a number is about: one metric of one stream at the points that match ``at``.

    ``streams`` and ``swept`` are those of the catalogue's workload, so that a run which did other
    I/O under the same name is told apart.  ``swept`` holds "stream.field" names.
    """

    workload: str
    stream: str
    metric: str
    at: dict[str, SweepValue]  # parameters that must match, in stored form (sizes in bytes)
    streams: tuple[Stream, ...]
    swept: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The metric's unit."""
        return METRICS[self.metric].unit


class Requirement(Struct, frozen=True, kw_only=True):
    """One row of a card: a limit, why it is one, and what the limit rests on.

    ``of`` says which of the matching points decides: the worst (all must hold) or the best (one
    must).  ``limit`` is in the metric's unit, ``limit_text`` as the card writes it.
    """

    subject: Subject
    of: Of
    bound: Bound
    limit: float
    limit_text: str
    why: str
    source: str
    evidence: Evidence
    controller: ControllerKey | None = None


class Level(Struct, frozen=True, kw_only=True):
    """A named set of requirements that belong together."""

    name: str
    title: str
    summary: str
    source: str
    requirements: tuple[Requirement, ...]


class RoleCard(Struct, frozen=True, kw_only=True):
    """What a drive must reach in one role; the levels stand in order of demand."""

    role: Role
    summary: str
    levels: tuple[Level, ...]


class Probe(Struct, frozen=True, kw_only=True):
    """One number that stands for a controller requirement, at the points that match."""

    subject: Subject
    tells: str  # what the number tells of the controller


class ControllerRequirement(Struct, frozen=True, kw_only=True):
    """One requirement on a drive's controller and how far a host can look at it."""

    key: ControllerKey
    title: str
    asks: str
    confounders: str
    cannot_prove: str
    source: str
    probes: tuple[Probe, ...]
