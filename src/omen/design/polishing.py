"""A local search after a greedy design: fewer links, and fewer at the busiest nodes. Ours; no paper has it.

A greedy design never takes a link back. Links that came later may do what an earlier one was chosen for, and a node may
have become busy for a topic that others could carry. Two kinds of step better that, and neither splits a topic:

- *drop*: a link goes whose topics are all connected without it;
- *move*: a link of a busiest node goes, and one link elsewhere connects all topics that this has split, between nodes
  that stay below the highest degree.

A drop leaves fewer links. A move leaves as many, and fewer nodes of the highest degree. So the search ends, and neither
the number of links nor the maximum degree is ever higher than before. Nothing in it is random. In large overlays it is
ended early, after `MOST_TRIES` links were tried: what it has by then is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

MOST_TRIES = 40_000

Node = int
Link = tuple[Node, Node]
Pieces = list[tuple[set[Node], set[Node]]]
"""Of each topic that the loss of a link splits: the subscribers on the side of either end."""


def polish_overlay(interests: Interests, overlay: Overlay) -> Overlay:
    """A topic-connected overlay of no more links and no higher maximum degree. `overlay` is topic-connected."""
    from omen.overlay import Overlay

    search = _Search(interests, overlay)
    search.drop_all(search.links())
    while (made := search.move_one()) is not None:
        search.drop_all(search.links_beside(made))
    ends = np.array(sorted(search.links()), dtype=np.int64).reshape(-1, 2)
    return Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


class _Search:
    """Who is linked to whom, and who wants what."""

    def __init__(self, interests: Interests, overlay: Overlay) -> None:
        self._left = MOST_TRIES
        offsets, topics = interests.node_offsets, interests.node_topics
        self._topics = [set(topics[offsets[n] : offsets[n + 1]].tolist()) for n in range(interests.node_count)]
        self._near: list[set[Node]] = [set() for _ in self._topics]
        for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
            self._link(u, v)

    def links(self) -> list[Link]:
        return [(u, v) for u, near in enumerate(self._near) for v in near if u < v]

    def links_beside(self, made: Link) -> list[Link]:
        """The links that a new one may have made needless: those that share a topic with it."""
        carried = self._topics[made[0]] & self._topics[made[1]]
        wanting = {node for node, topics in enumerate(self._topics) if not carried.isdisjoint(topics)}
        return [
            (u, v)
            for u in sorted(wanting)
            for v in self._near[u] & wanting
            if u < v and not (carried & self._topics[u]).isdisjoint(self._topics[v])
        ]

    def drop_all(self, links: list[Link]) -> None:
        """Links of busy nodes first, each looked at once: what is needed now stays needed when others go."""
        for u, v in sorted(links, key=self._busiest_first):
            self._unlink(u, v)
            if self._split_by(u, v, first_only=True):
                self._link(u, v)

    def move_one(self) -> Link | None:
        """The first move there is, nodes and links in order of label; the link that it made."""
        most = max(map(len, self._near), default=0)
        for busy in [node for node, near in enumerate(self._near) if len(near) == most]:
            for other in sorted(self._near[busy]):
                if self._left <= 0:
                    return None
                self._unlink(busy, other)
                pieces = self._split_by(busy, other)
                here = self._idlest(set.intersection(*(one for one, _ in pieces)), most - 2)
                there = self._idlest(set.intersection(*(two for _, two in pieces)), most - 2)
                if here is not None and there is not None:
                    self._link(here, there)
                    return here, there
                self._link(busy, other)
        return None

    def _split_by(self, u: Node, v: Node, first_only: bool = False) -> Pieces:
        """The topics of u and v that are split, their link being gone."""
        self._left -= 1
        found: Pieces = []
        for topic in sorted(self._topics[u] & self._topics[v]):
            around = self._reached(u, topic, until=v)
            if v not in around:
                found.append((around, self._reached(v, topic)))
                if first_only:
                    break
        return found

    def _reached(self, start: Node, topic: int, until: Node | None = None) -> set[Node]:
        """The subscribers that a publication of `start` reaches; the search ends early where it meets `until`."""
        reached, waiting = {start}, [start]
        while waiting:
            for near in self._near[waiting.pop()]:
                if near not in reached and topic in self._topics[near]:
                    reached.add(near)
                    waiting.append(near)
                    if near == until:
                        return reached
        return reached

    def _idlest(self, nodes: set[Node], most: int) -> Node | None:
        """The node of the fewest links, of at most so many."""
        fit = [node for node in nodes if len(self._near[node]) <= most]
        return min(fit, key=lambda node: (len(self._near[node]), node), default=None)

    def _busiest_first(self, link: Link) -> tuple[int, int, Link]:
        one, other = (len(self._near[end]) for end in link)
        return -max(one, other), -min(one, other), link

    def _link(self, u: Node, v: Node) -> None:
        self._near[u].add(v)
        self._near[v].add(u)

    def _unlink(self, u: Node, v: Node) -> None:
        self._near[u].discard(v)
        self._near[v].discard(u)
