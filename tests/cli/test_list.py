"""``kvbench list``: aligned, at most 100 columns, and one broken file hides no other."""

from pathlib import Path

import pytest

from kvbench.cli.list import COLUMNS, KINDS
from kvbench.cli.main import main
from kvbench.workload import catalog


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
