"""Peers of the view that may have ended: only those on the ring and at links are watched by the failure detector.

Not in the paper, whose views hold living nodes. A backup that has ended would stay in the views of nodes that no loss
of it concerns, come back to others by gossip when they no longer remember its loss, and be lost and repaired again.
"""

from __future__ import annotations

from collections.abc import Callable

from omen.protocol.events import NodeId, Time
from omen.protocol.messages.overlay import Ref

DOUBTED_AT_MOST, SILENT_AT_MOST = 64, 256
ASKED_AT_MOST = 3
"""Exchanges with a peer that does not answer, until it is forgotten."""


class Doubts:
    """Whom to turn to next, who has not answered, and who was asked in vain often enough.

    Another's word that a peer has ended does no more than bring it to its turn: each node asks for itself, and tells
    others what it found out itself.
    """

    def __init__(self, patience: Time, memory: Time) -> None:
        self._patience = patience
        self._memory = memory
        self._unanswered: dict[NodeId, int] = {}
        self._asked_at: dict[NodeId, Time] = {}
        self._silent: dict[NodeId, tuple[int, Time]] = {}

    def are_pressing(self, now: Time) -> bool:
        """Whether some peer has not answered in its time. What others say is not enough: it costs them little."""
        waited = now - self._patience
        return any(times > 1 or self._asked_at.get(node, now) <= waited for node, times in self._unanswered.items())

    def add(self, node: NodeId) -> None:
        """Another node says that it has ended."""
        if len(self._unanswered) < DOUBTED_AT_MOST:
            self._unanswered.setdefault(node, 0)

    def note_asked(self, node: NodeId, now: Time) -> None:
        if node in self._unanswered or len(self._unanswered) < DOUBTED_AT_MOST:
            self._unanswered[node] = self._unanswered.get(node, 0) + 1
            self._asked_at[node] = now

    def hear(self, node: NodeId) -> None:
        """It has answered."""
        if self._unanswered.pop(node, None) is not None:
            self._asked_at.pop(node, None)
        if self._silent:
            self._silent.pop(node, None)

    def retain(self, holds: Callable[[NodeId], bool]) -> None:
        """Only of these it matters whether they are there."""
        for node in [node for node in self._unanswered if not holds(node)]:
            self.hear(node)

    def take_silent(self, now: Time) -> list[NodeId]:
        """Those that were asked often enough, the last time long enough ago."""
        silent = [
            node
            for node, times in self._unanswered.items()
            if times >= ASKED_AT_MOST and self._asked_at[node] + self._patience <= now
        ]
        for node in silent:
            self.hear(node)
        return silent

    def note_silent(self, ref: Ref, now: Time) -> None:
        """It is not taken from others for a while, in this incarnation."""
        self._silent = {node: kept for node, kept in self._silent.items() if kept[1] > now}
        while len(self._silent) >= SILENT_AT_MOST:
            del self._silent[next(iter(self._silent))]
        self._silent[ref.id] = (ref.incarnation, now + self._memory)

    def is_silent(self, ref: Ref, now: Time) -> bool:
        """Whether it was asked in vain not long ago."""
        incarnation, until = self._silent.get(ref.id, (-1, 0))
        return ref.incarnation <= incarnation and now < until

    def next(self, now: Time) -> NodeId | None:
        """Who is to be asked now: the one asked least, once it had time to answer."""
        due = [
            (times, node)
            for node, times in self._unanswered.items()
            if times < ASKED_AT_MOST and self._asked_at.get(node, -self._patience) + self._patience <= now
        ]
        return min(due)[1] if due else None
