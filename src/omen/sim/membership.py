"""The membership service that SpiderCast assumes (2.2): one table for the whole world, and each node's view of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from omen.kernels.counter_random import stream_key
from omen.kernels.selection import ALL_NODES, enroll, next_greedy, next_random, strike
from omen.maintain.rows import Rows
from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import Rule

EVERYONE = 0  # the row that holds all nodes


class Membership:
    """All nodes and what they want. `share`: how much of it each node knows, drawn for each pair from `seed`."""

    def __init__(self, seed: int = 0, share: float = 1.0, timed: bool = False) -> None:
        self.seed = seed
        self.share = ALL_NODES if share >= 1.0 else np.uint64(int(share * 2.0**64))
        self.version = 0
        self.seconds = 0.0
        self._timed = timed
        self._slots: dict[NodeId, int] = {}
        self._refs: list[Ref | None] = []
        self._free: list[int] = []
        self._interests: dict[NodeId, np.ndarray] = {}
        self._rows_of: dict[Topic, int] = {}
        self._rows = Rows(64)
        self._counts = np.zeros(64, np.int32)
        self._met = np.zeros(64, np.int32)

    def put(self, ref: Ref, topics: Iterable[Topic]) -> None:
        """A node joins, rejoins, or wants other topics."""
        self.drop(ref.id)
        slot = self._free.pop() if self._free else len(self._refs)
        if slot == len(self._refs):
            self._refs.append(ref)
        self._refs[slot] = ref
        self._slots[ref.id] = slot
        if slot >= self._counts.size:
            self._counts = np.zeros(2 * self._counts.size, np.int32)
            self._met = np.zeros(2 * self._met.size, np.int32)
        rows = np.array([EVERYONE, *(self._row(topic) for topic in topics)], np.int32)
        self._interests[ref.id] = rows
        done = 0
        while (done := enroll(self._rows.spans, self._rows.pool, self._rows.tail, rows, slot, done)) < rows.size:
            self._rows.grow(rows.size)
        self.version += 1

    def drop(self, node: NodeId, incarnation: int | None = None) -> None:
        """A node has failed or left; no effect where a later incarnation is there by now."""
        slot = self._slots.get(node)
        ref = None if slot is None else self._refs[slot]
        if slot is None or ref is None or (incarnation is not None and ref.incarnation != incarnation):
            return
        strike(self._rows.spans, self._rows.pool, self._interests.pop(node), slot)
        del self._slots[node]
        self._refs[slot] = None
        self._free.append(slot)
        self.version += 1

    def view_of(self, node: NodeId) -> View:
        return View(self, node)

    def choose(
        self, node: NodeId, key: np.uint64, rule: Rule, topics: Sequence[Topic], excluded: Iterable[NodeId], word: int
    ) -> Ref | None:
        """See `InterestView.choose`."""
        started = time.process_time() if self._timed else 0.0
        rows = (EVERYONE,) if rule == "anybody" else [self._rows_of[t] for t in topics if t in self._rows_of]
        slots = self._slots
        barred = [slots[other] for other in excluded if other in slots]
        if node in slots:
            barred.append(slots[node])
        chooser: Callable[..., int] = next_greedy if rule in ("greedy", "similar") else next_random
        slot = chooser(
            self._rows.spans,
            self._rows.pool,
            np.array(rows, np.int32),
            np.array(barred, np.int32),
            self._counts,
            self._met,
            key,
            self.share,
            np.uint64(word),
        )
        if self._timed:
            self.seconds += time.process_time() - started
        return self._refs[slot] if slot >= 0 else None

    def _row(self, topic: Topic) -> int:
        row = self._rows_of.get(topic)
        if row is None:
            row = self._rows_of[topic] = len(self._rows_of) + 1
            if row >= self._rows.capacity:
                self._rows.widen(2 * row)
        return row


class View:
    """What one node sees of the membership."""

    def __init__(self, membership: Membership, node: NodeId) -> None:
        self._membership = membership
        self._node = node
        self._key = np.uint64(stream_key(np.uint64(membership.seed), np.uint64(node)))

    @property
    def version(self) -> int:
        return self._membership.version

    def choose(self, rule: Rule, uncovered: Sequence[Topic], excluded: Iterable[NodeId], word: int) -> Ref | None:
        return self._membership.choose(self._node, self._key, rule, uncovered, excluded, word)
