"""The table `churn`: what happens to nodes, in order of seq and of time. A list of topics in CSV is a JSON array."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omen.churn import Crash, Event, Join, Leave, Resubscribe, Trace
from omen.errors import InvalidTable
from omen.interests import Interests, Label
from omen.tables.arrow_arrays import from_numpy, from_words
from omen.tables.columns import Kind, RawColumn, agree, kind_of_labels
from omen.tables.csv_parts import read_csv, read_header
from omen.tables.parquet_parts import read_parquet
from omen.tables.parts import Part, list_parts, locate_table, shown, unreadable
from omen.tables.raw import ARROW_ERRORS, RawPart, missing, read_text, refuse_bad_rows, require_columns
from omen.tables.reading import read_raw_columns
from omen.tables.writing import write_arrow

COLUMNS = ("seq", "time_s", "event", "node", "topics")
EVENTS: dict[str, type[Event]] = {"join": Join, "leave": Leave, "crash": Crash, "resubscribe": Resubscribe}

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class ChurnTable:
    """A trace as read, with the seq of each event and where it stands."""

    trace: Trace
    seqs: tuple[int, ...]
    places: tuple[tuple[str, int], ...]  # file and row of each event

    def where(self, position: int) -> str:
        """File and row of the event at this position of the trace."""
        file, row = self.places[position]
        return f"{file}, row {row}"


@dataclass(frozen=True)
class _Row:
    """One row as its file has it; `topics` None where nothing stands there."""

    file: str
    number: int
    seq: int
    time_s: float
    event: str
    topics: list[Label] | None

    @property
    def where(self) -> str:
        return f"{self.file}, row {self.number}"


def event_word(event: Event) -> str:
    """The word of an event in the table."""
    return next(word for word, kind in EVENTS.items() if isinstance(event, kind))


def read_churn(path: str | Path, interests: Interests | None = None) -> ChurnTable:
    """A trace, strictly: the first row that is not as it should be is an error that names file and row.

    `interests` are those of the workload it happens to: its labels must be of the same kinds. The column `topics` may
    be left out.
    """
    parts = [_read_part(part) for part in list_parts(locate_table(Path(path)))]
    raw = [part for part, _ in parts]
    refuse_bad_rows(raw)
    column = RawColumn("node", raw, [part.columns["node"] for part in raw])
    nodes = column.to_column(agree([column], kind_of_labels(interests.nodes) if interests else None, "the workload"))
    rows = [row for _, those in parts for row in those]
    _refuse_disorder(rows)
    _refuse_kinds(rows, kind_of_labels(interests.topics) if interests else None)
    labels = nodes.labels[nodes.codes].tolist()
    events = tuple(_make_event(row, label) for row, label in zip(rows, labels, strict=True))
    return ChurnTable(Trace(events), tuple(row.seq for row in rows), tuple((row.file, row.number) for row in rows))


def read_topic_lists(path: str | Path, interests: Interests) -> dict[Label, tuple[Label, ...]]:
    """New topics by node, from a table like `interests`; labels of the same kinds as in these."""
    raw = read_raw_columns(locate_table(Path(path), "interests"), ("node", "topic"))
    node, topic = (
        column.to_column(agree([column], kind_of_labels(labels), "the workload"))
        for column, labels in zip(raw, (interests.nodes, interests.topics), strict=True)
    )
    lists: dict[Label, set[Label]] = {}
    for label, wanted in zip(node.labels[node.codes].tolist(), topic.labels[topic.codes].tolist(), strict=True):
        lists.setdefault(label, set()).add(wanted)
    return {label: tuple(sorted(topics)) for label, topics in lists.items()}


def write_churn(path: str | Path, trace: Trace, interests: Interests | None = None) -> None:
    """A trace as a table, numbered from 0: Parquet, or CSV where the name ends in .csv or .csv.gz.

    `interests` say what kind of labels a column has that holds none.
    """
    events = trace.events
    is_csv = Path(path).name.lower().endswith((".csv", ".csv.gz"))
    lists = [event.topics if isinstance(event, (Join, Resubscribe)) else None for event in events]
    table = {
        "seq": from_numpy(np.arange(len(events), dtype=np.int64)),
        "time_s": from_numpy(np.array([event.time_s for event in events], dtype=np.float64)),
        "event": from_words([event_word(event) for event in events]),
        "node": _label_values([event.node for event in events], interests.nodes if interests else None),
        "topics": _json_lists(lists) if is_csv else _list_values(lists, interests.topics if interests else None),
    }
    write_arrow(path, pa.table(table))


def _read_part(part: Part) -> tuple[RawPart, list[_Row]]:
    """The node column of a part, bad rows marked, and the other columns row by row."""
    return _read_csv_part(part) if part.format == "csv" else _read_parquet_part(part)


def _read_csv_part(part: Part) -> tuple[RawPart, list[_Row]]:
    header, _ = read_header(part.path, read_text(part.path)[0])
    columns = _known_columns(part, header)
    raw = read_csv(part, columns)
    for place in [place for place, reason in raw.reasons.items() if reason == missing("topics")]:
        del raw.reasons[place]
    values = {name: raw.columns[name].to_pylist() for name in columns}
    values["topics"] = [text or None for text in values.get("topics", [None] * raw.rows)]
    return raw, list(_make_rows(raw, values))


def _read_parquet_part(part: Part) -> tuple[RawPart, list[_Row]]:
    try:
        with pq.ParquetFile(part.path) as file:
            columns = _known_columns(part, file.schema_arrow.names)
            table = file.read(columns=[name for name in columns if name != "node"])
    except ARROW_ERRORS as error:
        raise unreadable(part.path, error) from None
    raw = read_parquet(part, ["node"])
    for name in table.column_names:
        _refuse_type(part, name, table.column(name).type)
    values = {name: table.column(name).to_pylist() for name in table.column_names}
    values.setdefault("topics", [None] * raw.rows)
    for name in ("seq", "time_s", "event"):
        for place, value in enumerate(values[name]):
            if value is None:
                raw.reasons.setdefault(place, missing(name))
    return raw, list(_make_rows(raw, values))


def _known_columns(part: Part, names: Sequence[str]) -> list[str]:
    columns = [name for name in COLUMNS if name != "topics" or name in names]
    require_columns(part.path, names, columns)
    for name in names:
        if name not in COLUMNS:
            raise InvalidTable(f"{shown(part.path)}: column {shown(name)!r} is unknown: churn has {', '.join(COLUMNS)}")
    return columns


def _refuse_type(part: Part, name: str, kind: Any) -> None:
    fits = {
        "seq": ("whole numbers", pa.types.is_integer(kind)),
        "time_s": ("numbers", pa.types.is_floating(kind) or pa.types.is_integer(kind)),
        "event": ("words", _is_text(kind)),
        "topics": ("lists of whole numbers or text", pa.types.is_null(kind) or _is_label_list(kind)),
    }
    wanted, right = fits[name]
    if not right:
        raise InvalidTable(f"{shown(part.path)}: column {name!r} is {kind}: {wanted} are wanted")


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_label_list(kind: Any) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return _is_text(kind.value_type) or bool(pa.types.is_integer(kind.value_type) or pa.types.is_null(kind.value_type))


def _make_rows(raw: RawPart, values: dict[str, list[Any]]) -> Iterator[_Row]:
    """The rows of a part up to its first bad one, which the caller refuses."""
    columns = (values["seq"], values["time_s"], values["event"], values["topics"])
    for place, (seq, time_s, event, topics) in enumerate(zip(*columns, strict=True)):
        if place in raw.reasons:
            return
        number = raw.row_number(place)
        where = f"{shown(raw.path)}, row {number}"
        if event not in EVENTS:
            raise InvalidTable(f"{where}: event {shown(event)!r} is not one of {', '.join(EVENTS)}")
        listed = _as_topics(topics, where)
        if listed is not None and event in ("leave", "crash"):
            raise InvalidTable(f"{where}: a {event} takes no topics: leave them empty")
        yield _Row(shown(raw.path), number, _as_seq(seq, where), _as_time(time_s, where), event, listed)


def _as_seq(value: Any, where: str) -> int:
    try:
        seq = int(_plain(value))
    except ValueError:
        seq = _INT64.max + 1
    if not _INT64.min <= seq <= _INT64.max:
        raise InvalidTable(f"{where}: seq {shown(value)!r} is not a whole number of 64 bits")
    return seq


def _as_time(value: Any, where: str) -> float:
    try:
        time_s = float(_plain(value))
    except ValueError:
        time_s = math.nan
    if not math.isfinite(time_s):
        raise InvalidTable(f"{where}: time_s {shown(value)!r} is not a number of seconds")
    return time_s


def _plain(value: Any) -> Any:
    """The value, without the underscores that Python allows in numbers and tables do not."""
    return value.replace("_", "?") if isinstance(value, str) else value


def _as_topics(value: Any, where: str) -> list[Label] | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InvalidTable(f"{where}: topics {shown(value)!r} is not a JSON array such as [1, 2]") from None
    if not isinstance(value, list):
        raise InvalidTable(f"{where}: topics {shown(value)!r} is not a list")
    for topic in value:
        if isinstance(topic, bool) or not isinstance(topic, (int, str)) or topic == "":
            raise InvalidTable(f"{where}: topic {shown(json.dumps(topic))} is neither a whole number nor text")
        if isinstance(topic, int) and not _INT64.min <= topic <= _INT64.max:
            raise InvalidTable(f"{where}: topic {topic} is beyond 64 bits: use text labels")
    return value


def _refuse_disorder(rows: Sequence[_Row]) -> None:
    for before, row in pairwise(rows):
        if row.seq <= before.seq:
            raise InvalidTable(f"{row.where}: seq {row.seq} comes after {before.seq}: rows must be in order of seq")
        if row.time_s < before.time_s:
            raise InvalidTable(
                f"{row.where}: time_s {row.time_s} comes after {before.time_s}: rows must be in order of time"
            )


def _refuse_kinds(rows: Sequence[_Row], expected: Kind | None) -> None:
    """Topics are all numbers or all text, as in the workload."""
    kind, other = expected, "the workload"
    for row in rows:
        for topic in row.topics or ():
            found: Kind = "text" if isinstance(topic, str) else "numbers"
            if kind is None:
                kind, other = found, row.where
            if found != kind:
                said = f"{shown(repr(topic))} is {'text' if found == 'text' else 'a number'}"
                raise InvalidTable(f"{row.where}: topic {said}, but those of {other} are {kind}")


def _make_event(row: _Row, node: Label) -> Event:
    topics = None if row.topics is None else tuple(row.topics)
    match row.event:
        case "join":
            return Join(row.time_s, node, topics)
        case "resubscribe":
            return Resubscribe(row.time_s, node, topics)
        case "leave":
            return Leave(row.time_s, node)
    return Crash(row.time_s, node)


def _label_values(values: Sequence[Label], labels: Any = None) -> Any:
    """Labels as an Arrow array; `labels` say of what kind where there are none."""
    example = values[0] if values else labels[0] if labels is not None and labels.size else 0
    if isinstance(example, str):
        return from_words([str(value) for value in values])
    return from_numpy(np.array(values, dtype=np.int64))


def _list_values(lists: Sequence[Sequence[Label] | None], labels: Any) -> Any:
    """Lists of labels as an Arrow array, None as null."""
    lengths = np.array([0 if topics is None else len(topics) for topics in lists], dtype=np.int64)
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = _label_values([topic for topics in lists for topic in topics or ()], labels)
    present = np.packbits(np.array([topics is not None for topics in lists], dtype=bool), bitorder="little")
    kind = pa.list_(pa.field("element", values.type))
    buffers = [pa.py_buffer(present), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(lists), buffers, children=[values])


def _json_lists(lists: Sequence[Sequence[Label] | None]) -> Any:
    texts = [None if topics is None else json.dumps(list(topics), ensure_ascii=False) for topics in lists]
    words = from_words([text or "" for text in texts])
    present = np.packbits(np.array([text is not None for text in texts], dtype=bool), bitorder="little")
    return pa.Array.from_buffers(words.type, len(texts), [pa.py_buffer(present), *words.buffers()[1:]])
