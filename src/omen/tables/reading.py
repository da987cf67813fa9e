"""Tables into nouns: interests, overlays, workload folders. Strict: a bad row is an error that names file and row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omen.errors import InvalidTable, MissingColumn
from omen.interests import Interests, Label
from omen.overlay import Overlay
from omen.tables.columns import Column, Kind, RawColumn, agree, codes_in, kind_of_labels
from omen.tables.csv_parts import read_csv
from omen.tables.json_lines import read_json_lines
from omen.tables.parquet_parts import read_parquet
from omen.tables.parts import find_table, list_parts, locate_table, shown, unreadable
from omen.tables.raw import UTF8, RawPart, RejectedRow, read_bytes, refuse_bad_rows

_READERS = {"parquet": read_parquet, "csv": read_csv, "json": read_json_lines}


@dataclass(frozen=True)
class Workload:
    """A workload as read: who wants which topic, what workload.json says, and how many doubled rows were merged."""

    interests: Interests
    info: dict[str, Any] = field(default_factory=dict)
    duplicates: int = 0


def read_workload(folder: str | Path) -> Workload:
    """A workload folder, or a table of interests alone."""
    path = Path(folder)
    interests = locate_table(path, "interests")
    inside = path if interests != path and path.is_dir() else None
    if not inside and (path / "workload.json").is_file():
        raise InvalidTable(f"{shown(path)}: a workload folder without the table 'interests'")
    nodes = find_table(inside, "nodes") if inside else None
    info = _read_info(inside / "workload.json") if inside else {}
    try:
        read, duplicates = read_interests(interests, nodes)
    except MissingColumn as error:
        if inside:
            raise
        hint = "omen workload import --node-column C --topic-column C makes a workload of a table with other columns"
        raise InvalidTable(f"{error}; {hint}") from None
    return Workload(read, info, duplicates)


def read_interests(path: str | Path, nodes: str | Path | None = None) -> tuple[Interests, int]:
    """The table `interests` (node, topic), with all nodes of the table `nodes`; and how many rows were doubles."""
    node, topic = read_raw_columns(path, ("node", "topic"))
    if nodes is None:
        kind = agree([node])
        listed = node.to_column(kind)
        codes = listed.codes
    else:
        (all_nodes,) = read_raw_columns(nodes, ("node",))
        kind = agree([all_nodes, node])
        listed = all_nodes.to_column(kind)
        wanted = node.to_column(kind)
        codes = codes_in(listed.labels, wanted)
        _refuse_unknown([node], [wanted], [codes], f"not in {shown(nodes)}")
    topics = topic.to_column(agree([topic]))
    interests = Interests.from_codes(listed.labels, topics.labels, codes, topics.codes)
    return interests, topics.codes.size - interests.subscription_count


def read_overlay(path: str | Path, interests: Interests) -> Overlay:
    """The table `overlay` (columns u, v) over the nodes of `interests`. Doubled and reversed links are merged."""
    ends = read_raw_columns(locate_table(Path(path), "overlay"), ("u", "v"))
    kind = agree(ends, kind_of_labels(interests.nodes), "the workload's nodes")
    columns = [end.to_column(kind) for end in ends]
    u, v = (codes_in(interests.nodes, column) for column in columns)
    _refuse_unknown(ends, columns, [u, v], "not a node of the workload")
    loops = np.flatnonzero(u == v)
    if loops.size:
        label = interests.nodes[u[loops[0]]]
        raise InvalidTable(f"{ends[0].where(int(loops[0]))}: node {_quoted(label)} is linked to itself")
    return Overlay.from_codes(interests.nodes, u, v)


def find_row(path: str | Path, name: str, column: str, label: Label) -> str:
    """File and row where a label stands first in a table, of this name where `path` is a workload folder."""
    (raw,) = read_raw_columns(locate_table(Path(path), name), (column,))
    words = [str(word) for array in raw.arrays for word in array.to_pylist()]
    return raw.where(words.index(str(label))) if str(label) in words else shown(path)


def read_table(path: str | Path, columns: Sequence[str], kinds: Mapping[str, Kind] | None = None) -> dict[str, Column]:
    """Label columns of any table, strictly. `kinds` names those that must be numbers or text to match other labels."""
    raw = read_raw_columns(path, columns)
    expected = kinds or {}
    return {
        column.name: column.to_column(agree([column], expected.get(column.name), "those it must match"))
        for column in raw
    }


def read_raw_columns(path: str | Path, columns: Sequence[str]) -> list[RawColumn]:
    """The columns of a table without a bad row."""
    parts = read_parts(path, columns)
    refuse_bad_rows(parts)
    return [RawColumn(name, parts, [part.columns[name] for part in parts]) for name in columns]


def read_accepting(
    path: str | Path, columns: Sequence[str], encoding: str = UTF8
) -> tuple[dict[str, Column], list[RejectedRow]]:
    """The good rows of a table (Parquet, CSV or JSON lines), and the bad ones with what is wrong with each."""
    parts = read_parts(path, columns, json_lines=True, encoding=encoding)
    good = [part.good() for part in parts]
    raw = [RawColumn(name, parts, [arrays[name] for arrays in good]) for name in columns]
    rejected = [row for part in parts for row in part.rejected()]
    return {column.name: column.to_column(column.kind()) for column in raw}, rejected


def read_parts(
    path: str | Path, columns: Sequence[str], json_lines: bool = False, encoding: str = UTF8
) -> list[RawPart]:
    """The parts of a table, bad rows marked."""
    parts = list_parts(locate_table(Path(path)), json_lines, encoding)
    return [_READERS[part.format](part, list(dict.fromkeys(columns))) for part in parts]


def _refuse_unknown(raw: Sequence[RawColumn], columns: Sequence[Column], codes: Sequence[Any], complaint: str) -> None:
    """An error for the first row that names a node that is not known."""
    unknown = [(int(np.argmin(found)), i) for i, found in enumerate(codes) if found.size and found.min() < 0]
    if unknown:
        place, i = min(unknown)
        label = columns[i].labels[columns[i].codes[place]]
        raise InvalidTable(f"{raw[i].where(place)}: {raw[i].name} {_quoted(label)} is {complaint}")


def _quoted(label: object) -> str:
    return shown(repr(label)) if isinstance(label, str) else str(label)


def _read_info(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        info = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from None
    if not isinstance(info, dict):
        raise InvalidTable(f"{shown(path)}: holds no JSON object")
    return info
