"""CSV with a header, which also shows what stands between the fields: comma, tab, semicolon or bar."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from omen.errors import InvalidTable
from omen.tables.arrow_arrays import from_numpy, to_numpy
from omen.tables.parts import Part, shown, unreadable
from omen.tables.raw import (
    ARROW_ERRORS,
    NOT_TEXT,
    REPLACED,
    RawPart,
    RejectedRow,
    mark_missing,
    read_text,
    require_columns,
)

TOO_FEW_FIELDS = "fewer fields than the header"
TOO_MANY_FIELDS = "more fields than the header"

_LAST_ROW = "\x1elast row\x1e"
_LARGEST_BLOCK = 1 << 26


def read_csv(part: Part, columns: Sequence[str]) -> RawPart:
    """The columns of a CSV file; all of them open."""
    text, damaged = read_text(part.path, part.encoding)
    header, separator = read_header(part.path, text)
    places = require_columns(part.path, header, columns)
    misfits: list[RejectedRow] = []

    def note_misfit(row: Any) -> str:
        reason = TOO_FEW_FIELDS if row.actual_columns < row.expected_columns else TOO_MANY_FIELDS
        misfits.append(RejectedRow(str(part.path), row.number - 1, reason, row.text))
        return "skip"

    # a quote that is never closed swallows all that follows, the added last row too
    data = (text + "\n" + separator.join([_LAST_ROW] * len(header)) + "\n").encode()
    table = _parse_csv(part.path, data, separator, places, note_misfit)
    values = {name: table.column(i) for i, name in enumerate(columns)}
    rows = table.num_rows - 2
    if rows < 0 or any(column[-1].as_py() != _LAST_ROW for column in values.values()):
        raise InvalidTable(f"{shown(part.path)}: a quote is opened and never closed")
    values = {name: column.slice(1, rows) for name, column in values.items()}
    reasons: dict[int, str] = {}
    for name, column in values.items():
        mark_missing(name, column, reasons)
        if damaged:
            for place in np.flatnonzero(to_numpy(pc.match_substring(column, REPLACED))).tolist():
                reasons[place] = NOT_TEXT
    if damaged:
        misfits = [row._replace(reason=NOT_TEXT) if REPLACED in row.text else row for row in misfits]

    def render(chosen: npt.NDArray[np.int64]) -> list[str]:
        whole = _parse_csv(part.path, data, separator, range(len(header)), lambda _: "skip").slice(1, rows)
        lines = []
        for row in zip(*(column.to_pylist() for column in whole.take(from_numpy(chosen)).columns), strict=True):
            line = io.StringIO()
            csv.writer(line, delimiter=separator, lineterminator="").writerow(row)
            lines.append(line.getvalue())
        return lines

    return RawPart(part.path, values, frozenset(columns), rows, reasons, misfits, render)


def read_header(path: Path, text: str) -> tuple[list[str], str]:
    """The names in the first line that is not empty, and what stands between them."""
    rest = text.lstrip("\r\n")
    if not rest:
        raise InvalidTable(f"{shown(path)}: is empty: a CSV table starts with a line that names its columns")
    line = rest.split("\n", 1)[0]
    separator = next((mark for mark in (",", "\t", ";", "|") if mark in line), ",")
    try:
        return next(csv.reader(io.StringIO(rest, newline=""), delimiter=separator)), separator
    except (csv.Error, StopIteration) as error:
        raise unreadable(path, error) from None


def _parse_csv(path: Path, data: bytes, separator: str, places: Sequence[int], on_misfit: Callable[[Any], str]) -> Any:
    """The columns at those places as text, the header their first row. `on_misfit` sees rows of another length."""
    names = [f"f{place}" for place in places]
    try:
        return pa_csv.read_csv(
            pa.BufferReader(data),
            read_options=pa_csv.ReadOptions(
                autogenerate_column_names=True,
                use_threads=False,  # rows are numbered only so
                block_size=min(max(len(data) + 1, 1 << 16), _LARGEST_BLOCK),
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=on_misfit
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=names,
                column_types={name: pa.string() for name in names},
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except ARROW_ERRORS as error:
        raise unreadable(path, error) from None
