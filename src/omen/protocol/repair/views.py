"""The local view (omen 4.3, Algs. 2-4): for each predecessor v' backups B(v'), neighbours N(v'), ready flag R(v')."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Topic
from omen.protocol.membership.peer_table import Registry
from omen.protocol.messages.overlay import Digest, Ref
from omen.protocol.repair.backups import build_backups, weight_of

SEEN_AT_MOST = 4096


class Shadow(msgspec.Struct):
    """What is kept for one node in case it fails. `counts`: how often the backups have each of its topics."""

    topics: frozenset[Topic] = frozenset()
    backups: list[NodeId] = msgspec.field(default_factory=list)
    counts: dict[Topic, int] = msgspec.field(default_factory=dict)
    lacking: set[Topic] = msgspec.field(default_factory=set)
    quiet: int = 0
    stale: bool = True


class Views:
    """Keeps a `Shadow` for each predecessor and for each lost node whose event is still open; never more than 2L.

    `version` counts the changes of who is followed and who is a backup.
    """

    def __init__(self, context: NodeContext, registry: Registry | None = None) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._random = context.random
        self._registry = registry
        self.shadows: dict[NodeId, Shadow] = {}
        self.seen: dict[NodeId, tuple[int, int]] = {}
        self.version = 0
        self._read = 0

    def follow(self, nodes: Iterable[NodeId], pinned: Iterable[NodeId]) -> None:
        """Keep shadows for these nodes alone: the predecessors, and the lost ones whose repair is not done."""
        wanted = list(dict.fromkeys((*nodes, *pinned)))[: 2 * self._config.resilience]
        for node in [node for node in self.shadows if node not in wanted]:
            del self.shadows[node]
        for node in wanted:
            self.shadows.setdefault(node, Shadow())
        self.version += 1

    def get_view(self) -> set[NodeId]:
        """All local view: backups and neighbours of the nodes followed (Alg. 4)."""
        view: set[NodeId] = set()
        for node, shadow in self.shadows.items():
            view.update(shadow.backups)
            known = self._peer_table.known.get(node)
            if known is not None:
                view.update(ref.id for ref in known.neighbours)
        return view

    def is_ready(self, node: NodeId) -> bool:
        """R(v'): covered lambda times, or by all subscribers the last rounds brought."""
        shadow = self.shadows.get(node)
        if shadow is None or shadow.stale:
            return False
        if self._registry is not None:
            return True
        if not shadow.topics:
            return shadow.quiet >= self._config.ready_rounds
        return not shadow.lacking or shadow.quiet >= self._config.ready_rounds

    def are_ready(self) -> bool:
        """Whether R(v') holds for every node followed."""
        return all(self.is_ready(node) for node in self.shadows)

    def is_unsettled(self) -> bool:
        """Whether some backup set could still be better, so that unknown nodes are worth a look."""
        return any(shadow.lacking or not shadow.topics for shadow in self.shadows.values())

    def is_unseen(self, digest: Digest) -> bool:
        """Whether a node's topics were not looked at before. Version 0: the node that named it does not know them
        either.
        """
        incarnation, version = self.seen.get(digest.ref.id, (0, 0))
        if not digest.topics_version:
            return incarnation < digest.ref.incarnation
        return (incarnation, version) != (digest.ref.incarnation, digest.topics_version)

    def remember_seen(self, digest: Digest) -> None:
        if len(self.seen) >= SEEN_AT_MOST:
            del self.seen[next(iter(self.seen))]
        self.seen[digest.ref.id] = (digest.ref.incarnation, digest.topics_version)

    def next_round(self) -> None:
        """A round has passed. A set that has just stopped growing is built once more, from all that were found."""
        for shadow in self.shadows.values():
            shadow.quiet += 1
            if shadow.quiet == self._config.ready_rounds and shadow.lacking:
                shadow.stale = True

    def note_news(self, nodes: Iterable[NodeId]) -> None:
        """The topics of these nodes are new: take in those that cover what is still lacking."""
        for node in nodes:
            topics = self._peer_table.topics_of(node)
            for followed, shadow in self.shadows.items():
                if followed == node or node in shadow.backups:
                    shadow.stale = True
                elif not shadow.lacking.isdisjoint(topics):
                    if not self.is_ready(followed):
                        shadow.quiet = 0
                    self._admit(shadow, node)
                    if not shadow.lacking:
                        shadow.stale = True  # covered by those that came: chosen anew, by the rule, among all of them

    def note_loss(self, node: NodeId) -> None:
        self.seen.pop(node, None)
        for shadow in self.shadows.values():
            if node in shadow.backups:
                shadow.stale = True

    def select_view(self) -> None:
        """Build the backup sets anew where something changed (Alg. 4)."""
        if self._registry is not None:
            self._read_registry(self._registry)
        for node, shadow in self.shadows.items():
            known = self._peer_table.known.get(node)
            if known is not None and shadow.stale:
                topics = self._peer_table.topics_of(node)
                if topics != shadow.topics:
                    shadow.topics, shadow.quiet = topics, 0
            if shadow.stale:
                self._rebuild(node, shadow)

    def _read_registry(self, registry: Registry) -> None:
        """With a global view: take in what happened anywhere."""
        fresh, self._read = registry.log[self._read :], len(registry.log)
        for node in fresh:
            if node in registry.topic_sets:
                self.note_news((node,))
            else:
                self.note_loss(node)

    def _rebuild(self, node: NodeId, shadow: Shadow) -> None:
        candidates = {
            other: topics
            for other, topics in self._peer_table.topic_sets.items()
            if other != node and not topics.isdisjoint(shadow.topics)
        }
        if self._peer_table.id != node:
            candidates[self._peer_table.id] = self._peer_table.topics_of(self._peer_table.id)
        weights = self._weights(candidates)
        chosen = build_backups(
            shadow.topics, candidates, weights, self._config.coverage, self._config.backups, self._random
        )
        shadow.backups = []
        shadow.counts = dict.fromkeys(shadow.topics, 0)
        shadow.lacking = set(shadow.topics) if self._config.coverage else set()
        for backup in chosen:
            self._admit(shadow, backup)
        shadow.stale = False
        self.version += 1

    def _admit(self, shadow: Shadow, node: NodeId) -> None:
        self.version += 1
        shadow.backups.append(node)
        for topic in shadow.topics & self._peer_table.topics_of(node):
            shadow.counts[topic] += 1
            if shadow.counts[topic] >= self._config.coverage:
                shadow.lacking.discard(topic)

    def _weights(self, nodes: Iterable[NodeId]) -> dict[NodeId, int]:
        """How much each has to do already: its links, and the backup sets it serves in here."""
        serving = Counter(backup for shadow in self.shadows.values() for backup in shadow.backups)
        found = {}
        for node in nodes:
            known = self._peer_table.get(node)
            found[node] = serving[node] + (weight_of(known) if known is not None else 0)
        return found

    def backups_of(self, node: NodeId) -> list[Ref]:
        shadow = self.shadows.get(node)
        if shadow is None:
            return []
        known = (self._peer_table.get(backup) for backup in shadow.backups)
        return [descriptor.digest.ref for descriptor in known if descriptor is not None]
