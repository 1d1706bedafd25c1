"""Sheets of workbooks, by openpyxl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..base import formats
from .base import CellsFormat, choose_part


@formats.register("excel")
class Excel(CellsFormat):
    """A sheet of a workbook, ``book.xlsx`` or ``book.xlsx::Sheet2``; formulas give their values."""

    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm")

    def cells(self, path: Path, part: str | None) -> Iterator[Sequence[Any]]:
        try:
            from openpyxl import load_workbook
        except ImportError:
            raise ImportError(
                f"{path} needs openpyxl: pip install 'gramian[excel]', or save the sheet as CSV"
            ) from None
        try:
            book = load_workbook(path, read_only=True, data_only=True)
        except Exception as error:
            reason = (str(error).splitlines() or [repr(error)])[0]
            raise ValueError(
                f"{path} cannot be read as a workbook: it is damaged, or no .xlsx; save it again, "
                f"or as CSV (openpyxl says: {reason})"
            ) from error
        try:
            sheets = [sheet.title for sheet in book.worksheets]
            yield from book[choose_part(path, part, sheets, "sheet")].iter_rows(values_only=True)
        finally:
            book.close()
