"""Proof that a process has ended: its kernel refuses connections where it listened until just now.

Silence may have many causes, and takes the failure detector seconds to judge. A refusal has one: nobody listens there.
So a peer that refuses twice, a moment apart, after it had answered this node before, is declared failed without a
suspicion. A firewall that rejects looks the same. Therefore a peer is declared failed in this way at most once in a
while: one that refutes it is left to the failure detector, and does not rejoin for ever.

Only one's own attempts count. What others say of a peer leads to a probe, and so to an attempt.
"""

from __future__ import annotations

from omen.protocol.config import Config
from omen.protocol.events import NodeId, Time

REMEMBERED_AT_MOST = 1024


class Refusals:
    """`waiting`: the peers that have refused once. It outlasts the node's own incarnations."""

    def __init__(self, config: Config) -> None:
        self._gap = config.refusal_gap
        self._memory = config.refusal_memory
        self.waiting: dict[NodeId, Time] = {}
        self._proved: dict[NodeId, Time] = {}

    def note(self, peer: NodeId, now: Time) -> bool:
        """A peer has refused a connection; whether that proves that it has ended."""
        self._proved = {node: until for node, until in self._proved.items() if until > now}
        if peer in self._proved or len(self._proved) >= REMEMBERED_AT_MOST:
            return False
        first = self.waiting.get(peer)
        if first is None or now - first > self._memory:
            self._wait(peer, now)
            return False
        if now - first < self._gap:
            return False
        del self.waiting[peer]
        self._proved[peer] = now + self._memory
        return True

    def _wait(self, peer: NodeId, now: Time) -> None:
        self.waiting.pop(peer, None)
        if len(self.waiting) >= REMEMBERED_AT_MOST:
            del self.waiting[next(iter(self.waiting))]
        self.waiting[peer] = now

    def clear(self, peer: NodeId) -> None:
        """It was heard: what it refused before counts no more."""
        self.waiting.pop(peer, None)
