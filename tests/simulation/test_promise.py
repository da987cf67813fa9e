"""The promise, judged on a population of cores that only say what they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from omen.protocol.messages.base import EventId, EventKind
from omen.sim.promise import Promise

TOPIC = 7


def core(node: int, *links: int) -> Any:
    up = {other: SimpleNamespace(ref=SimpleNamespace(incarnation=1), is_up=True) for other in links}
    return SimpleNamespace(
        ref=SimpleNamespace(id=node, incarnation=1),
        topics=(TOPIC,),
        links=lambda: up,
        is_leaving=False,
        requests={},
        loss_reports=(),
        has_declared_failed=lambda _: False,
    )


def test_a_wrong_repair_is_seen_beside_a_former_neighbour_that_was_declared_failed_and_is_there() -> None:
    """It stands still, and its link to the lost node is up: that loss is no longer open because of it."""
    one, two, still, lost = 1, 2, 3, 4
    cores = {one: core(one, lost), two: core(two, lost), still: core(still, lost), lost: core(lost, one, two, still)}
    members = [one, two, still, lost]
    population: Any = SimpleNamespace(cores=cores, members=lambda: members)
    promise = Promise(population)
    promise.note_declared(still, 1, lost)
    promise.note_handled([EventId(still, 1, EventKind.LEAVE)], [lost])
    promise.note_end(lost, 1)
    members.remove(lost)
    for node in (one, two):
        del cores[node].links()[lost]
    handled = EventId(lost, 1, EventKind.LEAVE)
    promise.note_handled([handled], [one, two])
    assert promise.split_topics([handled]) == {TOPIC: [[one], [two]]}
