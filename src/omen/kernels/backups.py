"""Backup sets: covers of a node's topics by other subscribers (Chen, Jacobsen, Vitenberg, Algs. 11 and 12).

Four rules choose the next backup. PD rules draw an uncovered topic and take a subscriber of it: the one of least
weight (Alg. 12), or the one that covers most uncovered topics (OMen 4.2). Greedy rules take, of all that cover
anything, the one of least weight for each uncovered topic it covers (Alg. 11), or the one that covers most (OMen
4.2). The weight of a node is its number of neighbours and primaries; ties go to the lowest label.
"""

from __future__ import annotations

import numpy as np

from omen.kernels.compiling import compiled
from omen.kernels.counter_random import Words, mix
from omen.kernels.pieces import sort_by_order
from omen.kernels.population import ROWS, Codes, Int64s
from omen.kernels.repair import GRAPH, SCRATCH, Graph, Scratch
from omen.kernels.rows import POOL, SPANS, Pool, Spans, Tail, append, make_room, remove

PD_WEIGHT, PD_COVER, GREEDY_WEIGHT, GREEDY_COVER = 0, 1, 2, 3


@compiled()
def _drawn_order(topics: Codes, topic_keys: Words, seed: int, node_key: np.uint64, build: int, cover: int) -> Codes:
    """The topics in the order in which this cover draws them, which depends on labels and not on slots."""
    draws = np.empty(topics.size, np.int64)
    places = np.empty(topics.size, np.int32)
    key = mix(np.uint64(seed), np.uint64(build), np.uint64(cover))
    for i in range(topics.size):
        draws[i] = mix(key, node_key, topic_keys[topics[i]]) >> np.uint64(1)
        places[i] = i
    sort_by_order(places, draws)
    return topics[places]


@compiled()
def _lightest(
    graph: Graph, primary_spans: Spans, topic: int, base: int, chosen_from: int, marks: Int64s, weights: Int64s
) -> int:
    """Alg. 12, lines 8, 9, 13 and 14: the subscriber of least weight; all candidates' weights sink by as much.

    marks[u] is `base` where weights[u] belongs to this cover, above it where u is the node itself or was chosen. A
    node whose weight came down to zero stays a candidate, where the paper's line 8 would drop it and find no node.
    """
    _, _, member_spans, member_pool, link_spans, _, _, order = graph
    start, length = member_spans[topic, 0], member_spans[topic, 1]
    best, best_slot = np.int64(0), -1
    for place in range(start, start + length):
        slot = member_pool[place]
        mark = marks[slot]
        if mark >= chosen_from:
            continue
        if mark != base:
            marks[slot] = base
            weights[slot] = link_spans[slot, 1] + primary_spans[slot, 1]
        weight = weights[slot]
        if best_slot < 0 or weight < best or (weight == best and order[slot] < order[best_slot]):
            best, best_slot = weight, slot
    if best > 0:
        for place in range(start, start + length):
            weights[member_pool[place]] -= best
    return best_slot


@compiled()
def _widest(graph: Graph, candidates: Codes, counts: Codes, chosen_from: int, marks: Int64s) -> int:
    """The candidate that covers most uncovered topics; -1 where none covers any."""
    order = graph[7]
    best, best_slot = np.int32(0), -1
    for slot in candidates:
        if counts[slot] < best or counts[slot] == 0 or marks[slot] >= chosen_from:
            continue
        if counts[slot] > best or order[slot] < order[best_slot]:
            best, best_slot = counts[slot], slot
    return best_slot


@compiled()
def _cheapest(
    graph: Graph, primary_spans: Spans, candidates: Codes, counts: Codes, chosen_from: int, marks: Int64s
) -> int:
    """Alg. 11, line 9: the candidate of least weight for each uncovered topic; fractions are compared exactly."""
    link_spans, order = graph[4], graph[7]
    best_slot = -1
    best_weight, best_count = np.int64(0), np.int64(1)
    for slot in candidates:
        count = np.int64(counts[slot])
        if count == 0 or marks[slot] >= chosen_from:
            continue
        weight = link_spans[slot, 1] + primary_spans[slot, 1]
        mine, theirs = weight * best_count, best_weight * count
        if best_slot < 0 or mine < theirs or (mine == theirs and order[slot] < order[best_slot]):
            best_slot, best_weight, best_count = slot, weight, count
    return best_slot


