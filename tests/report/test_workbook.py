"""The .xlsx file: a sheet per table, numbers as numbers, texts as texts."""

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kvbench.compare.policy import find_policy
from kvbench.errors import EnvironmentMissing, ExitCode
from kvbench.gate.decide import decide
from kvbench.measure.roles import Judgement
from kvbench.report import compare_sheets, sheets, view, workbook
from kvbench.report.workbook import Sheet, SheetColumn, to_xlsx
from tests.report.example import job_texts, make_run
from tests.report.sides import SMALL, compared, drive

openpyxl = pytest.importorskip("openpyxl")

ORDER = ("measure", "search", "ceiling")
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK(1)", "#N/A", "#REF!", "1e5", "TRUE", "\t=1")


def read(found: Sequence[Sheet]) -> Any:  # noqa: ANN401 - openpyxl's own
    return openpyxl.load_workbook(io.BytesIO(to_xlsx(found)))


def a_sheet(*rows: tuple[workbook.Plain, ...]) -> Sheet:
    columns = (SheetColumn(name="text"), SheetColumn(name="p99", unit="s"))
    return Sheet(name="one", columns=columns, rows=rows)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_never_becomes_a_formula_or_a_number(text: str) -> None:
    cell = read([a_sheet((text, 1.5))])["one"]["A2"]
    assert cell.data_type == "s"
    assert cell.value == text.replace("\t", "⟨U+0009⟩")
    assert cell.quotePrefix == text.startswith(("=", "+", "-", "@"))


def test_numbers_are_numbers_and_their_unit_is_in_the_head() -> None:
    page = read([a_sheet(("a", 0.000412), ("b", None), ("c", float("nan")))])["one"]
    assert [cell.value for cell in page[1]] == ["text", "p99 (s)"]
    assert page["B2"].data_type == "n"
    assert page["B2"].value == 0.000412
    assert page["B2"].number_format == "##0.00E+0"
    assert page["B3"].value is None
    assert page["B4"].value is None
    assert page.freeze_panes == "A2"
    assert page.auto_filter.ref == "A1:B4"


def test_what_a_file_cannot_hold_is_made_visible_or_cut() -> None:
    page = read([a_sheet(("\x00\x1b\u202e\ufffe", 1), ("x" * 100_000, 2))])["one"]
    assert page["A2"].value == "⟨U+0000⟩⟨U+001B⟩⟨U+202E⟩⟨U+FFFE⟩"
    assert len(page["A3"].value) <= 32_767


def test_without_openpyxl_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workbook, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentMissing, match="openpyxl is not installed") as caught:
        to_xlsx([a_sheet()])
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    assert "pip install 'kvbench[xlsx]'" in str(caught.value)


def test_a_report_has_every_summary_on_the_sheet_of_its_unit() -> None:
    run = make_run(label="=cmd|' /C calc'!A0")
    found = sheets.of_report(view.build(run, job_texts(run)), run)
    book = read(found)
    assert book.sheetnames[:2] == ["run", "doubts"]
    rows = 0
    for unit, name in sheets.SHEETS.items():
        own = [summary for summary in run.summaries if summary.unit == unit]
        if not own:
            continue
        page = book[name]
        head = [cell.value for cell in page[1]]
        assert f"median ({unit})" in head
        medians = [
            row[head.index(f"median ({unit})")] for row in page.iter_rows(2, values_only=True)
        ]
        assert sorted(m for m in medians if m is not None) == pytest.approx(
            sorted(s.median for s in own if s.median is not None)
        )
        rows += page.max_row - 1
    assert rows == len(run.summaries)
    assert book["cells"].max_row == len(run.cells) + 1
    assert not any(cell.data_type == "f" for page in book for row in page for cell in row)


def test_a_ceiling_of_the_host_is_never_a_primary_number() -> None:
    run = make_run()
    for sheet in sheets.of_report(view.build(run, job_texts(run)), run):
        names = [column.name for column in sheet.columns]
        if "primary" in names:
            purposes = [row[names.index("purpose")] for row in sheet.rows]
            assert purposes == sorted(purposes, key=lambda one: ORDER.index(str(one)))
            for row in sheet.rows:
                if row[names.index("purpose")] == "ceiling":
                    assert row[names.index("primary")] == "no"


def test_a_comparison_has_each_run_and_its_change_in_per_cent() -> None:
    runs = [drive("alpha", jitter=1), drive("beta", slower=0.5, jitter=2)]
    found = compared(runs)
    made = compare_sheets.of_comparison(found, "the verdict")
    by_name = {sheet.name: sheet for sheet in made}
    assert len(by_name["runs"].rows) == 2
    rates = by_name["rates"]
    heads = [column.head for column in rates.columns]
    change, verdict = heads.index("B change (%)"), heads.index("B verdict")
    better = [row for row in rates.rows if row[verdict] == "BETTER"]
    assert better
    for row in better:
        assert float(row[change] or 0) == pytest.approx(100, abs=15)
    assert sum(len(by_name[n].rows) for n in sheets.SHEETS.values() if n in by_name) == len(
        found.rows
    )
    read(made)


def test_a_gate_has_its_verdict_and_every_gated_number() -> None:
    base, slow = (
        drive(name, serial="S", jitter=n, slower=slower, workloads=SMALL, label="=1+1")
        for n, (name, slower) in enumerate((("a", 1.0), ("b", 1.3)))
    )
    gate = decide(base, slow, find_policy(None, "gate"), Judgement())
    gate = replace(gate, reasons=("@x",))
    book = read(compare_sheets.of_gate(gate))
    assert [cell.value for cell in book["gate"][2]] == ["verdict", "FAIL"]
    count = sum(book[n].max_row - 1 for n in sheets.SHEETS.values() if n in book.sheetnames)
    assert count == len(gate.rows)
    assert not any(cell.data_type == "f" for page in book for row in page for cell in row)


def test_the_file_has_no_link_and_no_macro() -> None:
    names = zipfile.ZipFile(io.BytesIO(to_xlsx([a_sheet(("=1", 1))]))).namelist()
    assert not [
        n for n in names if "external" in n.lower() or "vba" in n.lower() or "rels/sheet" in n
    ]
