"""``kvbench list``: aligned, at most 100 columns, and one broken file hides no other."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kvbench.cli.list import COLUMNS, KINDS
from kvbench.cli.main import main
from kvbench.store import layout
from kvbench.store.redact import hidden
from kvbench.workload import cards, catalog
from kvbench.workload.schema import ROLES
from tests.stored import Change, copy_of_example, fact, replace_text


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one drive, one of another, and one that was redacted."""
    folder = tmp_path_factory.mktemp("results")

    def drive(label: str, model: str | None, serial: str | None, firmware: str | None) -> Change:
        def change(record: dict[str, Any]) -> None:
            record["label"] = label
            fact(record, "device_model", model)
            fact(record, "device_serial", serial)
            fact(record, "device_firmware", firmware)

        return change

    copy_of_example(folder / "a", drive("before", "ACME 9000", "S1", "FW1"))
    copy_of_example(folder / "b", drive("after", "ACME 9000", "S1", "FW2"))
    copy_of_example(folder / "c", drive("other", "Zenith\x1b[31m" + "x" * 300, None, None))

    def redacted(record: dict[str, Any]) -> None:
        drive("sent", "ACME 9000", hidden("S1"), "FW2")(record)
        plan = record["plan"]
        plan["workloads"] = [w for w in plan["workloads"] if w["role"] == "capacity"]

    copy_of_example(folder / "d", redacted)
    return folder


def names(store: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["list", "runs", "--results", str(store), "--json", *arguments]) == 0
    return [row["name"] for row in json.loads(capsys.readouterr().out)["runs"]]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), ["a", "b", "c", "d"]),
        (("--device", "S1"), ["a", "b", "d"]),
        (("--device", "acme"), ["a", "b", "d"]),
        (("--device", "zenith"), ["c"]),
        (("--firmware", "fw2"), ["b", "d"]),
        (("--label", "FOR"), ["a"]),
        (("--label", "t"), ["b", "c", "d"]),
        (("--role", "memory"), ["a", "b", "c"]),
        (("--device", "S1", "--firmware", "FW2", "--role", "memory"), ["b"]),
        (("--device", "nothing"), []),
    ],
)
def test_runs_are_found_by_drive_firmware_label_and_role(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], found: list[str]
) -> None:
    assert names(store, capsys, *arguments) == found


def test_the_table_of_runs_shows_drive_and_firmware_in_bounds(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "runs", "--results", str(store)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "end", "cells", "suite"]
    assert re.search(r"^a +complete +119/119 +quick$", lines[1])
    assert lines[2].startswith("    ACME 9000 S1, firmware FW1, /")
    assert all(line.isprintable() and len(line) <= COLUMNS for line in lines)


def test_a_damaged_run_is_told_and_the_others_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        copy_of_example(tmp_path / name)
    replace_text(tmp_path / "b" / layout.RUN_FILE, "{")
    replace_text(tmp_path / "a" / layout.END_FILE, "{")
    assert main(["list", "runs", "--results", str(tmp_path), "--json"]) == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)["runs"]
    assert [(row["name"], row["end"]) for row in rows] == [("a", "damaged")]
    assert told.err.count("is damaged") == 2


def test_filters_are_of_runs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "workloads", "--role", "memory"]) == 2
    assert "--role only goes with runs" in capsys.readouterr().err


def test_when_no_run_fits_that_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "runs", "--results", str(store), "--device", "nothing"]) == 0
    assert "no runs there that fit" in capsys.readouterr().err
