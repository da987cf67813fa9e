"""What one search has seen around a node: the pieces of each topic without that node, and the links to join them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import msgspec

from omen.protocol.events import Engine, NodeId, Topic
from omen.protocol.messages.overlay import Ref

Pair = tuple[NodeId, NodeId]
"""Two nodes, the lower one first."""


class Seen(msgspec.Struct, frozen=True):
    """A node that was asked, or of which something is known although it does not answer.

    `topics`: those of the search that it has. `links`: its neighbours, and which of these topics each of them has.
    `full`: it takes no more links.
    """

    ref: Ref
    topics: frozenset[Topic]
    links: Mapping[NodeId, tuple[Ref, frozenset[Topic]]]
    degree: int
    full: bool = False


class Surroundings:
    """`near`: the neighbours of the searching node, and the topics of the search that each has."""

    def __init__(self, centre: NodeId, topics: Iterable[Topic], near: Mapping[NodeId, frozenset[Topic]]) -> None:
        self._centre = centre
        self._near = near
        self.topics = tuple(sorted(topics))
        self.seen: dict[NodeId, Seen] = {}
        self._met: dict[NodeId, Ref] = {}

    def add(self, seen: Seen) -> None:
        self.seen[seen.ref.id] = seen
        for node, (ref, _) in seen.links.items():
            self._met.setdefault(node, ref)

    def apart(self) -> dict[Topic, dict[NodeId, NodeId]]:
        """The topics whose neighbours do not reach each other by what was seen; for each node the root of its piece."""
        found = {}
        for topic in self.topics:
            roots = self._pieces(topic)
            if len({roots[node] for node, topics in self._near.items() if topic in topics}) > 1:
                found[topic] = roots
        return found

    def _pieces(self, topic: Topic) -> dict[NodeId, NodeId]:
        parent = {node: node for node, topics in self._near.items() if topic in topics}

        def find(node: NodeId) -> NodeId:
            parent.setdefault(node, node)
            while parent[node] != node:
                parent[node] = node = parent[parent[node]]
            return node

        for node, seen in self.seen.items():
            if topic not in seen.topics:
                continue
            for other, (_, topics) in seen.links.items():
                if topic in topics and self._is_agreed(topic, node, other):
                    one, far = find(node), find(other)
                    if one != far:
                        parent[max(one, far)] = min(one, far)
        return {node: find(node) for node in list(parent)}

    def _is_agreed(self, topic: Topic, node: NodeId, other: NodeId) -> bool:
        """A link to the searching node does not count, nor one that the far end was asked about and does not name."""
        if other == self._centre:
            return False
        far = self.seen.get(other)
        return far is None or (topic in far.topics and topic in far.links.get(node, (None, frozenset()))[1])

    def frontier(self, apart: Mapping[Topic, Mapping[NodeId, NodeId]]) -> dict[NodeId, Ref]:
        """Whom to ask next: the nodes at the edge of every piece but the largest."""
        wanted: dict[NodeId, Ref] = {}
        for topic, roots in apart.items():
            sizes: dict[NodeId, int] = {}
            for root in roots.values():
                sizes[root] = sizes.get(root, 0) + 1
            near = {roots[node] for node, topics in self._near.items() if topic in topics}
            largest = max(near, key=lambda root: (sizes[root], -root))
            for node, root in roots.items():
                if root in near and root != largest and node not in self.seen and node in self._met:
                    wanted[node] = self._met[node]
        return wanted

    def plan(
        self,
        apart: Mapping[Topic, Mapping[NodeId, NodeId]],
        engine: Engine,
        rho: float,
        in_vain: frozenset[Pair] = frozenset(),
    ) -> list[tuple[Ref, Ref]]:
        """The links that join what is apart, by the greedy rule. `in_vain`: those that others are to take the place
        of, between the same pieces.
        """
        nodes = sorted(node for node, seen in self.seen.items() if not seen.full)
        codes = {topic: code for code, topic in enumerate(sorted(apart))}
        rows = [sorted(codes[topic] for topic in self.seen[node].topics if topic in codes) for node in nodes]
        order = sorted(apart)
        labels = [[apart[order[code]].get(node, node) for code in row] for node, row in zip(nodes, rows, strict=True)]
        degrees = [self.seen[node].degree for node in nodes]
        pairs = engine(*self._near_pieces(rows, labels, order, apart), degrees, rho, -1)
        chosen: dict[Pair, None] = {}
        for pair in (pair_of(nodes[one], nodes[other]) for one, other in pairs):
            chosen.update(dict.fromkeys([pair] if pair not in in_vain else self._instead(pair, apart, in_vain)))
        return [(self._ref(one), self._ref(other)) for one, other in chosen]

    def _instead(
        self, pair: Pair, apart: Mapping[Topic, Mapping[NodeId, NodeId]], in_vain: frozenset[Pair]
    ) -> list[Pair]:
        """For each topic that a link would join, the one with the fewest links at its ends that does so too. Nodes
        that were only met come last.
        """
        found = []
        for topic, roots in apart.items():
            if not all(self._takes(topic, node) for node in pair) or roots[pair[0]] == roots[pair[1]]:
                continue
            takers = [node for node in roots if self._takes(topic, node)]
            one, other = ([node for node in takers if roots[node] == roots[end]] for end in pair)
            pairs = {pair_of(*ends) for ends in product(one, other)} - in_vain
            found += sorted(pairs, key=self._burden)[:1]
        return found

    def _takes(self, topic: Topic, node: NodeId) -> bool:
        seen = self.seen.get(node)
        return (topic in seen.topics and not seen.full) if seen is not None else node in self._met

    def _burden(self, pair: Pair) -> tuple[int, int, Pair]:
        seen = [self.seen[node].degree for node in pair if node in self.seen]
        return -len(seen), sum(seen), pair

    def _ref(self, node: NodeId) -> Ref:
        return self.seen[node].ref if node in self.seen else self._met[node]

    def _near_pieces(
        self,
        rows: Sequence[Sequence[int]],
        labels: Sequence[Sequence[NodeId]],
        order: Sequence[Topic],
        apart: Mapping[Topic, Mapping[NodeId, NodeId]],
    ) -> tuple[list[list[int]], list[list[NodeId]]]:
        """Only pieces that hold a neighbour need to be joined."""
        near = [{apart[topic][node] for node, topics in self._near.items() if topic in topics} for topic in order]
        kept = [
            [(code, label) for code, label in zip(row, named, strict=True) if label in near[code]]
            for row, named in zip(rows, labels, strict=True)
        ]
        return [[code for code, _ in row] for row in kept], [[label for _, label in row] for row in kept]


def pair_of(one: NodeId, other: NodeId) -> Pair:
    return (one, other) if one < other else (other, one)
