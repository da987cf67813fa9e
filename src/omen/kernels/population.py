"""A population under churn: subscriptions and links put in and taken out of growing rows, and read out as compressed
rows.

Nodes and topics are slots. `bits[node]` has a bit for each topic slot, so that "does w want t" is one look; where the
bits of all nodes would take too much memory `bits` has no columns and the node's ascending topic row is searched
instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.rows import (
    POOL,
    SPANS,
    TAIL,
    Pool,
    Spans,
    Tail,
    append,
    holds_sorted,
    insert_sorted,
    make_room,
    remove,
    remove_sorted,
)

Bits = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

BITS = "uint64[:,::1]"
ROWS = f"{SPANS}, {POOL}, {TAIL}"


@compiled()
def word_of(topic: int) -> int:
    """Which column of `bits` holds the topic."""
    return topic >> 6


@compiled()
def mask_of(topic: int) -> np.uint64:
    """The topic's bit in that column. Hot loops fetch word and mask once and look at `bits` themselves."""
    return np.uint64(1) << np.uint64(topic & 63)


@compiled()
def wants(bits: Bits, topic_spans: Spans, topic_pool: Pool, node: int, topic: int) -> bool:
    """Whether the node subscribes to the topic."""
    if bits.shape[1] > 0:
        wanted: bool = bits[node, word_of(topic)] & mask_of(topic) != 0
        return wanted
    return holds_sorted(topic_spans, topic_pool, node, topic)


@compiled(f"int64({SPANS}, {POOL}, {BITS}, {POOL}, int64, {POOL})")
def keep_wanting(topic_spans: Spans, topic_pool: Pool, bits: Bits, nodes: Codes, topic: int, wanting: Codes) -> int:
    """Put those of the nodes that want the topic into `wanting`, in the order given; returns how many."""
    found = 0
    if bits.shape[1] > 0:
        word, mask = word_of(topic), mask_of(topic)
        for node in nodes:
            wanting[found] = node
            found += bits[node, word] & mask != 0
    else:
        for node in nodes:
            wanting[found] = node
            found += holds_sorted(topic_spans, topic_pool, node, topic)
    return found


@compiled(f"void({SPANS}, {POOL}, {BITS})")
def fill_bits(spans: Spans, pool: Pool, bits: Bits) -> None:
    """Set the bit of every subscription."""
    for node in range(spans.shape[0]):
        for place in range(spans[node, 0], spans[node, 0] + spans[node, 1]):
            bits[node, word_of(pool[place])] |= mask_of(pool[place])


@compiled(f"int64({ROWS}, {ROWS}, {BITS}, int64, {POOL}, int64)")
def subscribe(
    topic_spans: Spans,
    topic_pool: Pool,
    topic_tail: Tail,
    member_spans: Spans,
    member_pool: Pool,
    member_tail: Tail,
    bits: Bits,
    node: int,
    topics: Codes,
    begin: int,
) -> int:
    """Let the node have topics[begin:]; returns how many of `topics` it has now, fewer where a pool is full."""
    for place in range(begin, topics.size):
        topic = topics[place]
        if not make_room(topic_spans, topic_pool, topic_tail, node, 1):
            return place
        if not make_room(member_spans, member_pool, member_tail, topic, 1):
            return place
        insert_sorted(topic_spans, topic_pool, node, topic)
        append(member_spans, member_pool, topic, node)
        if bits.shape[1] > 0:
            bits[node, word_of(topic)] |= mask_of(topic)
    return topics.size


@compiled(f"void({SPANS}, {POOL}, {SPANS}, {POOL}, {BITS}, int64, {POOL})")
def unsubscribe(
    topic_spans: Spans, topic_pool: Pool, member_spans: Spans, member_pool: Pool, bits: Bits, node: int, topics: Codes
) -> None:
    """Take these topics away from the node."""
    for place in range(topics.size):
        topic = topics[place]
        remove_sorted(topic_spans, topic_pool, node, topic)
        remove(member_spans, member_pool, topic, node)
        if bits.shape[1] > 0:
            bits[node, word_of(topic)] &= ~mask_of(topic)


@compiled()
def count_degree(degree_counts: Int64s, totals: Int64s, before: int, after: int) -> None:
    """A node's degree changed: keep how many nodes have each degree, and the largest one in totals[0]."""
    degree_counts[before] -= 1
    degree_counts[after] += 1
    totals[0] = max(totals[0], after)
    while totals[0] > 0 and degree_counts[totals[0]] == 0:
        totals[0] -= 1


