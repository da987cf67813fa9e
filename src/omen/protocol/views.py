"""The local view (omen 4.3, Algs. 2-4): for each predecessor v' backups B(v'), neighbours N(v'), ready flag R(v')."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omen.protocol.backups import build_backups
from omen.protocol.book import Book
from omen.protocol.config import Config
from omen.protocol.events import NodeId, Randomness, Topic
from omen.protocol.messages import Digest, Ref

SEEN_AT_MOST = 4096


@dataclass(slots=True)
class Shadow:
    """What is kept for one node in case it goes."""

    topics: frozenset[Topic] = frozenset()
    backups: list[NodeId] = field(default_factory=list)
    covered: bool = False
    quiet: int = 0
    stale: bool = True


class Views:
    """Keeps a `Shadow` for each predecessor and for each lost node whose event is still open; never more than 2L."""

    def __init__(self, book: Book, config: Config, randomness: Randomness) -> None:
        self._book = book
        self._config = config
        self._random = randomness
        self.shadows: dict[NodeId, Shadow] = {}
        self._seen: dict[NodeId, tuple[int, int]] = {}

    def follow(self, nodes: Iterable[NodeId], pinned: Iterable[NodeId]) -> None:
        """Keep shadows for these nodes alone: the predecessors, and the lost ones still being mended."""
        wanted = list(dict.fromkeys((*nodes, *pinned)))[: 2 * self._config.resilience]
        for node in [node for node in self.shadows if node not in wanted]:
            del self.shadows[node]
        for node in wanted:
            self.shadows.setdefault(node, Shadow())

    def get_view(self) -> set[NodeId]:
        """All local view: backups and neighbours of the nodes followed (Alg. 4)."""
        view: set[NodeId] = set()
        for node, shadow in self.shadows.items():
            view.update(shadow.backups)
            known = self._book.known.get(node)
            if known is not None:
                view.update(ref.id for ref in known.neighbours)
        return view

    def is_ready(self, node: NodeId) -> bool:
        """R(v'): covered lambda times, or by all subscribers the last rounds brought."""
        shadow = self.shadows.get(node)
        if shadow is None:
            return False
        return shadow.covered or shadow.quiet >= self._config.ready_rounds

    def is_unsettled(self) -> bool:
        """Whether some backup set could still be better, so that unknown nodes are worth a look."""
        return any(not shadow.covered for shadow in self.shadows.values())

    def wants(self, digest: Digest) -> bool:
        """Whether an unknown node's topics should be fetched: not if they were seen before and of no use."""
        if not self.is_unsettled():
            return False
        return self._seen.get(digest.ref.id) != (digest.ref.incarnation, digest.topics_version)

    def remember_seen(self, digest: Digest) -> None:
        if len(self._seen) >= SEEN_AT_MOST:
            del self._seen[next(iter(self._seen))]
        self._seen[digest.ref.id] = (digest.ref.incarnation, digest.topics_version)

    def next_round(self) -> None:
        for shadow in self.shadows.values():
            shadow.quiet += 1

    def note_news(self, nodes: Iterable[NodeId]) -> None:
        """New or changed descriptors came: shadows that share topics with them are looked at again."""
        for node in nodes:
            topics = self._book.topics_of(node)
            for followed, shadow in self.shadows.items():
                if followed == node:
                    shadow.stale = True
                elif not shadow.topics.isdisjoint(topics) and not shadow.covered:
                    shadow.stale = True
                    shadow.quiet = 0
                elif node in shadow.backups:
                    shadow.stale = True

    def note_loss(self, node: NodeId) -> None:
        self._seen.pop(node, None)
        for shadow in self.shadows.values():
            if node in shadow.backups:
                shadow.backups.remove(node)
                shadow.stale = True

    def select_view(self) -> None:
        """Build the backup sets anew where something changed (Alg. 4)."""
        for node, shadow in self.shadows.items():
            known = self._book.known.get(node)
            topics = frozenset(known.topics) if known is not None else shadow.topics
            if topics != shadow.topics:
                shadow.topics, shadow.stale, shadow.quiet = topics, True, 0
            if shadow.stale:
                self._rebuild(node, shadow)

    def _rebuild(self, node: NodeId, shadow: Shadow) -> None:
        candidates = {
            other: topics
            for other, topics in self._book.topic_sets.items()
            if other != node and not topics.isdisjoint(shadow.topics)
        }
        if self._book.id != node:
            candidates[self._book.id] = frozenset(self._book.me.topics)
        weights = {other: self._weight(other) for other in candidates}
        shadow.backups = build_backups(
            shadow.topics, candidates, weights, self._config.coverage, self._config.backups, self._random
        )
        shadow.covered = self._covers(shadow)
        shadow.stale = False

    def _weight(self, node: NodeId) -> int:
        known = self._book.get(node)
        serving = sum(1 for shadow in self.shadows.values() if node in shadow.backups)
        return serving + (len(known.neighbours) if known is not None else 0)

    def _covers(self, shadow: Shadow) -> bool:
        counts = dict.fromkeys(shadow.topics, 0)
        for backup in shadow.backups:
            for topic in shadow.topics & self._book.topics_of(backup):
                counts[topic] += 1
        return all(count >= self._config.coverage for count in counts.values())

    def backups_of(self, node: NodeId) -> list[Ref]:
        shadow = self.shadows.get(node)
        if shadow is None:
            return []
        known = (self._book.get(backup) for backup in shadow.backups)
        return [descriptor.digest.ref for descriptor in known if descriptor is not None]
