"""The role cards and controller requirements that come with kvbench."""

from collections.abc import Callable
from functools import cache

from kvbench.document import found, suggestion
from kvbench.errors import UsageError
from kvbench.workload import catalog
from kvbench.workload.folder import data_folder
from kvbench.workload.role_files import load_controller, load_role_card
from kvbench.workload.roles import ControllerRequirement, RoleCard
from kvbench.workload.schema import ROLES, Role, Workload

ROLES_FOLDER = "roles"
CONTROLLER_FILE = "controller.toml"


def list_role_cards() -> list[RoleCard]:
    """Return the cards in the order of ``ROLES``.

    Raises:
        UsageError: a card, or a workload that it names, is wrong or missing.
    """
    find = finder()
    return [find_role_card(role, find) for role in ROLES]


def find_role_card(role: Role, find: Callable[[str], Workload] | None = None) -> RoleCard:
    """Return the card of one role.

    Raises:
        UsageError: as for ``list_role_cards``.
    """
    return load_role_card(data_folder() / ROLES_FOLDER / f"{role}.toml", find or finder())


def list_controller_requirements() -> tuple[ControllerRequirement, ...]:
    """Return the five controller requirements.

    Raises:
        UsageError: as for ``list_role_cards``.
    """
    return load_controller(data_folder() / CONTROLLER_FILE, finder())


def finder() -> Callable[[str], Workload]:
    """Return a lookup of workloads by name that reads each file once."""
    names = catalog.workload_names()

    @cache
    def find(name: str) -> Workload:
        if name not in names:  # a path is no name: a card means the catalogue's workloads
            raise UsageError(f"there is no workload {found(name)}", hint=suggestion(name, names))
        return catalog.find_workload(name)

    return find
