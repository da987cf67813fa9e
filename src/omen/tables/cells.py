"""Tables with cells that may be empty and columns that may be left out, beside columns of labels. Read strictly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from omen.errors import InvalidTable
from omen.interests import Interests
from omen.tables.columns import RawColumn, agree, codes_in, kind_of_labels
from omen.tables.csv_parts import read_csv, read_header
from omen.tables.parquet_parts import read_parquet
from omen.tables.parts import Part, list_parts, shown, unreadable
from omen.tables.raw import ARROW_ERRORS, UTF8, RawPart, missing, read_text, refuse_bad_rows, require_columns


@dataclass(frozen=True)
class Cells:
    """Columns of a table that may be left out, or be empty in a row, beside those that may not."""

    columns: list[RawColumn]
    more: dict[str, list[Any]]  # None where nothing stands

    def where(self, place: int) -> str:
        """File and row of a cell."""
        return self.columns[0].where(place)


def node_codes(cells: Cells, interests: Interests) -> list[npt.NDArray[np.int64]]:
    """The codes of the label columns, or an error for the first row that names a node the workload does not have."""
    kind = agree(cells.columns, kind_of_labels(interests.nodes), "the workload's nodes")
    found = []
    for raw in cells.columns:
        column = raw.to_column(kind)
        codes = codes_in(interests.nodes, column)
        if codes.size and codes.min() < 0:
            place = int(np.argmin(codes))
            label = shown(column.labels[column.codes[place]])
            raise InvalidTable(f"{raw.where(place)}: {raw.name} {label!r} is not a node of the workload")
        found.append(codes)
    return found


def read_cells(
    path: Path,
    labels: Sequence[str],
    optional: Sequence[str],
    needed: Sequence[str] = (),
    strict_names: bool = True,
    present: Sequence[str] = (),
    encoding: str = UTF8,
) -> Cells:
    """Label columns, and others that may be left out; of these the `needed` may not, in no row, nor the `present` as a
    whole.
    """
    parts: list[RawPart] = []
    more: dict[str, list[Any]] = {}
    for part in list_parts(path, encoding=encoding):
        names = _header(part)
        _refuse_names(part.path, names, (*labels, *optional), strict_names)
        require_columns(part.path, names, (*labels, *needed, *present))
        there = [name for name in optional if name in names]
        require_columns(part.path, names, there)
        raw, values = _read_part(part, labels, there)
        for name in needed:
            for place, value in enumerate(values[name]):
                if value is None:
                    raw.reasons.setdefault(place, missing(name))
        parts.append(raw)
        for name in optional:
            more.setdefault(name, []).extend(values.get(name, [None] * raw.rows))
    refuse_bad_rows(parts)
    anchor = labels or [next(iter(parts[0].columns))]
    return Cells([RawColumn(name, parts, [part.columns[name] for part in parts]) for name in anchor], more)


def _header(part: Part) -> list[str]:
    if part.format == "csv":
        return read_header(part.path, read_text(part.path, part.encoding)[0])[0]
    try:
        with pq.ParquetFile(part.path) as file:
            names: list[str] = file.schema_arrow.names
            return names
    except ARROW_ERRORS as error:
        raise unreadable(part.path, error) from None


def _refuse_names(path: Path, names: Sequence[str], known: Sequence[str], strict: bool) -> None:
    """A column that is not known is an error; where others may stand beside, only one that looks like a known one."""
    for name in names:
        near = get_close_matches(name.lower(), known, n=1, cutoff=0.75)
        if name not in known and (strict or near):
            hint = f": did you mean {near[0]!r}?" if near else f": its columns may be {', '.join(known)}"
            raise InvalidTable(f"{shown(path)}: column {shown(name)!r} is unknown{hint}")


def _read_part(part: Part, labels: Sequence[str], more: Sequence[str]) -> tuple[RawPart, dict[str, list[Any]]]:
    if part.format == "csv":
        raw = read_csv(part, [*labels, *more])
        for place in [place for place, reason in raw.reasons.items() if reason in map(missing, more)]:
            del raw.reasons[place]
        return raw, {name: [text or None for text in raw.columns[name].to_pylist()] for name in more}
    raw = read_parquet(part, list(labels)) if labels else _bare_part(part, more)
    try:
        table = pq.read_table(part.path, columns=list(more))
    except ARROW_ERRORS as error:
        raise unreadable(part.path, error) from None
    return raw, {name: [None if _is_empty(v) else v for v in table.column(name).to_pylist()] for name in more}


def _bare_part(part: Part, names: Sequence[str]) -> RawPart:
    """A part without label columns: rows are counted by its first column."""
    try:
        table = pq.read_table(part.path, columns=list(names))
    except ARROW_ERRORS as error:
        raise unreadable(part.path, error) from None
    columns = {name: table.column(name) for name in names}
    return RawPart(part.path, columns, frozenset(), table.num_rows, {}, [], lambda places: [])


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
