"""Traces brought in from outside: what monitoring has written down of nodes that went up and down.

`events`: a row for each time a node went up or down. `intervals`: a row for each time a node was up, from when to when;
an empty cell means from the start, or to the end. Times count from the earliest one in the table. A replay begins with
all nodes of a workload, so a node that comes up later leaves at time 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omen.churn import Crash, Event, Join, Leave, Trace
from omen.errors import InvalidTable
from omen.interests import Interests, Label, plain
from omen.tables.cells import Cells, read_cells
from omen.tables.columns import agree, codes_in, kind_of_labels
from omen.tables.parts import locate_table, shown
from omen.tables.raw import UTF8

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
UP = frozenset({"up", "join", "add", "start"})
LEAVES = frozenset({"leave", "stop"})
CRASHES = frozenset({"crash", "fail"})
DOWN = frozenset({"down", "remove"})
"""It went down, and the table does not say how."""


@dataclass(frozen=True)
class ImportedChurn:
    """What came in. `strangers`: nodes that the workload does not have; `repeated`: rows that say what was so already.

    `late`: nodes that are down at first.
    """

    trace: Trace
    rows: int
    strangers: int
    repeated: int
    late: int


@dataclass(frozen=True, slots=True)
class _Change:
    """One node goes up or down. `how`: the kind of event where it goes down."""

    time_s: float
    node: int
    is_up: bool
    how: type[Leave] | type[Crash]


def import_events(
    path: str | Path,
    interests: Interests,
    columns: tuple[str, str, str] = ("node", "time_s", "event"),
    unit: str = "s",
    down: type[Leave] | type[Crash] = Crash,
    encoding: str = UTF8,
) -> ImportedChurn:
    """From rows of node, time and event. `down`: what it means that a node went down."""
    node, time, event = columns
    cells = read_cells(
        locate_table(Path(path)), (node,), (time, event), (time, event), strict_names=False, encoding=encoding
    )
    codes, strangers = _nodes_of(cells, interests)
    changes = []
    for place, code in enumerate(codes):
        time_s = _as_time(cells.more[time][place], time, cells, place) * UNITS[unit]
        word = str(cells.more[event][place]).strip().lower()
        if word not in UP | LEAVES | CRASHES | DOWN:
            known = ", ".join(sorted(UP | LEAVES | CRASHES | DOWN))
            raise InvalidTable(f"{cells.where(place)}: event {shown(word)!r} is not one of {known}")
        how = Leave if word in LEAVES else Crash if word in CRASHES else down
        changes.append(_Change(time_s, code, word in UP, how))
    return _as_trace(changes, interests, len(codes), strangers)


def import_intervals(
    path: str | Path,
    interests: Interests,
    columns: tuple[str, str, str] = ("node", "up_s", "down_s"),
    unit: str = "s",
    down: type[Leave] | type[Crash] = Crash,
    encoding: str = UTF8,
) -> ImportedChurn:
    """From rows of node, and from when to when it was up."""
    node, begin, end = columns
    both = (begin, end)
    cells = read_cells(locate_table(Path(path)), (node,), both, strict_names=False, present=both, encoding=encoding)
    codes, strangers = _nodes_of(cells, interests)
    spans: dict[int, list[tuple[float, float]]] = {}
    for place, code in enumerate(codes):
        first, last = (cells.more[name][place] for name in (begin, end))
        since = -math.inf if first is None else _as_time(first, begin, cells, place) * UNITS[unit]
        until = math.inf if last is None else _as_time(last, end, cells, place) * UNITS[unit]
        if until < since:
            raise InvalidTable(f"{cells.where(place)}: it ends at {until:g} s, before it begins at {since:g} s")
        spans.setdefault(code, []).append((since, until))
    changes = [change for code, each in spans.items() for change in _changes_of(code, each, down)]
    return _as_trace(changes, interests, len(codes), strangers)


def _changes_of(code: int, spans: Iterable[tuple[float, float]], down: type[Leave] | type[Crash]) -> Iterable[_Change]:
    """Spans that touch or overlap are one."""
    merged: list[list[float]] = []
    for since, until in sorted(spans):
        if merged and since <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], until)
        else:
            merged.append([since, until])
    for since, until in merged:
        yield _Change(since, code, True, down)
        if until < math.inf:
            yield _Change(until, code, False, down)


def _nodes_of(cells: Cells, interests: Interests) -> tuple[list[int], int]:
    """The code of each row's node, -1 for one that the workload does not have; how many such nodes there are."""
    (raw,) = cells.columns
    column = raw.to_column(agree(cells.columns, kind_of_labels(interests.nodes), "the workload's nodes"))
    codes = codes_in(interests.nodes, column).tolist()
    strangers = {int(label) for label, code in zip(column.codes.tolist(), codes, strict=True) if code < 0}
    return codes, len(strangers)


def _as_time(value: Any, name: str, cells: Cells, place: int) -> float:
    try:
        time = float(value)
    except (TypeError, ValueError):
        time = math.nan
    if isinstance(value, bool) or not math.isfinite(time):
        raise InvalidTable(f"{cells.where(place)}: {name} {shown(value)!r} is not a number")
    return time


def _as_trace(changes: list[_Change], interests: Interests, rows: int, strangers: int) -> ImportedChurn:
    """In the order of time, by rows where times are equal; what changes nothing is left out and counted."""
    known = [change for change in changes if change.node >= 0]
    if not known:
        raise InvalidTable(f"none of its {rows} rows is about a node of the workload")
    start = min((change.time_s for change in known if math.isfinite(change.time_s)), default=0.0)
    names: Mapping[int, Label] = {change.node: plain(interests.nodes, change.node) for change in known}
    known.sort(key=lambda change: change.time_s)
    is_up: dict[int, bool] = {}
    late: list[Event] = []
    events: list[Event] = []
    repeated = 0
    for change in known:
        time_s, name = max(0.0, change.time_s - start), names[change.node]
        if change.node not in is_up:
            is_up[change.node] = True
            if change.is_up and time_s > 0:
                late.append(Leave(0.0, name))
                is_up[change.node] = False
            elif change.is_up:
                continue
        if is_up[change.node] == change.is_up:
            repeated += 1
            continue
        is_up[change.node] = change.is_up
        events.append(Join(time_s, name) if change.is_up else change.how(time_s, name))
    return ImportedChurn(Trace((*late, *events)), rows, strangers, repeated, len(late))