@compiled()
def _count_covers(graph: Graph, topics: Codes, counts: Codes, step: int) -> None:
    """Add `step` to the count of every subscriber of each of these topics."""
    member_spans, member_pool = graph[2], graph[3]
    for topic in topics:
        for place in range(member_spans[topic, 0], member_spans[topic, 0] + member_spans[topic, 1]):
            counts[member_pool[place]] += step


@compiled()
def _candidates_of(graph: Graph, topics: Codes, counts: Codes) -> Codes:
    """All subscribers of these topics, each once; counts are zero before, and afterwards those of `_count_covers`."""
    member_spans, member_pool = graph[2], graph[3]
    total = 0
    for topic in topics:
        total += member_spans[topic, 1]
    candidates = np.empty(min(total, counts.size), np.int32)
    found = 0
    for topic in topics:
        for place in range(member_spans[topic, 0], member_spans[topic, 0] + member_spans[topic, 1]):
            slot = member_pool[place]
            if counts[slot] == 0:
                candidates[found] = slot
                found += 1
            counts[slot] += 1
    return candidates[:found]


@compiled(
    f"int32[::1]({GRAPH}, {SCRATCH}, {SPANS}, int64[::1], {POOL}, uint64[::1], uint64[::1],"
    " int64, int64, int64, uint64, int64)"
)
def choose_backups(
    graph: Graph,
    scratch: Scratch,
    primary_spans: Spans,
    weights: Int64s,
    counts: Codes,
    node_keys: Words,
    topic_keys: Words,
    node: int,
    rule: int,
    covers: int,
    seed: int,
    build: int,
) -> Codes:
    """The backups of a node: the union of `covers` disjoint covers of its topics, as far as there are subscribers.

    A topic that no other node can cover is given up, so that each topic ends up covered `covers` times or by all its
    other subscribers. Cost: PD by weight reads the subscribers of the topics drawn, the others those of all topics of
    the node.
    """
    topic_spans, topic_pool, member_spans, member_pool, _, _, _, _ = graph
    clock, marks, _, _, topic_places = scratch
    topics = topic_pool[topic_spans[node, 0] : topic_spans[node, 0] + topic_spans[node, 1]].copy()
    counting = rule != PD_WEIGHT
    candidates = _candidates_of(graph, topics, counts) if counting else topics[:0]
    chosen = np.empty(16, np.int32)
    found = 0
    base = clock[0]
    chosen_from = base + covers
    clock[0] += covers + 1
    marks[node] = chosen_from
    for cover in range(covers):
        drawn = topics
        if rule <= PD_COVER:
            drawn = _drawn_order(topics, topic_keys, seed, node_keys[node], build, cover)
        for topic in topics:
            topic_places[topic] = 0
        if counting and cover > 0:
            _count_covers(graph, topics, counts, 1)
        place = 0
        while place < drawn.size:
            if topic_places[drawn[place]] < 0:
                place += 1
                continue
            topic = drawn[place]
            if rule == PD_WEIGHT:
                slot = _lightest(graph, primary_spans, topic, base + cover, chosen_from, marks, weights)
            elif rule == PD_COVER:
                members = member_pool[member_spans[topic, 0] : member_spans[topic, 0] + member_spans[topic, 1]]
                slot = _widest(graph, members, counts, chosen_from, marks)
            elif rule == GREEDY_COVER:
                slot = _widest(graph, candidates, counts, chosen_from, marks)
            else:
                slot = _cheapest(graph, primary_spans, candidates, counts, chosen_from, marks)
            if slot < 0:
                topic_places[topic] = -1
                if counting:
                    _count_covers(graph, drawn[place : place + 1], counts, -1)
                continue
            if found == chosen.size:
                chosen = np.concatenate((chosen, np.empty_like(chosen)))
            chosen[found] = slot
            found += 1
            marks[slot] = chosen_from
            for seat in range(topic_spans[slot, 0], topic_spans[slot, 0] + topic_spans[slot, 1]):
                covered = topic_pool[seat]
                if topic_places[covered] >= 0:
                    topic_places[covered] = -1
                    if counting:
                        _count_covers(graph, topic_pool[seat : seat + 1], counts, -1)
    return chosen[:found].copy()


