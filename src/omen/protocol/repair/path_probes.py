"""Probes of other nodes that pass through this one: each passes once per topic, and few of them for one neighbour.

A probe fans out at every node, so a node that forgot one while copies of it still fly would send it on again, and with
circles in the overlay that does not end. Here a probe is remembered for longer than any copy of it can fly: HOPS links,
each in the time after which its end counts as silent. A neighbour that has brought as many as are remembered for one,
or as fill the room for all, brings no more until some are forgotten; the link that was to be pruned stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

import msgspec

from omen.protocol.events import NodeId, Time, Topic
from omen.protocol.messages.overlay import PathProbe, PathReply

HOPS = 10
"""How many links a probe crosses at most; ways round are five or six long as a rule."""
PROBES_PER_SENDER = 256
PROBES_AT_MOST = 4096
TOPICS_AT_MOST = 1 << 17
"""Topics remembered for all probes together: about 13 MB."""
NO_NODE: NodeId = -1
"""In the place of a neighbour: the trail has gone back already."""


class Passing(msgspec.Struct):
    """A probe that came by: `sender` brought it first; `came_from`: which neighbour did so in each topic."""

    until: Time
    sender: NodeId
    came_from: dict[Topic, NodeId] = msgspec.field(default_factory=dict)


class PassingProbes:
    """What is remembered of them. `patience`: the longest that one link takes."""

    def __init__(self, patience: Time) -> None:
        self._memory = (HOPS + 2) * patience
        self._passing: dict[tuple[NodeId, int], Passing] = {}
        self._by_sender: Counter[NodeId] = Counter()
        self._topics = 0

    def __len__(self) -> int:
        return len(self._passing)

    def take(self, sender: NodeId, probe: PathProbe, mine: Set[Topic], now: Time) -> list[Topic]:
        """The topics in which the probe is to go on: those it comes in for the first time."""
        self._expire(now)
        key = (probe.origin, probe.nonce)
        passing = self._passing.get(key)
        if passing is None:
            if len(self._passing) >= PROBES_AT_MOST or self._by_sender[sender] >= PROBES_PER_SENDER:
                return []
            passing = self._passing[key] = Passing(now + self._memory, sender)
            self._by_sender[sender] += 1
        known = passing.came_from
        fresh = [topic for topic in dict.fromkeys(probe.topics) if topic in mine and topic not in known]
        fresh = fresh[: max(0, TOPICS_AT_MOST - self._topics)]
        known.update(dict.fromkeys(fresh, sender))
        self._topics += len(fresh)
        return fresh

    def take_back(self, reply: PathReply, mine: Set[Topic]) -> dict[NodeId, list[Topic]]:
        """By which neighbours a trail goes back, in which topics."""
        passing = self._passing.get((reply.origin, reply.nonce))
        back: dict[NodeId, list[Topic]] = {}
        if passing is not None:
            for topic in dict.fromkeys(reply.topics):
                node = passing.came_from.get(topic, NO_NODE)
                if node != NO_NODE and topic in mine:
                    back.setdefault(node, []).append(topic)
        return back

    def end(self, reply: PathReply, topics: Iterable[Topic]) -> None:
        """A trail went back in these topics: it does so once."""
        passing = self._passing.get((reply.origin, reply.nonce))
        if passing is not None:
            passing.came_from.update(dict.fromkeys(topics, NO_NODE))

    def _expire(self, now: Time) -> None:
        """All are remembered for as long, so the first are always the oldest."""
        while self._passing:
            key, oldest = next(iter(self._passing.items()))
            if oldest.until > now:
                return
            del self._passing[key]
            self._topics -= len(oldest.came_from)
            self._by_sender[oldest.sender] -= 1
            if not self._by_sender[oldest.sender]:
                del self._by_sender[oldest.sender]
