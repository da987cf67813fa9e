"""The order of events (omen Alg. 5)."""

from __future__ import annotations

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
