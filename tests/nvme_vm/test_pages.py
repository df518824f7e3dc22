"""The page of every run that a guest stored: whatever its drive did, it can be drawn."""

import pytest

from kvbench.cli.reporting import read_and_measure, with_all_figures
from kvbench.report import html
from kvbench.store.read import list_runs
from tests.nvme_vm.guest import Seen
from tests.report.page import Page

pytestmark = [pytest.mark.vm, pytest.mark.slow]


def drawn(seen: Seen) -> int:
    """Draw each page, look at its structure, and return how many there were."""
    folders = list_runs(seen.results)
    for folder in folders:
        page = Page(html.render(with_all_figures(read_and_measure(folder))))
        assert page.problems == [], folder
        assert page.text("h1"), folder
    return len(folders)


def test_pages_of_written_drives(refusals: Seen) -> None:
    assert drawn(refusals) == 3


def test_pages_of_healthy_drives(runs: Seen) -> None:
    assert drawn(runs) == 8


def test_pages_of_drives_with_other_names(after: Seen) -> None:
    assert drawn(after) == 2


def test_the_page_of_a_drive_with_other_firmware(verified: Seen) -> None:
    assert drawn(verified) == 1


def test_pages_of_drives_that_failed_or_were_prepared(faults: Seen) -> None:
    assert drawn(faults) >= 9
