"""What a repair counts on, asked again before it ends: are the pieces joined, by what the nodes say now?

Not in the paper. The answers that a plan is made on are given one after the other, and some links are known from one
end alone; two repairs at once may each count on what the other's loss takes away. So the links that hold the pieces
together are read twice, as one takes a snapshot of registers: a link that both ends named the first time and name
again was there at every moment in between. If all of them are, the pieces were one at that moment. A link that is
not confirmed is doubted: the repair goes another round, and counts on it no more. Links that were made for this repair
need no second question: both ends have just confirmed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from omen.protocol.events import NodeId
from omen.protocol.messages.overlay import ShadowReply

Pair = tuple[NodeId, NodeId]
"""The ends of a link, the lower place first."""


class JoinCheck(msgspec.Struct):
    """`needed`: the links counted on, each with the topics (as bits) that it is needed in."""

    needed: dict[Pair, int] = msgspec.field(default_factory=dict)
    replies: dict[NodeId, ShadowReply] = msgspec.field(default_factory=dict)

    def witnesses(self) -> list[NodeId]:
        """The ends of these links: they are asked."""
        return sorted({end for pair in self.needed for end in pair})

    def silent(self) -> list[NodeId]:
        return [node for node in self.witnesses() if node not in self.replies]

    def unconfirmed(self, agreed_by_both: bool) -> list[Pair]:
        """The links that an end does not name any more, or not in a topic they are needed in."""
        return [pair for pair, topics in self.needed.items() if topics & ~self._shared(pair, agreed_by_both)]

    def _shared(self, pair: Pair, agreed_by_both: bool) -> int:
        one, other = (self.replies.get(end) for end in pair)
        if one is None or other is None:
            return 0
        shared = int.from_bytes(one.mine, "little") & int.from_bytes(other.mine, "little")
        named = [_bits_for(one, pair[1]), _bits_for(other, pair[0])]
        return shared & (named[0] & named[1] if agreed_by_both else named[0] | named[1])


def _bits_for(reply: ShadowReply, node: NodeId) -> int:
    return next((int.from_bytes(bits, "little") for other, bits in reply.links if other == node), 0)


def needed_links(to_join: Mapping[NodeId, int], fresh: Mapping[Pair, int], ranked: Mapping[Pair, int]) -> JoinCheck:
    """The links that hold together, in each topic, the nodes `to_join` (with their topics as bits).

    A tree for each topic, as Kruskal's: links just made come first, and cost no question; then those of `ranked` in
    their order, each with the topics it carries. What hangs on a tree without joining anything is cut off again.
    """
    trees = _Trees(to_join)
    for pair, bits in (*fresh.items(), *ranked.items()):
        trees.add(pair, bits)
    check = JoinCheck()
    for topic, links in trees.without_loose_ends():
        for pair in links:
            if pair not in fresh:
                check.needed[pair] = check.needed.get(pair, 0) | 1 << topic
    return check


class _Trees:
    """One for each topic that several nodes are to be joined in."""

    def __init__(self, to_join: Mapping[NodeId, int]) -> None:
        self._to_join = to_join
        self._left: dict[int, int] = {}
        for bits in to_join.values():
            for topic in _positions(bits):
                self._left[topic] = self._left.get(topic, -1) + 1
        self._open = sum(1 << topic for topic, left in self._left.items() if left)
        self._parents: dict[int, dict[NodeId, NodeId]] = {topic: {} for topic in self._left}
        self._holds: dict[int, set[NodeId]] = {
            topic: {node for node, bits in to_join.items() if bits >> topic & 1} for topic in _positions(self._open)
        }
        self._links: dict[int, list[Pair]] = {}

    def add(self, pair: Pair, bits: int) -> None:
        for topic in _positions(bits & self._open):
            parents = self._parents[topic]
            one, other = (_find(parents, end) for end in pair)
            if one == other:
                continue
            parents[other] = one
            self._links.setdefault(topic, []).append(pair)
            holds = self._holds[topic]
            if other in holds and one in holds:
                self._left[topic] -= 1
                if not self._left[topic]:
                    self._open &= ~(1 << topic)
            elif other in holds:
                holds.add(one)

    def without_loose_ends(self) -> Iterator[tuple[int, list[Pair]]]:
        for topic, kept in self._links.items():
            while True:
                ends = Counter(end for pair in kept for end in pair)
                loose = {
                    end for end, links in ends.items() if links == 1 and not self._to_join.get(end, 0) >> topic & 1
                }
                if not loose:
                    break
                kept = [pair for pair in kept if loose.isdisjoint(pair)]
            yield topic, kept


def _find(parents: dict[NodeId, NodeId], node: NodeId) -> NodeId:
    while (parent := parents.get(node, node)) != node:
        parents[node] = node = parents.get(parent, parent)
    return node


def _positions(bits: int) -> Iterable[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
