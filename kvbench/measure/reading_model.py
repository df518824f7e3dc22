"""What a probe says in plain language.  Data only."""

from typing import Literal

from msgspec import Struct

# seen: what the probe looks for is there; not-seen: it is not, as far as this run reaches;
# cannot-say: the run does not tell
Answer = Literal["seen", "not-seen", "cannot-say"]


class Reading(Struct, frozen=True, kw_only=True):
    """One answer of one probe: what was seen, in whole sentences, and what can mislead it."""

    workload: str
    question: str
    answer: Answer
    sentences: tuple[str, ...]
    caveats: tuple[str, ...]
