"""results/README.md says of each table and document what is in it, and that is true."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, inspect

from kvbench.cli import measuring
from kvbench.cli.list_runs import RunLine
from kvbench.cli.main import main
from kvbench.compare import model as compare_model
from kvbench.compare.policy import RequiredLevel
from kvbench.gate import history as gate_history
from kvbench.gate import model as gate_model
from kvbench.measure import model as measure_model
from kvbench.measure import roles, table
from kvbench.measure.reading_model import Reading
from kvbench.measure.subjects import Figure
from kvbench.measure.verdicts import RequirementRow
from kvbench.measure.wear import WriteAmplification
from kvbench.metrics import METRICS
from kvbench.report import compare_csv, history_csv
from kvbench.store.preparation import Condition
from kvbench.store.records import EndRecord
from tests.cli.test_history import SERIAL, stored

TEXT = (Path(__file__).parents[1] / "results" / "README.md").read_text()
PARTS: dict[str, type[Struct]] = {
    "the `end`": EndRecord,
    "one of `summaries`": measure_model.Summary,
    "one of `findings`": measure_model.Finding,
    "one of `roles`": roles.JudgedRole,
    "one of `levels`": roles.JudgedLevel,
    "one of the `rows` of a level": RequirementRow,
    "a `score`": roles.Score,
    "one of `controller`": roles.ControllerReading,
    "one of `probes`": roles.ProbeReading,
    "one of `figures`": Figure,
    "one of `readings`": Reading,
    "the `write_amplification`": WriteAmplification,
    "a side": compare_model.Side,
    "one of `differences`": compare_model.Difference,
    "one of `rows`": compare_model.Row,
    "a `key`": compare_model.Key,
    "a sample": compare_model.Sample,
    "a change": compare_model.Change,
    "one of `winners`": compare_model.RoleWinner,
    "one of `unshared`": compare_model.Unshared,
    "the `gate`": gate_model.Gate,
    "one of the `rows` of a gate": gate_model.GateRow,
    "one of `ungated`": gate_model.Ungated,
    "one of `required`": gate_model.RequiredRow,
    "what is `required`": RequiredLevel,
    "the history": gate_history.History,
    "one of `runs`": gate_history.HistoryRun,
    "one of `series`": gate_history.HistorySeries,
    "one of `points`": gate_history.HistoryPoint,
    "one of `left_out`": gate_history.LeftOut,
    "a `condition`": Condition,
    "one of the `runs` of a list": RunLine,
}
DOCUMENTS = (compare_model.Comparison, gate_model.Gate, gate_history.History)


def section(begin: str) -> str:
    """The part of the text from a heading or a sentence to the next one."""
    rest = TEXT[TEXT.index(begin) + len(begin) :]
    return re.split(r"\n## |\n`[\w ]+ --json`", rest)[0]


def rows_of(text: str) -> list[tuple[str, str]]:
    found = re.findall(r"^\| (.+?) \| (.+?) \|", text, re.MULTILINE)
    return [(first, second) for first, second in found if first not in ("part", "column", "metric")]


def keys_in(cell: str) -> list[str]:
    """The keys of a cell; what stands in brackets explains them."""
    return re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", cell))


def columns_in(text: str) -> list[str]:
    return [name for first, _ in rows_of(text) for name in re.findall(r"`(\w+)`", first)]


def test_the_table_of_measurements_has_the_columns_that_are_described() -> None:
    text = section("## measurements.csv").partition("| metric |")[0]
    assert columns_in(text) == list(table.COLUMNS)


def test_every_metric_is_described_with_its_unit() -> None:
    found = re.findall(r"^\| `([\w.]+)` \| (\S+) \|", section("## measurements.csv"), re.MULTILINE)
    described = dict(found)
    for name, metric in METRICS.items():
        known = name if metric.percentile is None else re.sub(r"_p[\d.]+$", "_p50", name)
        assert described.get(known) == metric.unit, name
    assert set(described) <= set(METRICS)


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("## The table of compare --csv", compare_csv.COLUMNS),
        ("## The table of history --csv", history_csv.COLUMNS),
    ],
)
def test_tables_have_the_columns_that_are_described_in_their_order(
    heading: str, columns: tuple[str, ...]
) -> None:
    assert columns_in(section(heading)) == list(columns)


def described() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part, cell in rows_of(section("## The documents of --json") + all_documents()):
        if part != "the document":
            assert part not in found, part
            found[part] = keys_in(cell)
    return found


def all_documents() -> str:
    begins = re.findall(r"^`[\w ]+ --json`", TEXT, re.MULTILINE)
    return "".join(section(f"\n{begin}") for begin in dict.fromkeys(begins))


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_the_keys_that_are_described(part: str) -> None:
    assert described()[part] == list(PARTS[part].__struct_fields__)


def structs_in(kind: type) -> set[type]:
    """All structs that a type holds, itself among them."""
    found: set[type] = set()

    def walk(one: inspect.Type) -> None:
        if isinstance(one, inspect.StructType):
            if one.cls not in found:
                found.add(one.cls)
                for field in one.fields:
                    walk(field.type)
            return
        for name in ("types", "item_types"):
            for inner in getattr(one, name, ()):
                walk(inner)
        for name in ("item_type", "value_type"):
            if hasattr(one, name):
                walk(getattr(one, name))

    walk(inspect.type_info(kind))
    return found


def test_no_part_of_a_document_is_left_undescribed() -> None:
    kinds = (*DOCUMENTS, measure_model.Summary, roles.JudgedRole, roles.ControllerReading, Reading)
    reached = set().union(*(structs_in(kind) for kind in kinds))
    assert reached - {compare_model.Comparison} <= set(PARTS.values())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    stored(folder, "one", 1)
    stored(folder, "two", 2)
    return folder


def document(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> dict[str, Any]:
    monkeypatch.setattr(measuring, "CELLS_WORTH_IT", 10_000)
    main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def keys_of_document(verb: str) -> list[str]:
    cell = next(
        cell for part, cell in rows_of(section(f"\n`{verb} --json`")) if part == "the document"
    )
    return keys_in(cell)


def test_the_documents_have_the_keys_that_are_described(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--results", str(store))
    report = document(capsys, monkeypatch, "report", "one", *where, "--text")
    assert set(report) == set(keys_of_document("report"))
    parts = described()
    assert set(report["cells"][0]) == set(parts["one of `cells`"])
    assert set(report["health"]) == set(parts["the `health`"])
    compare = document(capsys, monkeypatch, "compare", "one", "two", *where)
    assert set(compare) == set(keys_of_document("compare"))
    gate = document(capsys, monkeypatch, "gate", "one", "two", *where)
    assert set(gate) == {"exit_code", "gate"}
    assert set(gate["gate"]) == set(parts["the `gate`"])
    history = document(capsys, monkeypatch, "history", "--device", SERIAL, *where)
    assert set(history) == set(parts["the history"])
    runs = document(capsys, monkeypatch, "list", "runs", *where)
    assert set(runs) == set(keys_of_document("list runs"))


def test_the_sheets_of_the_workbook_are_named() -> None:
    from kvbench.report.sheets import SHEETS

    text = section("## The workbook of --xlsx")
    named = {*SHEETS.values(), "cells", "facts", "winners", "left out"}
    assert set(re.findall(r"`([\w ]+)`", text)) >= named
