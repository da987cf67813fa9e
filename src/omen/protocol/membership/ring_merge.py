"""Two rings of one cluster that meet become one: after a cut, or where nodes began apart.

One node that knows a node of the other ring is enough. Each tells the other the nodes near it; where several of them
stand nearer than those a node knows, another ring has come in. Their nodes are greeted at once, and they greet in
turn: the news runs along both rings instead of waiting for gossip, which rests where all is well. No paper has this;
T-Man's ranking, by which rings form, does the rest.
"""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Time
from omen.protocol.membership.gossip import Gossip
from omen.protocol.membership.ring import Ring
from omen.protocol.repair.requests import Requests

SEVERAL = 2  # a newcomer comes alone
AT_ONCE = 2  # gossip periods in which they must have come


class RingMerge:
    """Remembers which nodes stood nearby before, and which have come lately."""

    def __init__(self, context: NodeContext, ring: Ring, gossip: Gossip, requests: Requests) -> None:
        self._config = context.config
        self._clock = context.clock
        self._ring = ring
        self._gossip = gossip
        self._requests = requests
        self._before: frozenset[NodeId] = frozenset()
        self._lately: dict[NodeId, Time] = {}

    def notice(self) -> bool:
        """The ring has changed: greet the nodes that came in; whether several did, as from another ring."""
        ring, now = self._ring, self._clock.now
        since = now - AT_ONCE * self._config.gossip_period
        fresh = {*ring.get_preds(), *ring.get_succs()} - self._before
        was_alone, self._before = not self._before, frozenset(ring.members)
        lately = {node: when for node, when in self._lately.items() if when > since and node in ring.members}
        lately.update(dict.fromkeys(sorted(fresh), now))
        if was_alone or self._requests.joining:
            self._lately = {}
            return False
        self._lately = lately
        if len(lately) < SEVERAL:
            return False
        self._lately = {}
        for node in sorted(lately):
            self._gossip.offer(ring.members[node])
        self._gossip.hurry()
        return True
