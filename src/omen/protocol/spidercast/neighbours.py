"""The neighbours of one task, how often they cover each topic (Figs. 1 and 3), and where others come from (Fig. 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import Rule

Told = tuple[int, int, int]
"""Degree, target and version of the interest, as a neighbour last heard them."""


class Neighbour(msgspec.Struct):
    """What is known of a neighbour (Fig. 1). `shared`: what of this node's topics it covers.

    `told`: what it knows of this node. `asked`: to disconnect, with what is known of it now. `silent`: heartbeats of
    this node since it was last heard.
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


class Connections:
    """Keeps a connection to each neighbour of either task. `changes` counts what became of neighbours."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._users: dict[NodeId, set[int]] = {}
        self.changes = 0

    def hold(self, task: int, ref: Ref) -> None:
        """This task has this neighbour, or has heard something new of it."""
        self.changes += 1
        if ref.id not in self._users:
            self._out.connect(ref)
        self._users.setdefault(ref.id, set()).add(task)

    def release(self, task: int, node: NodeId) -> None:
        """This task has it no more."""
        self.changes += 1
        users = self._users.get(node)
        if users is not None:
            users.discard(task)
            if not users:
                self._out.disconnect(node)
                del self._users[node]

    def nodes(self) -> list[NodeId]:
        return sorted(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def __contains__(self, node: NodeId) -> bool:
        return node in self._users


class InterestView(Protocol):
    """The membership service as a node sees it (2.2): which nodes there are and what they want, as far as it knows.

    Handed in by the driver, as the greedy engine is to OMen's nodes.
    """

    @property
    def version(self) -> int:
        """Another number whenever a node joined, ended or changed its interest."""

    def choose(self, rule: Rule, uncovered: Sequence[Topic], excluded: Iterable[NodeId], word: int) -> Ref | None:
        """The next neighbour by this rule, from the view without the excluded and the node itself.

        `greedy` (NEXTGREEDYCOVERAGENODE): a node that covers most of `uncovered`. `random` (NEXTRANDOMCOVERAGENODE):
        any that covers some of it. `similar` (NEXTSIMILARITYNODE): one whose interest meets `uncovered`, the node's own
        whole interest, most. `anybody` (NEXTRANDOMNODE). Among equals the 64-bit `word` decides. None: no node fits.
        """
