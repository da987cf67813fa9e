"""Peers that break rules again and again are dropped for a while, as gossipsub does by its peer scores.

Every offence is a point, and a point is forgiven with time. A peer with too many is banned: it counts as lost, so that
topics are repaired around it, nothing it says is heard, and it is no candidate for anything until the ban ends. Each
further ban is twice as long.

Only what a peer does to this node itself counts, and only what no honest node does however slow, overloaded, cut off or
old it is: messages that are none, that speak for another node or bear a number nobody could have reached; forgeries,
which the driver sees. Rules that may differ between honest nodes, as those for access, are left out. What a relay may
have been handed by others does not count: so no node can have another dropped. Messages beyond the budget of their
sender weigh little: a node that asks too much in an emergency is not meant, one that goes on without end is.
"""

from __future__ import annotations

from collections.abc import Mapping

from omen.protocol.config import Config
from omen.protocol.events import NodeId, Offence, Time

REMEMBERED_AT_MOST = 4096
PARTS = 100
"""Of a point: what an offence of the least weight counts."""
WEIGHTS = {Offence.OVER_BUDGET: 1}
LONGEST = 5
"""Doublings of a ban."""


class Conduct:
    """`banned`: until when. It outlasts the node's own incarnations.

    A score is kept as the time at which all will be forgiven: one number for each peer.
    """

    def __init__(self, config: Config) -> None:
        self._limit = config.offence_limit * config.offence_memory
        self._part = config.offence_memory // PARTS
        self._ban_time = config.ban_time
        self._forgiven_at: dict[NodeId, Time] = {}
        self.banned: dict[NodeId, Time] = {}
        self._bans: dict[NodeId, int] = {}

    def note(self, peer: NodeId, offence: Offence, now: Time) -> bool:
        """A peer has broken a rule; whether that was once too often."""
        if not self._limit or peer in self.banned:
            return False
        forgiven_at = max(self._forgiven_at.pop(peer, now), now) + WEIGHTS.get(offence, PARTS) * self._part
        _make_room(self._forgiven_at, now)
        self._forgiven_at[peer] = forgiven_at
        return forgiven_at - now > self._limit

    def ban(self, peer: NodeId, now: Time) -> Time:
        """Begin a ban; how long it is."""
        times = self._bans.pop(peer, 0)
        lasts = self._ban_time << min(times, LONGEST)
        if len(self._bans) >= REMEMBERED_AT_MOST:
            del self._bans[next(iter(self._bans))]
        _make_room(self.banned, now)
        self._bans[peer] = times + 1
        self.banned[peer] = now + lasts
        self._forgiven_at.pop(peer, None)
        return lasts

    def is_banned(self, peer: NodeId, now: Time) -> bool:
        until = self.banned.get(peer)
        if until is not None and until <= now:
            del self.banned[peer]
            return False
        return until is not None

    def scores(self, now: Time) -> Mapping[NodeId, float]:
        """The points of those that have any."""
        point = self._part * PARTS
        return {peer: (until - now) / point for peer, until in sorted(self._forgiven_at.items()) if until > now}

    def bans(self, now: Time) -> Mapping[NodeId, Time]:
        """How long each ban still lasts."""
        return {peer: until - now for peer, until in sorted(self.banned.items()) if until > now}


def _make_room(times: dict[NodeId, Time], now: Time) -> None:
    """Those whose time is over go; should there be none, the one that is over first."""
    if len(times) < REMEMBERED_AT_MOST:
        return
    for peer in [peer for peer, until in times.items() if until <= now]:
        del times[peer]
    if len(times) >= REMEMBERED_AT_MOST:
        del times[min(times, key=lambda peer: (times[peer], peer))]
