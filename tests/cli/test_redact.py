"""``--redact`` on a real device: nothing in the store, the answers or the files names it."""

import json
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvbench.errors import ExitCode
from kvbench.host import guard, probe
from kvbench.store.redact import SECRET_CHARS_MIN
from tests.cli.program import SMALL, kvbench, needs_fio
from tests.host.loops import loop_over, make_backing, needs_loops

pytestmark = [pytest.mark.fio, pytest.mark.blockdev, needs_fio, needs_loops]

SERIAL = "S4EVNX0R123"
CUSTOMER = "secretcustomer"
HOST = platform.node()
SECRETS = (SERIAL, CUSTOMER, *([HOST] if len(HOST) >= SECRET_CHARS_MIN else []))


class Bench:
    """A loop device over a file with a telling name, and a telling name for it below /dev."""

    def __init__(self, device: str, link: Path, backing: Path, folder: Path) -> None:
        self.device = device
        self.link = link
        self.backing = backing
        self.folder = folder

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        done = kvbench(*arguments, cwd=self.folder)
        assert done.returncode in (ExitCode.OK, ExitCode.INCONCLUSIVE), done.stderr
        return done

    def run(self, *more: str) -> dict[str, Any]:
        """Run a small workload and return its answer."""
        given = ("run", str(self.link), "--workload", str(SMALL), "--repetitions", "1", "--json")
        found: dict[str, Any] = json.loads(self.call(*given, *more).stdout)
        return found

    def condition(self, folder: str) -> dict[str, Any]:
        """What a run says of the preparation of its target."""
        found: dict[str, Any] = json.loads((self.folder / folder / "run.json").read_text())
        return dict(found["condition"])

    def told(self, place: Path) -> list[str]:
        """The files below a place, or their names, that hold a secret."""
        return [
            f"{path}: {secret}"
            for path in place.rglob("*")
            for secret in SECRETS
            if secret in path.name or (path.is_file() and secret.encode() in path.read_bytes())
        ]


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Bench]:
    backing = make_backing(tmp_path_factory.mktemp(CUSTOMER) / f"{SERIAL}.img")
    with loop_over(backing, "--direct-io=on") as device:
        link = Path(f"/dev/kvbench-test-{SERIAL}-{Path(device).name}")
        link.symlink_to(device)
        try:
            yield Bench(device, link, backing, tmp_path)
        finally:
            link.unlink()


def test_a_redacted_run_names_its_device_nowhere(bench: Bench) -> None:
    known = guard.check_readable(str(bench.link))
    open_facts = str((known, probe.target_facts(known)))
    assert open_facts.count(str(bench.backing)) == 2, "else there is nothing to hide"
    label = f"fw1 on {bench.link} of {bench.backing}"
    closed = bench.run("--redact", "--label", label, "--results", "closed")
    files = ("--html", "r.html", "--csv", "r.csv", "--json")
    said = bench.call("report", str(bench.folder / closed["folder"]), *files).stdout
    text = bench.call("report", str(bench.folder / closed["folder"]), "--text").stdout
    assert bench.told(bench.folder / "closed") == []
    assert [secret for secret in SECRETS if secret in said + text + json.dumps(closed)] == []
    for name in ("r.html", "r.csv"):
        assert [secret for secret in SECRETS if secret in (bench.folder / name).read_text()] == []
    assert "redacted-" in (bench.folder / "r.html").read_text()


def test_a_redacted_preparation_names_its_device_nowhere_and_later_runs_find_it(
    bench: Bench,
) -> None:
    name = str(bench.link)
    quick = ("--passes", "1", "--round", "100ms", "--rounds", "5", "--redact", "--yes")
    done = kvbench("prepare", name, "--destroy", name, *quick, "--json", cwd=bench.folder)
    assert done.returncode != ExitCode.ENVIRONMENT, done.stderr
    assert bench.told(bench.folder / "results") == []
    stamps = list((bench.folder / "results" / "stamps").iterdir())
    assert len(stamps) == 1
    named = [line for line in done.stdout.splitlines() if any(s in line for s in SECRETS)]
    assert named == []
    assert str(bench.backing) not in done.stderr

    run_id = json.loads(done.stdout)["run_id"]
    for more in ((), ("--redact",)):
        found = bench.condition(bench.run(*more)["folder"])
        assert (found["state"], found["run_id"]) == ("holds", run_id), found

    dry = bench.call("prepare", name, "--dry-run", "--redact")
    assert str(bench.backing) not in dry.stdout
