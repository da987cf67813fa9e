"""What a batch of events comes to, checked before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from omen.churn import Crash, Event, Join, Leave, Resubscribe
from omen.errors import InvalidInput
from omen.interests import Interests, Label, encode, label_array
from omen.maintain.state import State


@dataclass
class Plan:
    """The net effect of events that happen together.

    `leaving`: present nodes (slots) that lose their links, also those that come back within the batch. `joining`: nodes
    present at the end that start without links, in the order they came. `losing` and `gaining`: topics of nodes (slots)
    that stay throughout. A node that comes and goes within the batch is in none of them.
    """

    leaving: list[int] = field(default_factory=list)
    joining: list[tuple[Label, list[Label]]] = field(default_factory=list)
    losing: list[tuple[int, list[Label]]] = field(default_factory=list)
    gaining: list[tuple[int, list[Label]]] = field(default_factory=list)


@dataclass
class _Fate:
    """What became of one node: its slot if it stays throughout, whether it is there, its topics if they were given."""

    slot: int | None
    present: bool
    topics: set[Label] | None = None
    left: bool = False


def plan_events(state: State, events: Sequence[Event], workload: Interests | None) -> Plan:
    """Check events one after the other and sum them up; InvalidInput names the first that is impossible."""
    fates: dict[Label, _Fate] = {}
    for position, event in enumerate(events):
        where = f"event {position}: " if len(events) > 1 else ""
        try:
            _follow(state, event, fates, workload)
        except InvalidInput as error:
            raise InvalidInput(f"{where}{error}") from None
    _check_kinds(state, fates)
    return _sum_up(state, fates)


def _follow(state: State, event: Event, fates: dict[Label, _Fate], workload: Interests | None) -> None:
    label = state.nodes.checked(event.node)
    fate = fates.pop(label, None)  # taken out and put back last: joining nodes keep the order they came in
    if fate is None:
        slot = state.nodes.slot_of.get(label)
        fate = _Fate(slot, slot is not None)
    match event:
        case Join():
            if fate.present:
                raise InvalidInput(f"node {label!r} joins but is in the overlay already")
            fate.topics = _topics_of(state, label, event.topics, workload)
            fate.present, fate.slot = True, None
        case Resubscribe():
            if not fate.present:
                raise InvalidInput(f"node {label!r} resubscribes but is not in the overlay")
            fate.topics = _topics_of(state, label, event.topics, workload)
        case Leave() | Crash():
            if not fate.present:
                raise InvalidInput(f"node {label!r} leaves but is not in the overlay")
            fate.left = fate.left or fate.slot is not None
            fate.present, fate.slot, fate.topics = False, None, None
        case _:
            raise InvalidInput(f"{event!r} is no event: use Join, Leave, Crash or Resubscribe")
    fates[label] = fate


def _topics_of(state: State, node: Label, given: Iterable[Any] | None, workload: Interests | None) -> set[Label]:
    if given is not None:
        if isinstance(given, str):
            raise InvalidInput(f"the topics of node {node!r} must be a list, not the text {given!r}")
        return {state.topics.checked(topic) for topic in given}
    code = -1 if workload is None else int(encode(workload.nodes, label_array([node]))[0])
    if workload is None or code < 0:
        raise InvalidInput(f"node {node!r} comes without topics and is not in the workload's interests")
    return {state.topics.checked(topic) for topic in workload.topics[workload.topics_of(code)].tolist()}


def _check_kinds(state: State, fates: dict[Label, _Fate]) -> None:
    """Labels new to an empty population must at least agree with each other."""
    if not state.nodes.slot_of:
        label_array(list(fates), "node")
    if not state.topics.slot_of:
        label_array([topic for fate in fates.values() for topic in fate.topics or ()], "topic")


def _sum_up(state: State, fates: dict[Label, _Fate]) -> Plan:
    plan = Plan()
    for label, fate in fates.items():
        if fate.left:
            plan.leaving.append(state.nodes.slot_of[label])
        if fate.topics is None:
            continue
        if fate.slot is None:
            plan.joining.append((label, sorted(fate.topics)))
            continue
        before = {state.topics.label(topic) for topic in state.topics_of.of(fate.slot).tolist()}
        if before - fate.topics:
            plan.losing.append((fate.slot, sorted(before - fate.topics)))
        if fate.topics - before:
            plan.gaining.append((fate.slot, sorted(fate.topics - before)))
    plan.leaving = state.nodes.in_order(plan.leaving)
    return plan
