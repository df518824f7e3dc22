"""``kvbench list``: aligned, at most 100 columns, and one broken file hides no other."""

import json
import re
from pathlib import Path

import pytest

from kvbench.cli.list import COLUMNS, KINDS
from kvbench.cli.main import main
from kvbench.workload import cards, catalog
from kvbench.workload.schema import ROLES


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"runs"}))
def test_a_list_has_a_head_and_fits(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("name")
    assert max(map(len, lines)) <= COLUMNS + 20  # a narrow last column keeps at least 20


def test_a_broken_workload_is_told_and_the_others_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = catalog.data_folder() / "vllm-block.toml"
    (tmp_path / "vllm-block.toml").write_text(whole.read_text())
    (tmp_path / "broken.toml").write_text("format = 1\nrole = 3\n")
    monkeypatch.setattr(catalog, "data_folder", lambda: tmp_path)
    assert main(["list", "workloads"]) == 0
    said = capsys.readouterr()
    assert "vllm-block" in said.out
    assert "broken.toml" in said.err


def test_roles_are_listed_level_by_level_with_what_each_asks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "roles", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["roles"]
    assert {row["name"] for row in rows} == set(ROLES)
    level = next(row for row in rows if row["level"] == "near-gpu-2027")
    assert level["asks"][0]["at_least"] == "100M"
    assert level["asks"][0]["evidence"] == "projected"
    assert len(rows) == len({(row["name"], row["level"]) for row in rows})


def test_a_broken_card_is_told_and_its_role_is_still_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = catalog.data_folder() / "roles" / "capacity.toml"
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "memory.toml").write_text("format = 1\nrole = 3\n")
    (tmp_path / "roles" / "capacity.toml").write_text(whole.read_text())
    monkeypatch.setattr(cards, "data_folder", lambda: tmp_path)
    assert main(["list", "roles"]) == 0
    said = capsys.readouterr()
    assert "roles/memory.toml" in said.err
    assert "restart-30tb" in said.out
    assert re.search(r"^memory +- +0 +512 B to 4 KiB", said.out, re.MULTILINE)
