"""A measured run held against the role cards that come with kvbench."""

from kvbench.cli import output
from kvbench.errors import UsageError
from kvbench.measure.model import MeasuredRun
from kvbench.measure.roles import Judgement, judge
from kvbench.workload import cards
from kvbench.workload.roles import ControllerRequirement, RoleCard
from kvbench.workload.schema import ROLES


def judged(run: MeasuredRun) -> Judgement:
    """Return a run held against the role cards that can be read."""
    return judge(run, _role_cards(), _controller())


def _role_cards() -> list[RoleCard]:
    """Return the cards that can be read: a wrong one must not hide what was measured."""
    find = cards.finder()
    found = []
    for role in ROLES:
        try:
            found.append(cards.find_role_card(role, find))
        except UsageError as error:
            output.advise(f"the card of the role {role} is left out: {error}")
    return found


def _controller() -> tuple[ControllerRequirement, ...]:
    try:
        return cards.list_controller_requirements()
    except UsageError as error:
        output.advise(f"the controller requirements are left out: {error}")
        return ()
