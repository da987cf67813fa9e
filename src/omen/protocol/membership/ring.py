"""The identifier ring as one node sees it: L predecessors and L successors (omen 3.3), found by T-Man on ring
distance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Time
from omen.protocol.messages.overlay import Ref

SPACE = 1 << 64
UNSURE_PERIODS = 5  # of gossip: after these it has brought who stands next
SPARE = 2  # kept beyond L on either side, so that a loss is filled at once


def place_of(name: str) -> NodeId:
    """The place of a name on the ring."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def clockwise(start: NodeId, end: NodeId) -> int:
    """How far `end` lies after `start`, walking from node to successor."""
    return (end - start) % SPACE


def nearest_after(place: NodeId, nodes: Iterable[NodeId], count: int) -> list[NodeId]:
    """The first `count` nodes met walking clockwise from `place`, itself excluded."""
    return sorted((node for node in nodes if node != place), key=lambda node: (node - place) % SPACE)[:count]


def nearest_before(place: NodeId, nodes: Iterable[NodeId], count: int) -> list[NodeId]:
    """The first `count` nodes met walking counter-clockwise from `place`, itself excluded."""
    return sorted((node for node in nodes if node != place), key=lambda node: (place - node) % SPACE)[:count]


class Ring:
    """Keeps `members`, the references of the nodes nearest on either side; `version` counts their changes.

    `changed`: other nodes are on it than when the node last settled.
    """

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._clock = context.clock
        self._me = context.peer_table.id
        self._reach_ahead = self._reach_behind = SPACE
        self.members: dict[NodeId, Ref] = {}
        self.predecessors: list[NodeId] = []
        self.successors: list[NodeId] = []
        self.version = 0
        self.changed = False
        self._unsure_until: Time = 0

    def settle(self) -> None:
        """The node has taken in what changed."""
        self.changed = False

    def mark_changed(self) -> None:
        self.changed = True

    def consider(self, ref: Ref) -> bool:
        """Take in a node if it stands nearer than one that is kept; whether anything changed."""
        if not self.reaches(ref.id) or ref.id == self._me or self._peer_table.is_declared_failed(ref):
            return False
        present = self.members.get(ref.id)
        if present is not None:
            if ref.incarnation > present.incarnation:
                self.members[ref.id] = ref
                self.version += 1
            return False
        if not self.members:
            self._begin_to_doubt()
        self.members[ref.id] = ref
        self._arrange()
        self.changed = True
        return True

    def _begin_to_doubt(self) -> None:
        self._unsure_until = self._clock.now + UNSURE_PERIODS * self._config.gossip_period

    def reaches(self, node: NodeId) -> bool:
        """Whether a node stands near enough to be of interest: cheap, for it is asked of every node that gossip
        names.
        """
        ahead = (node - self._me) % SPACE
        return ahead <= self._reach_ahead or SPACE - ahead <= self._reach_behind

    def drop(self, node: NodeId) -> bool:
        if self.members.pop(node, None) is None:
            return False
        self._begin_to_doubt()
        self._arrange()
        self.changed = True
        return True

    def get_preds(self) -> list[NodeId]:
        """The L predecessors, nearest first (Alg. 6)."""
        return self.predecessors[: self._config.resilience]

    def get_succs(self) -> list[NodeId]:
        """The L successors, nearest first."""
        return self.successors[: self._config.resilience]

    def next_step(self, origin: NodeId, newcomer: NodeId) -> Ref | None:
        """Where a walk round the ring goes on from here: L nodes further, not past its origin. None: it is there.

        Not to the newcomer that it is for, which knows little of those it came in beside.

        For a while after this node has lost one near it, or has begun, it may not know who stands next. What follows a
        gap may be any node, also one that stands behind. Then the walk goes on by one node.
        """
        left = clockwise(self._me, origin) or SPACE
        far = 1 if self._clock.now < self._unsure_until else self._config.resilience
        others = (node for node in self.successors if node != newcomer)
        ahead = [node for node in islice(others, far) if clockwise(self._me, node) < left]
        return self.members[ahead[-1]] if ahead else None

    def successor_refs(self) -> tuple[Ref, ...]:
        return tuple(self.members[node] for node in self.get_succs())

    def is_coordinator(self, node: NodeId) -> bool:
        """Whether no live node stands between that node and this one (Alg. 6)."""
        return self.nearest_successor_of(node) == self._peer_table.id

    def is_in_pred_range(self, node: NodeId) -> bool:
        """Whether fewer than L live nodes stand between that node and this one (Alg. 6)."""
        reach = clockwise(node, self._peer_table.id)
        between = sum(1 for member in self.members if member != node and 0 < clockwise(node, member) < reach)
        return between < self._config.resilience

    def nearest_successor_of(self, place: NodeId) -> NodeId:
        """Of all nodes known here on the ring, this one included, the first after a place."""
        me = self._peer_table.id
        others = (member for member in (*self.members, me) if member != place)
        return min(others, key=lambda member: clockwise(place, member), default=me)

    def succ_range(self, place: NodeId) -> list[NodeId]:
        """The first L nodes after a place, as far as known here."""
        return nearest_after(place, (*self.members, self._peer_table.id), self._config.resilience)

    def estimate_nodes(self) -> int:
        """How many nodes the ring has, by how closely those around this one stand."""
        if len(self.members) < 2 * (self._config.resilience + SPARE):
            return len(self.members) + 1
        return len(self.members) * SPACE // max(self._reach_ahead + self._reach_behind, 1)

    def _arrange(self) -> None:
        self.version += 1
        room = self._config.resilience + SPARE
        me = self._peer_table.id
        self.predecessors = nearest_before(me, self.members, room)
        self.successors = nearest_after(me, self.members, room)
        kept = {*self.predecessors, *self.successors}
        if len(kept) < len(self.members):
            self.members = {node: ref for node, ref in self.members.items() if node in kept}
        full = len(self.members) >= 2 * room
        self._reach_ahead = clockwise(me, self.successors[-1]) if full else SPACE
        self._reach_behind = clockwise(self.predecessors[-1], me) if full else SPACE
