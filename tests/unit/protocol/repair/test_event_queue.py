"""The order of events (omen Alg. 5), and what is known of them."""

from __future__ import annotations

from tests.unit.protocol.contexts import describe, ref

from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId
from omen.protocol.repair.event_queue import EventQueue


def test_what_is_taken_over_comes_before_what_was_heard_of_later() -> None:
    queue = EventQueue()
    old, new, newest = (EventId(node, 1, EventKind.LEAVE) for node in (7, 3, 5))
    for event in (old, new, newest):
        queue.get(event)
    queue.exe_q += [newest, new]
    queue.exe_q.append(old)  # its coordinator has failed, and it falls to this node
    assert [queue.take() for _ in range(3)] == [old, new, newest]


def test_what_is_not_ready_goes_behind_all_others() -> None:
    queue = EventQueue()
    old, new = (EventId(node, 1, EventKind.LEAVE) for node in (7, 3))
    for event in (old, new):
        queue.get(event)
    queue.exe_q.append(new)
    queue.requeue(old)
    assert [queue.take() for _ in range(2)] == [new, old]


def test_what_is_recalled_of_a_linked_loss_is_known_once_its_neighbours_were_named() -> None:
    queue, lost = EventQueue(), EventId(7, 1, EventKind.LEAVE)
    assert not queue.recall(lost, None).known
    pending = queue.get(lost)
    pending.loss.topics.add(1)
    pending.loss.neighbours[3] = pending.reporters[3] = ref(3)
    reported = queue.recall(lost, None)
    assert (reported.topics, list(reported.neighbours), reported.known) == ({1}, [3], False)
    assert queue.recall(lost, describe(7, (1, 2), degree=2)).known
    former = queue.recall(EventId(7, 2, EventKind.LEAVE), describe(7, (1, 2), degree=2))
    assert (former.topics, former.known) == (set(), False), "what is known of another incarnation says nothing"


def test_what_is_recalled_of_a_handled_loss_is_who_was_heard_then() -> None:
    queue, lost = EventQueue(), EventId(7, 1, EventKind.LEAVE)
    queue.collect(lost, [ref(3), ref(4)])
    found = queue.recall(lost, None)
    assert (sorted(found.neighbours), found.known) == ([3, 4], True)


def test_what_is_recalled_is_a_copy() -> None:
    queue, lost = EventQueue(), EventId(7, 1, EventKind.LEAVE)
    queue.get(lost).loss.topics.add(1)
    queue.recall(lost, None).topics.add(2)
    assert queue.get(lost).loss.topics == {1}


def test_a_loss_that_was_only_asked_about_is_hearsay_until_somebody_tells_of_it() -> None:
    queue = EventQueue()
    asked, reported, requested = (queue.get(EventId(node, 1, EventKind.LEAVE)) for node in (7, 3, 5))
    reported.loss.neighbours[2] = ref(2)
    requested.client = ref(5)
    assert [asked.is_hearsay, reported.is_hearsay, requested.is_hearsay] == [True, False, False]
