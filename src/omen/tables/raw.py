"""Columns of a table as they stand in its files, with the rows that are bad and why.

A row is counted from 1, in its own file; a header and empty lines are not counted. Values are taken exactly as they
stand: blanks around them belong to them, and are counted where a table is imported.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omen.errors import InvalidInput, InvalidTable, MissingColumn
from omen.tables.arrow_arrays import from_numpy, to_numpy
from omen.tables.parts import shown, unreadable

NOT_TEXT = "not readable as text"
"""The reason given for a row with bytes that are not of the encoding, which is UTF-8 unless a caller says otherwise."""
UTF8 = "utf-8"
"""How text is encoded where no option says otherwise."""
REPLACED = "\N{REPLACEMENT CHARACTER}"
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # before the first line, as some programs put it
ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError)


class RejectedRow(NamedTuple):
    """A row that could not be used: the columns of the table `rejected`."""

    source_file: str
    row: int
    reason: str
    text: str


@dataclass(frozen=True, eq=False)
class RawPart:
    """The columns of one file, as text or int64. Text in an `open` column may mean numbers: its file does not say."""

    path: Path
    columns: dict[str, Any]  # pyarrow.ChunkedArray
    open: frozenset[str]
    rows: int
    reasons: dict[int, str]  # of bad rows, by place in the columns
    misfits: list[RejectedRow]  # rows that are not in the columns at all
    render: Callable[[npt.NDArray[np.int64]], list[str]]  # rows as text, by place
    _misfit_rows: list[int] = field(init=False)

    def __post_init__(self) -> None:
        # the place of a row is its number less the misfits ahead of it: numbers less their rank can be searched for it
        ahead = [misfit.row - 1 - rank for rank, misfit in enumerate(self.misfits)]
        object.__setattr__(self, "_misfit_rows", ahead)

    def row_number(self, place: int) -> int:
        return place + 1 + bisect_right(self._misfit_rows, place)

    def rejected(self) -> list[RejectedRow]:
        places = np.array(sorted(self.reasons), dtype=np.int64)
        texts = self.render(places) if places.size else []
        bad = [
            RejectedRow(str(self.path), self.row_number(place), self.reasons[place], text)
            for place, text in zip(places.tolist(), texts, strict=True)
        ]
        return sorted([*bad, *self.misfits], key=lambda row: row.row)

    def good(self) -> dict[str, Any]:
        """The columns without the bad rows."""
        if not self.reasons:
            return self.columns
        keep = np.ones(self.rows, dtype=bool)
        keep[list(self.reasons)] = False
        mask = from_numpy(keep)
        return {name: column.filter(mask) for name, column in self.columns.items()}


def refuse_bad_rows(parts: Sequence[RawPart]) -> None:
    """For strict readers: the first bad row is an error."""
    for part in parts:
        rows = [(misfit.row, misfit.reason) for misfit in part.misfits[:1]]
        if part.reasons:
            place = min(part.reasons)
            rows.append((part.row_number(place), part.reasons[place]))
        if rows:
            row, reason = min(rows)
            raise InvalidTable(f"{shown(part.path)}, row {row}: {reason}")


def read_bytes(path: Path) -> bytes:
    """The contents of a file, unpacked if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error, ValueError, MemoryError) as error:
        raise unreadable(path, error) from None


def read_text(path: Path, encoding: str = UTF8) -> tuple[str, bool]:
    """The text of a file without byte order mark, and whether bytes had to be replaced that the encoding has not."""
    data = read_bytes(path)
    if encoding == UTF8 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidTable(f"{shown(path)}: is UTF-16 text: UTF-8 is wanted (imports take --encoding utf-16)")
    try:
        return data.decode(encoding).removeprefix(_MARK), False
    except UnicodeDecodeError:
        return data.decode(encoding, errors="replace").removeprefix(_MARK), True


def require_encoding(name: str) -> str:
    """The encoding of that name as Python calls it, or an error."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise InvalidInput(
            f"encoding {shown(name)!r} is not known: utf-8, latin-1, cp1252 or utf-16, for instance"
        ) from None


def require_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Where the columns stand among the names of a table."""
    for column in columns:
        if list(names).count(column) > 1:
            raise InvalidTable(f"{shown(path)}: has the column {column!r} twice")
        if column not in names:
            if any(not name.isprintable() or REPLACED in name for name in names):
                raise InvalidTable(f"{shown(path)}: is neither Parquet nor a CSV text with a header")
            present = shown(", ".join(names)) or "none"
            raise MissingColumn(f"{shown(path)}: has no column {column!r}: its columns are {present}")
    return [list(names).index(column) for column in columns]


def missing(column: str) -> str:
    """The reason of a row without a value there."""
    return f"no {column}"


def mark_missing(name: str, column: Any, reasons: dict[int, str]) -> None:
    """Mark the rows that have nothing in this column."""
    empty = to_numpy(column.is_null())
    if not pa.types.is_integer(column.type):
        empty |= to_numpy(pc.binary_length(column)) == 0
    for place in np.flatnonzero(empty).tolist():
        reasons.setdefault(place, missing(name))
