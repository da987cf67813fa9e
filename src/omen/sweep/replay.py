"""Cells that replay churn on a system, in the simulator or not: a number for each event, and looks at the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from omen.churn import Crash, Join, Leave, Trace
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.protocol.events import SECOND
from omen.quality import Degrees, Diameters, degree_summary, diameter_summary, topic_diameters
from omen.sweep.cells import Cell
from omen.systems import design_overlay
from omen.systems.replay import Replayed, Supervision, replay
from omen.systems.system import System

PROMISE_NOTHING = ("spidercast",)
MEASURED = ("max_degree", "avg_degree", "shadow_size", "repair_s", "messages", "bytes")
Floats = npt.NDArray[np.float64]


class Looks:
    """What only a look at the system itself tells: degrees before the first event, and diameters now and then."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.start: Degrees | None = None
        self.diameters: list[Diameters] = []
        self.at: list[int] = []
        self.simulated_s: float | None = None
        self._seen = 0

    def __call__(self, system: System, position: int) -> None:
        if not position:
            self.start = degree_summary(system.snapshot()[1])
        if self.every and position // self.every != self._seen // self.every:
            interests, overlay = system.snapshot()
            self.diameters.append(diameter_summary(interests, topic_diameters(interests, overlay)))
            self.at.append(position)
        self._seen = position
        if (world := getattr(system, "world", None)) is not None:
            self.simulated_s = world.now / SECOND

    def values(self) -> dict[str, float]:
        """Means over the looks; a topic that is split has no diameter and is counted instead."""
        found: dict[str, float] = {}
        if self.start is not None:
            found |= {"start_max_degree": self.start.maximum, "start_avg_degree": self.start.average}
        if self.simulated_s is not None:
            found["simulated_s"] = self.simulated_s
        if self.diameters:
            found |= {
                "looks": len(self.diameters),
                "max_diameter_mean": float(np.mean([one.maximum for one in self.diameters])),
                "mean_diameter_mean": float(np.mean([one.mean for one in self.diameters])),
                "split_at_looks": sum(one.disconnected > 0 for one in self.diameters),
            }
        return found

    def series(self) -> dict[str, list[float]]:
        """After which events, and what was seen."""
        if not self.diameters:
            return {}
        return {
            "looked_after": [float(position) for position in self.at],
            "looked_max_diameter": [float(one.maximum) for one in self.diameters],
            "looked_mean_diameter": [one.mean for one in self.diameters],
        }


def measure_replay(cell: Cell, interests: Interests, trace: Trace) -> tuple[dict[str, float], dict[str, list[float]]]:
    """A whole replay in columns. `start`: the algorithm whose overlay it starts from, Low-ODA's where none is named."""
    looks = Looks(int(cell.setting("diameters_every", 0)))
    start_from = str(cell.setting("start", ""))
    options: dict[str, Any] = dict(cell.options)
    replayed = replay(
        interests,
        trace,
        cell.name,
        design_overlay(interests, start_from) if start_from else None,
        verify=cell.setting("verify", "end"),
        supervision=Supervision(skip_impossible=True, look=looks),
        **options,
    )
    if replayed.topic_connected is False and cell.name not in PROMISE_NOTHING:
        raise InvalidInput(f"{cell.name} left topics split after {len(replayed.splits)} of {replayed.judged} looks")
    at_start = interests.node_count - len(trace.absent_at_start().intersection(interests.nodes.tolist()))
    series = _series(replayed, at_start)
    values = _values(replayed, series) | looks.values()
    if cell.setting("diameters", False):
        found = diameter_summary(replayed.interests, topic_diameters(replayed.interests, replayed.overlay))
        values |= {"max_diameter": found.maximum, "mean_diameter": found.mean}
    kept = {name: column.tolist() for name, column in series.items() if not np.isnan(column).all()} | looks.series()
    return {name: float(value) for name, value in values.items()}, kept if cell.setting("series", True) else {}


def _series(replayed: Replayed, nodes_at_start: int) -> dict[str, Floats]:
    joins, gone = _kinds(replayed)
    nodes = nodes_at_start + np.cumsum(joins.astype(int) - gone.astype(int))
    columns = {name: _as_floats(column) for name, column in replayed.columns.items()}
    links = np.rint(columns["avg_degree"] * nodes / 2)
    return {
        "join": joins.astype(float),
        "nodes": nodes.astype(float),
        "links_before": links - columns["edges_added"] + columns["edges_removed"],
        "changed": columns["edges_added"] + columns["edges_removed"],
        **{name: columns[name] for name in MEASURED},
    }


def _values(replayed: Replayed, series: dict[str, Floats]) -> dict[str, float]:
    """Means over all events, over joins and over losses. Messages of several events of one instant stand with one of
    them: `messages_an_event` is all of them over all events.
    """
    joins, gone = _kinds(replayed)
    values = {
        "events": float(joins.size),
        "judged": float(replayed.judged),
        "times_split": float(len(replayed.splits)),
    }
    for name in ("changed", *MEASURED):
        column = series[name]
        for where, chosen in (("", np.ones_like(joins)), ("_join", joins), ("_leave", gone)):
            if column[chosen].size and not np.isnan(column[chosen]).all():
                values[f"{name}{where}_mean"] = float(np.nanmean(column[chosen]))
    if joins.size:
        values |= {"max_degree": series["max_degree"][-1], "avg_degree": series["avg_degree"][-1]}
        if not np.isnan(series["messages"]).all():
            values["messages_an_event"] = float(np.nansum(series["messages"])) / joins.size
    return values


def _kinds(replayed: Replayed) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which events are joins, and which are losses."""
    joins = np.array([isinstance(event, Join) for event in replayed.events], dtype=bool)
    return joins, np.array([isinstance(event, (Leave, Crash)) for event in replayed.events], dtype=bool)


def _as_floats(column: npt.NDArray[Any]) -> Floats:
    """Counts have -1 where nothing was measured."""
    floats = column.astype(np.float64)
    return np.where(floats < 0, np.nan, floats) if column.dtype.kind == "i" else floats
