"""Sheets of plain values -> an .xlsx file, by openpyxl, which is an optional extra.

A text stays a text: none becomes a formula, a number, an error or a link.
"""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite
from typing import Any

from msgspec import Struct

from kvbench.errors import EnvironmentMissing
from kvbench.report.words import short

CELL_CHARS_MAX = 32_000  # Excel takes 32,767
NAME_CHARS_MAX = 31
WIDTH_MAX = 60
ROWS_LOOKED_AT = 200  # for the width of a column
FORMULA_SIGNS = ("=", "+", "-", "@")
FORMATS = {  # unit -> how a spreadsheet shows it
    "s": "##0.00E+0",
    "1/s": "#,##0.0",
    "B/s": "#,##0",
    "B": "#,##0",
    "%": "0.00",
    "1": "0.000",
}
ROOM = {"s": 11, "1/s": 15, "B/s": 18, "B": 20}  # unit -> characters that its numbers may take
WIDTH_MIN = 9
Plain = str | int | float | None


class SheetColumn(Struct, frozen=True, kw_only=True):
    """One column; ``unit`` is "" for texts and counts, and stands in its head."""

    name: str
    unit: str = ""

    @property
    def head(self) -> str:
        """The name with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Sheet(Struct, frozen=True, kw_only=True):
    """One table; a value that is None is an empty cell."""

    name: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[tuple[Plain, ...], ...]


def require_openpyxl() -> None:
    """Refuse early what cannot be written.

    Raises:
        EnvironmentMissing: openpyxl is not installed.
    """
    if find_spec("openpyxl") is None:
        raise EnvironmentMissing(
            "openpyxl is not installed, and only it writes .xlsx files",
            where="--xlsx",
            hint="pip install 'kvbench[xlsx]', or openpyxl itself",
        )


def to_xlsx(sheets: Sequence[Sheet]) -> bytes:
    """Return the workbook; each sheet has a head that stays in sight and a filter.

    Raises:
        EnvironmentMissing: openpyxl is not installed.
    """
    require_openpyxl()
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    book = Workbook(write_only=True)
    for sheet in sheets:
        page = book.create_sheet(sheet.name[:NAME_CHARS_MAX])
        page.freeze_panes = "A2"
        last = get_column_letter(len(sheet.columns))
        page.auto_filter.ref = f"A1:{last}{len(sheet.rows) + 1}"
        for place, column in enumerate(sheet.columns):
            page.column_dimensions[get_column_letter(place + 1)].width = _width(
                sheet, place, column
            )
        head = []
        for column in sheet.columns:
            cell = WriteOnlyCell(page)
            _write_text(cell, column.head)
            cell.font = Font(bold=True)
            head.append(cell)
        page.append(head)
        for row in sheet.rows:
            cells = []
            for column, value in zip(sheet.columns, row, strict=True):
                cell = WriteOnlyCell(page)
                if isinstance(value, str):
                    _write_text(cell, value)
                elif value is not None and isfinite(value):
                    cell.value = value
                    if column.unit in FORMATS:
                        cell.number_format = FORMATS[column.unit]
                cells.append(cell)
            page.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _write_text(cell: Any, text: str) -> None:  # noqa: ANN401 - openpyxl has no types
    cell.value = short(text, CELL_CHARS_MAX)
    cell.data_type = "s"  # openpyxl would take "=" for a formula, "#N/A" for an error
    cell.quotePrefix = text.startswith(FORMULA_SIGNS)  # nor when it is edited


def _width(sheet: Sheet, place: int, column: SheetColumn) -> int:
    texts = [row[place] for row in sheet.rows[:ROWS_LOOKED_AT]]
    longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
    numbers = any(isinstance(text, int | float) for text in texts)
    room = ROOM.get(column.unit, WIDTH_MIN) if numbers else WIDTH_MIN
    return min(WIDTH_MAX, max(longest, len(column.head), room) + 2)
