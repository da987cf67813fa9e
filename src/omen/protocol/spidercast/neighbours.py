"""The neighbours of one task and how often they cover each topic, counted as they come and go (Figs. 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Ref

Told = tuple[int, int, int]
"""Degree, target and version of the interest, as a neighbour last heard them."""


@dataclass(slots=True)
class Neighbour:
    """What is known of a neighbour (Fig. 1). `shared`: what of this node's topics it covers.

    `told`: what it knows of this node. `asked`: to part, with what is known of it now. `silent`: heartbeats of this
    node since it was last heard.
    """

    ref: Ref
    degree: int
    target: int
    interest: frozenset[Topic]
    shared: tuple[Topic, ...]
    told: Told
    asked: bool = False
    silent: int = 0

    @property
    def above(self) -> int:
        """How far it is above its target. Not below it means that it is covered, as its neighbours can tell (2.3.1)."""
        return self.degree - self.target


class Neighbours:
    """`wanted`: the topics to cover, each `times` times. None: any neighbour covers the one thing that counts."""

    def __init__(self, wanted: Iterable[Topic] | None, times: int) -> None:
        self.times = times
        self.known: dict[NodeId, Neighbour] = {}
        self._everybody = wanted is None
        self.cover: dict[Topic, int] = dict.fromkeys(sorted(wanted) if wanted is not None else (0,), 0)
        self.under_covered = len(self.cover) if times > 0 else 0

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, node: NodeId) -> bool:
        return node in self.known

    @property
    def most(self) -> int:
        """L^max = K |self_interest|."""
        return self.times * len(self.cover)

    def uncovered(self) -> list[Topic]:
        """The topics that are not covered K times."""
        return [topic for topic, times in self.cover.items() if times < self.times]

    def add(self, ref: Ref, degree: int, target: int, interest: Iterable[Topic], told: Told) -> None:
        """A neighbour, or what is new of it."""
        self.remove(ref.id)
        topics = frozenset(interest)
        neighbour = Neighbour(ref, degree, target, topics, self._shared(topics), told)
        self.known[ref.id] = neighbour
        for topic in neighbour.shared:
            self.cover[topic] += 1
            self.under_covered -= self.cover[topic] == self.times

    def remove(self, node: NodeId) -> Neighbour | None:
        neighbour = self.known.pop(node, None)
        if neighbour is not None:
            for topic in neighbour.shared:
                self.under_covered += self.cover[topic] == self.times
                self.cover[topic] -= 1
        return neighbour

    def under_covered_without(self, node: NodeId) -> int:
        """CALCKUNCOVERED(self_interest, neighbors - {node}), Fig. 3 lines 1-7, from the counts."""
        neighbour = self.known.get(node)
        lost = 0 if neighbour is None else sum(self.cover[topic] == self.times for topic in neighbour.shared)
        return self.under_covered + lost

    def want(self, wanted: Iterable[Topic], times: int) -> None:
        """Other topics of one's own, or another K: all is counted anew."""
        self.times = times
        if not self._everybody:
            self.cover = dict.fromkeys(sorted(wanted), 0)
        else:
            self.cover = {0: 0}
        for neighbour in self.known.values():
            neighbour.shared = self._shared(neighbour.interest)
            for topic in neighbour.shared:
                self.cover[topic] += 1
        self.under_covered = sum(covered < times for covered in self.cover.values())

    def _shared(self, interest: frozenset[Topic]) -> tuple[Topic, ...]:
        return (0,) if self._everybody else tuple(interest & self.cover.keys())
