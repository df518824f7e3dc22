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
from kvbench.gate.history import history_of
from kvbench.host.model import Fact
from kvbench.measure.roles import Judgement
from kvbench.report import compare_sheets, history_sheets, sheets, view, workbook
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


def test_facts_are_numbers_with_their_unit_where_they_count_or_measure() -> None:
    facts = (
        *(
            Fact(name="memory_bytes", value="25276063744"),
            Fact(name="device_wbt_us", value="75000"),
        ),
        *(Fact(name="read_ahead_kib", value="128"), Fact(name="cpus_online", value="2")),
        *(Fact(name="device_firmware", value="0042"), Fact(name="device_serial", value="007")),
        Fact(name="cgroup_memory_bytes", value="no limit"),
        Fact(name="target_bytes", value="9" * 40),
        Fact(name="device_bytes", value=None, reason="the device does not tell"),
    )
    run = make_run(facts=facts)
    page = read(sheets.of_report(view.build(run, job_texts(run)), run))["facts"]
    assert [cell.value for cell in page[1]][1:3] == ["value", "unit"]
    rows = {row[0]: row[1:3] for row in page.iter_rows(2, values_only=True)}
    assert rows == {
        "memory_bytes": (25276063744, "B"),
        "device_wbt_us": (75000, "us"),
        "read_ahead_kib": (128, "KiB"),
        "cpus_online": (2, None),
        "device_firmware": ("0042", None),
        "device_serial": ("007", None),
        "cgroup_memory_bytes": ("no limit", None),
        "target_bytes": ("9" * 40, None),
        "device_bytes": (None, None),
    }


def columns_of(page: Any) -> dict[str, list[Any]]:  # noqa: ANN401
    return {cells[0].value: list(cells[1:]) for cells in page.iter_cols()}


def history_sheets_of_two() -> list[Sheet]:
    runs = [drive(name, serial="S", jitter=n, label="=1+1") for n, name in enumerate("ab")]
    found = history_of(runs, find_policy(None, "gate"), serial="S")
    return history_sheets.of_history(found, "=the verdict")


def every_workbook() -> dict[str, list[Sheet]]:
    runs = [drive(name, serial="S", jitter=n, label="=1+1") for n, name in enumerate("ab")]
    run = make_run()
    gate = decide(runs[0], runs[1], find_policy(None, "gate"), Judgement())
    return {
        "report": sheets.of_report(view.build(run, job_texts(run)), run),
        "compare": compare_sheets.of_comparison(compared(runs), "+the verdict"),
        "gate": compare_sheets.of_gate(gate),
        "history": history_sheets_of_two(),
    }


BOOKS = every_workbook()


@pytest.mark.parametrize("verb", BOOKS)
def test_in_every_workbook_numbers_are_numbers_texts_are_texts_and_heads_stay(verb: str) -> None:
    book = read(BOOKS[verb])
    numbers = 0
    for page in book:
        assert page.freeze_panes == "A2"
        assert not any(cell.data_type == "f" for row in page for cell in row)
        for head, cells in columns_of(page).items():
            if head.endswith((" (s)", "/s)", " (B)")):
                assert {cell.data_type for cell in cells} == {"n"}, (page.title, head)
                numbers += sum(cell.value is not None for cell in cells)
            if head in ("n", "excluded", "repetition", "queue_depth", "jobs"):
                assert all(isinstance(cell.value, int | None) for cell in cells), head
    assert numbers


@pytest.mark.parametrize("verb", BOOKS)
def test_the_parameters_of_a_point_have_columns_of_numbers(verb: str) -> None:
    book = read(BOOKS[verb])
    found = columns_of(book["rates" if "rates" in book.sheetnames else "times"])
    depths = {cell.value for cell in found["queue_depth"]} - {None}
    assert depths
    assert all(isinstance(depth, int) for depth in depths)
    assert any(head.endswith("block_size (B)") for head in found)


@pytest.mark.parametrize("verb", BOOKS)
def test_columns_are_wide_enough_for_their_numbers_and_not_wider_than_a_screen(verb: str) -> None:
    book = read(BOOKS[verb])
    for page in book:
        for place, (head, cells) in enumerate(columns_of(page).items(), start=1):
            letter = openpyxl.utils.get_column_letter(place)
            wide = page.column_dimensions[letter].width
            assert len(head) < wide <= workbook.WIDTH_MAX or wide == workbook.WIDTH_MAX
            if head.endswith((" (B/s)", " (B)")):
                known = [cell.value for cell in cells if cell.value is not None]
                assert max((len(f"{value:,.0f}") for value in known), default=0) < wide


def test_a_history_has_a_row_per_number_and_run() -> None:
    made = {sheet.name: sheet for sheet in history_sheets_of_two()}
    assert made["history"].rows[0][1] == "=the verdict"
    assert [row[0] for row in made["runs"].rows] == [1, 2]
    rates = made["rates"]
    heads = [column.head for column in rates.columns]
    runs = [row[heads.index("run")] for row in rates.rows]
    assert runs.count(1) == runs.count(2) > 0
    for row in rates.rows:
        held = row[heads.index("run")] == 2
        assert row[heads.index("against")] == (1 if held else None)
        assert (row[heads.index("verdict")] is not None) is held


def test_a_head_never_becomes_a_formula() -> None:
    sheet = Sheet(name="one", columns=(SheetColumn(name="=1+1"),), rows=((1,),))
    assert read([sheet])["one"]["A1"].data_type == "s"
