"""Peers of the view that may have ended: only those on the ring and at links are watched by the failure detector.

Not in the paper, whose views hold living nodes. A backup that has ended would stay in the views of nodes that no loss
of it concerns, come back to others by gossip when they no longer remember its loss, and be lost and repaired again.
"""

from __future__ import annotations

from collections.abc import Callable

from omen.protocol.events import NodeId, Time

DOUBTED_AT_MOST = 64
ASKED_AT_MOST = 3
"""Exchanges with a peer that does not answer, until it is forgotten."""


class Doubts:
    """Whom to turn to next, and who has not answered. Another's word that a peer has ended does no more than bring it
    to its turn.
    """

    def __init__(self, patience: Time) -> None:
        self._patience = patience
        self._unanswered: dict[NodeId, int] = {}
        self._asked_at: dict[NodeId, Time] = {}

    def are_pressing(self, now: Time) -> bool:
        """Whether some peer is in doubt for more than not having answered yet."""
        waited = now - self._patience
        return any(times != 1 or self._asked_at[node] <= waited for node, times in self._unanswered.items())

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

    def retain(self, holds: Callable[[NodeId], bool]) -> None:
        """Only of these it matters."""
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

    def next(self, now: Time) -> NodeId | None:
        """Who is to be asked now: the one asked least, once it had time to answer."""
        due = [
            (times, node)
            for node, times in self._unanswered.items()
            if times < ASKED_AT_MOST and self._asked_at.get(node, -self._patience) + self._patience <= now
        ]
        return min(due)[1] if due else None
