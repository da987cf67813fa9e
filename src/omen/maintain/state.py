"""What a maintainer keeps: nodes, interests, links and backups under churn, in arrays that are never rebuilt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Interests, Label
from omen.kernels import population
from omen.maintain.names import Names
from omen.maintain.rows import Rows
from omen.overlay import Overlay

BITS_LIMIT = 256 * 2**20  # bytes; above it topic rows are searched instead of looked up in bits

Pairs = npt.NDArray[np.int32]


class State:
    """Nodes, topics, links and backup sets, by slot; the one owner of all of them.

    Slots are reused after a leave and rows grow in place, so memory follows the population and not its history.
    Whatever must be ordered is ordered by label (`nodes.order`), never by slot: two states with the same content
    behave alike. Labels appear at the edge only: `nodes` and `topics` translate.

    topics_of[node], members[topic], neighbours[node], backups[node], primaries[node] are rows of slots. Invariants:
    members is the inverse of topics_of, primaries that of backups; a topic without subscribers has no slot;
    `degree_counts[d]` nodes have degree d, `totals` is (largest degree, number of links). `marks`, `places` and the
    other scratch arrays belong to kernels, which leave them as they found them (places -1, counts 0) or stamped below
    `clock`. `builds` counts backup sets built, for the draws; `credit` is what rebalancing may still change.
    """

    def __init__(self, interests: Interests, overlay: Overlay | None = None, bits_limit: int = BITS_LIMIT) -> None:
        used = np.flatnonzero(np.diff(interests.topic_offsets))
        topic_rank = np.full(max(interests.topic_count, 1), -1, np.int32)
        topic_rank[used] = np.arange(used.size, dtype=np.int32)
        self.nodes = Names(interests.nodes, "node")
        self.topics = Names(interests.topics[used], "topic")
        nodes, topics = self.nodes.capacity, self.topics.capacity
        member_offsets = np.concatenate((np.zeros(1, np.int64), interests.topic_offsets[1:][used]))
        node_topics = topic_rank[interests.node_topics]
        self.topics_of = Rows.from_compressed(interests.node_offsets, node_topics, nodes)
        self.members = Rows.from_compressed(member_offsets, interests.topic_nodes, topics)
        self.backups = Rows(nodes)
        self.primaries = Rows(nodes)
        self.builds = 0
        self.credit = 0
        self._bits_limit = bits_limit
        self._load_links(interests, overlay)
        self._allocate_scratch()
        self._fill_bits()

    def _load_links(self, interests: Interests, overlay: Overlay | None) -> None:
        if overlay is None:
            overlay = Overlay(interests.nodes, np.empty(0, np.int32), np.empty(0, np.int32))
        elif not np.array_equal(overlay.nodes, interests.nodes):
            raise InvalidInput(
                f"the overlay has {overlay.node_count} nodes and the interests {interests.node_count}:"
                " they must be the same"
            )
        offsets, neighbours = overlay.adjacency
        self.neighbours = Rows.from_compressed(offsets, neighbours, self.nodes.capacity)
        self.degree_counts = np.zeros(self.nodes.capacity + 1, np.int64)
        counted = np.bincount(overlay.degrees) if overlay.node_count else np.zeros(1, np.int64)
        self.degree_counts[: counted.size] = counted
        self.totals = np.array([overlay.degrees.max(initial=0), overlay.link_count], np.int64)

    def _allocate_scratch(self) -> None:
        nodes, topics = self.nodes.capacity, self.topics.capacity
        self.clock = np.ones(1, np.int64)
        self.marks = np.zeros(nodes, np.int64)
        self.places = np.full(nodes, -1, np.int32)
        self.queue = np.zeros(nodes, np.int32)
        self.weights = np.zeros(nodes, np.int64)
        self.counts = np.zeros(nodes, np.int32)
        self.topic_places = np.full(topics, -1, np.int32)

    def _fill_bits(self) -> None:
        nodes, topics = self.nodes.capacity, self.topics.capacity
        words = (topics + 63) // 64
        if 8 * words * nodes > self._bits_limit:
            words = 0
        self.bits = np.zeros((nodes, words), np.uint64)
        if words:
            population.fill_bits(self.topics_of.spans, self.topics_of.pool, self.bits)

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @property
    def link_count(self) -> int:
        return int(self.totals[1])

    @property
    def max_degree(self) -> int:
        return int(self.totals[0])

    @property
    def average_degree(self) -> float:
        return 2.0 * self.link_count / self.node_count if self.node_count else 0.0

    @property
    def graph(self) -> tuple[Any, ...]:
        """What kernels read: topics_of, members, neighbours (spans and pool of each), bits, order."""
        return (
            self.topics_of.spans,
            self.topics_of.pool,
            self.members.spans,
            self.members.pool,
            self.neighbours.spans,
            self.neighbours.pool,
            self.bits,
            self.nodes.order,
        )

    @property
    def scratch(self) -> tuple[Any, ...]:
        """What kernels scribble on: clock, marks, places, queue, topic_places."""
        return (self.clock, self.marks, self.places, self.queue, self.topic_places)

    def add_node(self, label: Label) -> int:
        """A slot for a new node, without topics yet."""
        slot = self.nodes.claim(label)
        if self.nodes.capacity > self.marks.size:
            self._widen_nodes()
        self.degree_counts[0] += 1
        return slot

    def remove_node(self, slot: int) -> None:
        """Forget a node that has no topics, links, backups or primaries any more."""
        for rows in (self.topics_of, self.neighbours, self.backups, self.primaries):
            rows.clear(slot)
        self.degree_counts[0] -= 1
        self.nodes.release(slot)

    def subscribe(self, node: int, labels: Iterable[Label]) -> Codes:
        """Let a node have topics it does not have yet; returns their slots, ascending."""
        slots = np.array(sorted(self._topic_slot(label) for label in labels), np.int32)
        rows, members = self.topics_of, self.members
        done = 0
        while True:
            done = population.subscribe(
                rows.spans,
                rows.pool,
                rows.tail,
                members.spans,
                members.pool,
                members.tail,
                self.bits,
                node,
                slots,
                done,
            )
            if done == slots.size:
                return slots
            rows.grow(slots.size)
            members.grow(8 + 2 * int(members.spans[slots, 1].max()))

    def unsubscribe(self, node: int, topics: Codes) -> None:
        """Take topics (slots) from a node. Topics that no node wants keep their slots until `forget_topics`."""
        population.unsubscribe(
            self.topics_of.spans, self.topics_of.pool, self.members.spans, self.members.pool, self.bits, node, topics
        )

    def forget_topics(self, topics: Codes) -> None:
        """Give up the slots of those of these topics that no node wants."""
        for topic in topics[self.members.spans[topics, 1] == 0].tolist():
            self.members.clear(topic)
            self.topics.release(topic)

    def link(self, pairs: Pairs) -> None:
        """Link these pairs of slots, none of which are linked."""
        rows, done = self.neighbours, 0
        while True:
            done = population.link(rows.spans, rows.pool, rows.tail, self.degree_counts, self.totals, pairs, done)
            if done == pairs.shape[0]:
                return
            rows.grow(16 + 4 * self.max_degree)

    def unlink(self, pairs: Pairs) -> None:
        """Take out the links between these pairs of slots."""
        rows = self.neighbours
        population.unlink(rows.spans, rows.pool, self.degree_counts, self.totals, pairs)

    def link_labels(self, pairs: Pairs) -> tuple[tuple[Label, Label], ...]:
        """These links by label, the lower end first."""
        order, labels = self.nodes.order, self.nodes.labels
        named: list[tuple[Any, Any]] = []
        for u, v in pairs.tolist():
            low, high = (u, v) if order[u] < order[v] else (v, u)
            named.append((labels[low], labels[high]))
        return tuple(named)

    def interests(self) -> Interests:
        """The interests of the present nodes; topics that no node wants are not in it."""
        nodes, topics = self.nodes.sorted_slots(), self.topics.sorted_slots()
        rank = np.full(self.topics.capacity, -1, np.int32)
        rank[topics] = np.arange(topics.size, dtype=np.int32)
        rows = population.extract_interests(self.topics_of.spans, self.topics_of.pool, nodes, rank, topics.size)
        return Interests(self.nodes.array_of(nodes), self.topics.array_of(topics), *rows)

    def overlay(self) -> Overlay:
        """The links among the present nodes."""
        nodes = self.nodes.sorted_slots()
        u, v = self._pairs(self.neighbours, nodes, upward=True)
        return Overlay(self.nodes.array_of(nodes), u, v)

    def snapshot(self) -> Snapshot:
        """All that is needed to go on elsewhere exactly as this state would."""
        primary, backup = self._pairs(self.backups, self.nodes.sorted_slots(), upward=False)
        return Snapshot(self.interests(), self.overlay(), primary, backup, self.builds, self.credit)

    @classmethod
    def restored(cls, snapshot: Snapshot, bits_limit: int = BITS_LIMIT) -> State:
        """A state with the content of the snapshot; its slots may differ, its answers do not."""
        state = cls(snapshot.interests, snapshot.overlay, bits_limit)
        nodes = snapshot.interests.node_count
        for attribute, rows, values in (
            ("backups", snapshot.primary, snapshot.backup),
            ("primaries", snapshot.backup, snapshot.primary),
        ):
            offsets = np.zeros(nodes + 1, np.int64)
            np.cumsum(np.bincount(rows, minlength=nodes), out=offsets[1:])
            ordered = values[np.lexsort((values, rows))]
            setattr(state, attribute, Rows.from_compressed(offsets, ordered, state.nodes.capacity))
        state.builds = snapshot.builds
        state.credit = snapshot.credit
        return state

    def _pairs(self, rows: Rows, nodes: Codes, upward: bool) -> tuple[Codes, Codes]:
        rank = np.full(self.nodes.capacity, -1, np.int32)
        rank[nodes] = np.arange(nodes.size, dtype=np.int32)
        offsets, values = population.extract_pairs(rows.spans, rows.pool, nodes, rank, upward)
        return np.repeat(np.arange(nodes.size, dtype=np.int32), np.diff(offsets)), values

    def _topic_slot(self, label: Label) -> int:
        slot = self.topics.slot_of.get(label)
        if slot is None:
            slot = self.topics.claim(label)
            if self.topics.capacity > self.topic_places.size:
                self.members.widen(self.topics.capacity)
                self.topic_places = np.full(self.topics.capacity, -1, np.int32)
                self._fill_bits()
        return slot

    def _widen_nodes(self) -> None:
        capacity = self.nodes.capacity
        for rows in (self.topics_of, self.neighbours, self.backups, self.primaries):
            rows.widen(capacity)
        counted = np.zeros(capacity + 1, np.int64)
        counted[: self.degree_counts.size] = self.degree_counts
        self.degree_counts = counted
        clock = self.clock
        self._allocate_scratch()
        self.clock = clock
        self._fill_bits()


@dataclass(frozen=True)
class Snapshot:
    """The content of a state by code: interests, overlay, (primary, backup) pairs; how many backup sets were built so
    far, and how many changes rebalancing has not used.
    """

    interests: Interests
    overlay: Overlay
    primary: Codes
    backup: Codes
    builds: int
    credit: int
