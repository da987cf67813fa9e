"""Parquet: the file says whether a column holds numbers or text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from omen.errors import InvalidTable
from omen.tables.arrow_arrays import from_numpy, from_words
from omen.tables.parts import Part, locate_table, shown, unreadable
from omen.tables.raw import ARROW_ERRORS, NOT_TEXT, RawPart, mark_missing, require_columns

RECORD = b"omen"
"""Under this key of a Parquet file's metadata stands, as JSON, how an overlay was made."""


def read_record(path: str | Path) -> dict[str, Any]:
    """How an overlay was made, as `write_overlay` was told; empty where its file does not say."""
    try:
        held = pq.read_metadata(locate_table(Path(path), "overlay")).metadata or {}
        found = json.loads(held.get(RECORD, b"{}"))
    except ARROW_ERRORS:
        return {}  # no Parquet file: CSV, a folder of parts, or one that cannot be read, as its reader will say
    return found if isinstance(found, dict) else {}


def read_parquet(part: Part, columns: Sequence[str]) -> RawPart:
    """The columns of a Parquet file; none of them open."""
    try:
        with pq.ParquetFile(part.path) as file:
            names = file.schema_arrow.names
            require_columns(part.path, names, columns)
            table = _plain(file.read(columns=list(columns)))
        values = {name: table.column(name) for name in columns}
        reasons: dict[int, str] = {}
        for name in columns:
            values[name] = _typed_column(part.path, name, values[name], reasons)
            mark_missing(name, values[name], reasons)
    except ARROW_ERRORS as error:
        raise unreadable(part.path, error) from None

    def render(chosen: npt.NDArray[np.int64]) -> list[str]:
        rows = table.take(from_numpy(chosen))
        if NOT_TEXT in reasons.values():
            rows = rows.cast(pa.schema([(field.name, _bytes_for(field.type)) for field in rows.schema]))
        return [json.dumps(row, default=_show_bytes, ensure_ascii=False) for row in rows.to_pylist()]

    return RawPart(part.path, values, frozenset(), table.num_rows, reasons, [], render)


def _plain(table: Any) -> Any:
    """The same table without dictionaries."""
    fields = [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields))


def _bytes_for(kind: Any) -> Any:
    return kind if pa.types.is_integer(kind) or pa.types.is_null(kind) else pa.large_binary()


def _show_bytes(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def _typed_column(path: Path, name: str, column: Any, reasons: dict[int, str]) -> Any:
    """A Parquet column as int64 or text. Whole numbers beyond 64 signed bits make it text."""
    kind = column.type
    if pa.types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            return column.cast(pa.string())
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InvalidTable(f"{shown(path)}: column {name!r} is {kind}: labels must be whole numbers or text")
    try:
        column.validate(full=True)
        return column.cast(pa.large_string()) if pa.types.is_string_view(kind) else column
    except pa.ArrowInvalid:
        return _decode_each(column, reasons)


def _decode_each(column: Any, reasons: dict[int, str]) -> Any:
    values: list[str] = []
    for place, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
        try:
            values.append("" if value is None else value.decode())
        except UnicodeDecodeError:
            reasons[place] = NOT_TEXT
            values.append("")
    return pa.chunked_array([from_words(values)])
