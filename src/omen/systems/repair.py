"""Repair an overlay once: some nodes leave, join or change their topics, together; which links now?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omen.churn import Event, Join, Leave, Resubscribe
from omen.errors import InvalidInput
from omen.fleet.repairing import Within
from omen.interests import Interests, Label, Labels, encode, label_array
from omen.maintain import start_maintainer
from omen.maintain.change import Change
from omen.overlay import Overlay
from omen.systems.replay import only_links, only_nodes

_WHOLE_NUMBER = re.compile(r"[+-]?0{0,99}[0-9]{1,19}")  # as in tables; more digits are beyond 64 bits
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Batch:
    """What happens to nodes at once. `topics` holds the lists of those that join or resubscribe; a joining node that is
    not in it has its topics from the workload.
    """

    leave: Sequence[Label] = ()
    join: Sequence[Label] = ()
    resubscribe: Sequence[Label] = ()
    topics: Mapping[Label, tuple[Label, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Repaired:
    """The links to make and to drop, and the nodes and links there are when that is done."""

    change: Change
    interests: Interests
    overlay: Overlay
    max_degree: int
    average_degree: float


def as_label(text: str, labels: Labels) -> Label:
    """A word of the command line as a label of the same kind as these."""
    if labels.size and labels.dtype == object:
        return text
    if _WHOLE_NUMBER.fullmatch(text) and _INT64.min <= int(text) <= _INT64.max:
        return int(text)
    if labels.size:
        raise InvalidInput(f"node {text!r} is no whole number of 64 bits, but the nodes of the workload are numbers")
    return text


def repair_once(
    workload: Interests,
    overlay: Overlay,
    batch: Batch,
    system: str = "shadow",
    *,
    within: Within | None = None,
    **options: Any,
) -> Repaired:
    """What a maintainer does about nodes that leave, change their topics and join, `within` the rules of a fleet.

    All nodes of the workload count as present, but for those that join, which must have no links unless they leave as
    well (a node that restarts).
    """
    for nodes, what in ((batch.leave, "leaves"), (batch.join, "joins"), (batch.resubscribe, "resubscribes")):
        _refuse_twice(nodes, what)
    newcomers = [node for node in batch.join if node not in set(batch.leave)]
    events: list[Event] = [Leave(0.0, node) for node in batch.leave]
    events += [Resubscribe(0.0, node, _new_topics(node, batch.topics)) for node in batch.resubscribe]
    events += [Join(0.0, node, _topics_of_newcomer(node, batch.topics, workload)) for node in batch.join]
    present = _present(workload, overlay, newcomers)
    maintainer = start_maintainer(
        system, only_nodes(workload, present), only_links(overlay, present), workload=workload, within=within, **options
    )
    change = maintainer.apply(events)
    return Repaired(
        change, maintainer.interests(), maintainer.overlay(), maintainer.max_degree, maintainer.average_degree
    )


def _present(workload: Interests, overlay: Overlay, newcomers: Sequence[Label]) -> Any:
    present = np.ones(workload.node_count, dtype=bool)
    for node in newcomers:
        code = _code(workload, node)
        if code >= 0 and overlay.degrees[code]:
            raise InvalidInput(f"node {node!r} joins but has {int(overlay.degrees[code])} links in the overlay already")
        if code >= 0:
            present[code] = False
    return present


def _code(workload: Interests, node: Label) -> int:
    if workload.node_count == 0 or isinstance(node, str) != (workload.nodes.dtype == object):
        return -1
    return int(encode(workload.nodes, label_array([node]))[0])


def _new_topics(node: Label, lists: Mapping[Label, tuple[Label, ...]]) -> tuple[Label, ...]:
    if node not in lists:
        raise InvalidInput(f"node {node!r} resubscribes, but the table of topics has no row for it")
    return lists[node]


def _topics_of_newcomer(
    node: Label, lists: Mapping[Label, tuple[Label, ...]], workload: Interests
) -> tuple[Label, ...] | None:
    if node in lists:
        return lists[node]
    if _code(workload, node) < 0:
        raise InvalidInput(f"node {node!r} joins, but neither the table of topics nor the workload has topics for it")
    return None


def _refuse_twice(nodes: Sequence[Label], what: str) -> None:
    for place, node in enumerate(nodes):
        if node in nodes[:place]:
            raise InvalidInput(f"node {node!r} {what} twice")