@compiled(
    f"int64({GRAPH}, {SCRATCH}, {ROWS}, {ROWS}, int64[::1], {POOL}, uint64[::1], uint64[::1],"
    f" {POOL}, int64, int64, uint64, int64, int64)"
)
def rebuild_backups(
    graph: Graph,
    scratch: Scratch,
    backup_spans: Spans,
    backup_pool: Pool,
    backup_tail: Tail,
    primary_spans: Spans,
    primary_pool: Pool,
    primary_tail: Tail,
    weights: Int64s,
    counts: Codes,
    node_keys: Words,
    topic_keys: Words,
    nodes: Codes,
    rule: int,
    covers: int,
    seed: int,
    builds: int,
    begin: int,
) -> int:
    """Run buildBackupsAt for nodes[begin:], one by one; returns how many of `nodes` are done, fewer where a pool is
    full.

    Node number i is build `builds` + i: a node done over again because a pool was full draws the same again.
    """
    for i in range(begin, nodes.size):
        node = nodes[i]
        start = backup_spans[node, 0]
        for place in range(start, start + backup_spans[node, 1]):
            remove(primary_spans, primary_pool, backup_pool[place], node)
        backup_spans[node, 1] = 0
        chosen = choose_backups(
            graph, scratch, primary_spans, weights, counts, node_keys, topic_keys, node, rule, covers, seed, builds + i
        )
        if not make_room(backup_spans, backup_pool, backup_tail, node, chosen.size):
            return i
        for slot in chosen:
            if not make_room(primary_spans, primary_pool, primary_tail, slot, 1):
                return i
        for slot in chosen:
            append(backup_spans, backup_pool, node, slot)
            append(primary_spans, primary_pool, slot, node)
    return nodes.size


@compiled(f"boolean({ROWS}, {ROWS}, int64, int64)")
def add_backup(
    backup_spans: Spans,
    backup_pool: Pool,
    backup_tail: Tail,
    primary_spans: Spans,
    primary_pool: Pool,
    primary_tail: Tail,
    node: int,
    backup: int,
) -> bool:
    """Make one node a backup of another, unless it is one; False where a pool is full."""
    start = backup_spans[node, 0]
    for place in range(start, start + backup_spans[node, 1]):
        if backup_pool[place] == backup:
            return True
    if not make_room(backup_spans, backup_pool, backup_tail, node, 1):
        return False
    if not make_room(primary_spans, primary_pool, primary_tail, backup, 1):
        return False
    append(backup_spans, backup_pool, node, backup)
    append(primary_spans, primary_pool, backup, node)
    return True


@compiled(f"void({SPANS}, {POOL}, {SPANS}, {POOL}, int64)")
def forget_backups(backup_spans: Spans, backup_pool: Pool, primary_spans: Spans, primary_pool: Pool, node: int) -> None:
    """Take a node out of every backup set and every primary set, and empty its own."""
    for place in range(backup_spans[node, 0], backup_spans[node, 0] + backup_spans[node, 1]):
        remove(primary_spans, primary_pool, backup_pool[place], node)
    for place in range(primary_spans[node, 0], primary_spans[node, 0] + primary_spans[node, 1]):
        remove(backup_spans, backup_pool, primary_pool[place], node)
    backup_spans[node, 1] = 0
    primary_spans[node, 1] = 0
