"""A whole plan through a session, as ``kvbench run`` does it."""

from typing import Any

from kvbench.plan import Plan
from kvbench.session import Session
from kvbench.store.records import EndRecord


def run_plan(plan: Plan, **given: Any) -> EndRecord:  # noqa: ANN401 - what Session takes
    """Run every cell and return how the run ended; the arguments are those of ``Session``."""
    session = Session(plan, **given)
    session.run(plan.cells)
    return session.finish()