@compiled(f"int64({ROWS}, int64[::1], int64[::1], int32[:,::1], int64)")
def link(
    spans: Spans,
    pool: Pool,
    tail: Tail,
    degree_counts: Int64s,
    totals: Int64s,
    pairs: npt.NDArray[np.int32],
    begin: int,
) -> int:
    """Link pairs[begin:], none of them linked before; returns how many are, fewer than all where the pool is full."""
    for place in range(begin, pairs.shape[0]):
        u, v = pairs[place, 0], pairs[place, 1]
        if not (make_room(spans, pool, tail, u, 1) and make_room(spans, pool, tail, v, 1)):
            return place
        append(spans, pool, u, v)
        append(spans, pool, v, u)
        count_degree(degree_counts, totals, spans[u, 1] - 1, spans[u, 1])
        count_degree(degree_counts, totals, spans[v, 1] - 1, spans[v, 1])
        totals[1] += 1
    return int(pairs.shape[0])


@compiled(f"void({SPANS}, {POOL}, int64[::1], int64[::1], int32[:,::1])")
def unlink(spans: Spans, pool: Pool, degree_counts: Int64s, totals: Int64s, pairs: npt.NDArray[np.int32]) -> None:
    """Take these links out."""
    for place in range(pairs.shape[0]):
        u, v = pairs[place, 0], pairs[place, 1]
        if remove(spans, pool, u, v):
            remove(spans, pool, v, u)
            count_degree(degree_counts, totals, spans[u, 1] + 1, spans[u, 1])
            count_degree(degree_counts, totals, spans[v, 1] + 1, spans[v, 1])
            totals[1] -= 1


@compiled(f"Tuple((int64[::1], {POOL}, int64[::1], {POOL}))({SPANS}, {POOL}, {POOL}, {POOL}, int64)")
def extract_interests(
    spans: Spans, pool: Pool, nodes: Codes, topic_rank: Codes, topics: int
) -> tuple[Int64s, Codes, Int64s, Codes]:
    """The interests as compressed rows both ways; `nodes` are slots in label order, topic_rank[slot] a topic's code."""
    node_offsets = np.zeros(nodes.size + 1, np.int64)
    topic_offsets = np.zeros(topics + 1, np.int64)
    for code in range(nodes.size):
        start, length = spans[nodes[code], 0], spans[nodes[code], 1]
        node_offsets[code + 1] = node_offsets[code] + length
        for place in range(start, start + length):
            topic_offsets[topic_rank[pool[place]] + 1] += 1
    for topic in range(topics):
        topic_offsets[topic + 1] += topic_offsets[topic]
    topic_nodes = np.empty(node_offsets[-1], np.int32)
    next_place = topic_offsets[:-1].copy()
    for code in range(nodes.size):
        start, length = spans[nodes[code], 0], spans[nodes[code], 1]
        for place in range(start, start + length):
            topic = topic_rank[pool[place]]
            topic_nodes[next_place[topic]] = code
            next_place[topic] += 1
    node_topics = np.empty(node_offsets[-1], np.int32)
    next_place = node_offsets[:-1].copy()
    for topic in range(topics):
        for place in range(topic_offsets[topic], topic_offsets[topic + 1]):
            code = topic_nodes[place]
            node_topics[next_place[code]] = topic
            next_place[code] += 1
    return node_offsets, node_topics, topic_offsets, topic_nodes


@compiled(f"Tuple((int64[::1], {POOL}))({SPANS}, {POOL}, {POOL}, {POOL}, boolean)")
def extract_pairs(spans: Spans, pool: Pool, nodes: Codes, rank: Codes, upward: bool) -> tuple[Int64s, Codes]:
    """Rows of nodes as compressed rows of codes, ascending; `upward`: only codes above the row's own."""
    offsets = np.zeros(nodes.size + 1, np.int64)
    total = 0
    for code in range(nodes.size):
        total += spans[nodes[code], 1]
    values = np.empty(total, np.int32)
    filled = 0
    for code in range(nodes.size):
        start, length = spans[nodes[code], 0], spans[nodes[code], 1]
        begin = filled
        for place in range(start, start + length):
            other = rank[pool[place]]
            if not upward or other > code:
                values[filled] = other
                filled += 1
        values[begin:filled].sort()
        offsets[code + 1] = filled
    return offsets, values[:filled].copy()


@compiled(f"{POOL}({SPANS}, {POOL}, {BITS}, {POOL}, {POOL})")
def who_want(topic_spans: Spans, topic_pool: Pool, bits: Bits, nodes: Codes, topics: Codes) -> Codes:
    """Those of the nodes that want at least one of the topics."""
    found = 0
    wanting = np.empty(nodes.size, np.int32)
    for node in nodes:
        for topic in topics:
            if wants(bits, topic_spans, topic_pool, node, topic):
                wanting[found] = node
                found += 1
                break
    return wanting[:found].copy()
