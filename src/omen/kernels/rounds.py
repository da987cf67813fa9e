"""Greedy design in rounds: dividing nodes into parts, the instance of a part, and components after the round.

A subscription is known by its place in `node_topics`. Components are a forest of places in which the root is the lowest
place, so that a component's name, the node of its root, is the lowest node in it: it depends on the links alone, and
neither on their order nor on where they were chosen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.components import find_root
from omen.kernels.counter_random import draw, stream_key
from omen.kernels.greedy_components import Whole

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_HIGHEST = np.uint64(2**64 - 1)


@compiled("uint64[:,::1](int64[::1], int32[::1], int32[::1], uint64, boolean)")
def division_keys(node_offsets: Offsets, node_topics: Codes, nodes: Codes, seed: np.uint64, alike: bool) -> Words:
    """Two words for each node, by which the nodes of a round are ordered and cut into parts.

    `alike`: MinHash of its topics (Broder) under two permutations, so that nodes that share many topics tend to stand
    together. Otherwise, and where a node has no topic, the words are drawn for the node. `seed` is that of the round.
    """
    keys = np.empty((nodes.size, 2), np.uint64)
    for column in range(2):
        permutation = stream_key(seed, np.uint64(column))
        for u in range(nodes.size):
            lowest = _HIGHEST
            if alike:
                for i in range(node_offsets[u], node_offsets[u + 1]):
                    lowest = min(lowest, draw(permutation, np.uint64(node_topics[i])))
            if lowest == _HIGHEST:
                lowest = draw(permutation, np.uint64(nodes[u]) + (np.uint64(1) << np.uint64(32)))
            keys[u, column] = lowest
    return keys


@compiled(
    "Tuple((int64[::1], int32[::1], int64[::1], int32[::1], int32[::1]))"
    "(int32[::1], int64[::1], int32[::1], int32[::1], int64)"
)
def part_rows(
    nodes: Codes, node_offsets: Offsets, node_topics: Codes, labels: Codes, topics: int
) -> tuple[Offsets, Codes, Offsets, Codes, Codes]:
    """The rows, both ways, and the labels of a part: its nodes, ascending, and the topics that are split among them."""
    first = np.full(topics, -1, np.int32)
    held = np.zeros(topics, np.int32)
    split = np.zeros(topics, np.bool_)
    for u in nodes:
        for i in range(node_offsets[u], node_offsets[u + 1]):
            t = node_topics[i]
            if held[t] == 0:
                first[t] = labels[i]
            elif first[t] != labels[i]:
                split[t] = True
            held[t] += 1
    code = first
    kept = 0
    for t in range(topics):
        if split[t]:
            code[t] = kept
            kept += 1
    topic_offsets = np.zeros(kept + 1, np.int64)
    for t in range(topics):
        if split[t]:
            topic_offsets[code[t] + 1] = topic_offsets[code[t]] + held[t]
    count = topic_offsets[kept]
    part_offsets = np.zeros(nodes.size + 1, np.int64)
    part_topics = np.empty(count, np.int32)
    topic_nodes = np.empty(count, np.int32)
    part_labels = np.empty(count, np.int32)
    filled = topic_offsets[:-1].copy()
    place = 0
    for k in range(nodes.size):
        for i in range(node_offsets[nodes[k]], node_offsets[nodes[k] + 1]):
            t = node_topics[i]
            if split[t]:
                part_topics[place] = code[t]
                place += 1
                q = filled[code[t]]
                topic_nodes[q] = k
                part_labels[q] = labels[i]
                filled[code[t]] = q + 1
        part_offsets[k + 1] = place
    return part_offsets, part_topics, topic_offsets, topic_nodes, part_labels


@compiled("int64(int32[:,::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def merge_components(
    links: npt.NDArray[np.int32], node_offsets: Offsets, node_topics: Codes, parents: Codes, weights: Codes
) -> int:
    """Add links to the forest of places, one after the other; how many components fewer there are.

    `weights` tells how many components each link removed, in this order.
    """
    removed = np.int64(0)
    for k in range(links.shape[0]):
        u, v = links[k, 0], links[k, 1]
        i, j = node_offsets[u], node_offsets[v]
        weight = np.int32(0)
        while i < node_offsets[u + 1] and j < node_offsets[v + 1]:
            mine, theirs = node_topics[i], node_topics[j]
            if mine == theirs:
                one, other = find_root(parents, i), find_root(parents, j)
                if one != other:
                    parents[max(one, other)] = min(one, other)
                    weight += np.int32(1)
            i += mine <= theirs
            j += theirs <= mine
        weights[k] = weight
        removed += np.int64(weight)
    return int(removed)


@compiled("void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def name_components(
    node_offsets: Offsets, node_topics: Codes, parents: Codes, labels: Codes, pieces: Codes, alone: Codes
) -> None:
    """Shorten every path of the forest, and read it: labels by place, pieces of each topic, and in how many topics each
    node is a piece of its own.
    """
    merged = np.zeros(parents.size, np.bool_)
    pieces[:] = 0
    for u in range(node_offsets.size - 1):
        for i in range(node_offsets[u], node_offsets[u + 1]):
            parent = parents[i]
            if parent == i:
                labels[i] = u
                pieces[node_topics[i]] += 1
            else:
                root = parents[parent]  # a parent stands before its child: it points to its root already
                parents[i] = root
                labels[i] = labels[root]
                merged[root] = True
                merged[i] = True
    for u in range(node_offsets.size - 1):
        alone[u] = 0
        for i in range(node_offsets[u], node_offsets[u + 1]):
            alone[u] += not merged[i]


@compiled("Tuple((int64[::1], int32[::1], int32[::1]))(int64[::1], int32[::1], int32[::1], int32[::1])")
def drop_connected(
    node_offsets: Offsets, node_topics: Codes, parents: Codes, pieces: Codes
) -> tuple[Offsets, Codes, Codes]:
    """Rows and forest of the topics that still have several pieces: nothing more happens in the others."""
    offsets = np.zeros(node_offsets.size, np.int64)
    count = 0
    for u in range(node_offsets.size - 1):
        for i in range(node_offsets[u], node_offsets[u + 1]):
            count += pieces[node_topics[i]] > 1
        offsets[u + 1] = count
    topics = np.empty(count, np.int32)
    forest = np.empty(count, np.int32)
    moved = np.empty(node_topics.size, np.int32)
    place = 0
    for i in range(node_topics.size):
        if pieces[node_topics[i]] > 1:
            moved[i] = place
            topics[place] = node_topics[i]
            forest[place] = moved[parents[i]]
            place += 1
    return offsets, topics, forest


@compiled()
def _sort(keys: Offsets) -> None:
    """Ascending, in place. Shell's sort: small to compile."""
    gap = 1
    while 9 * gap < 4 * keys.size:
        gap = 9 * gap // 4 + 1
    while gap > 0:
        for i in range(gap, keys.size):
            moving = keys[i]
            j = i - gap
            while j >= 0 and keys[j] > moving:
                keys[j + gap] = keys[j]
                j -= gap
            keys[j + gap] = moving
        gap = max(1, 4 * gap // 9) if gap > 1 else 0


@compiled()
def _find_pieces(labels: Codes, start: int, end: int, seat: Codes, first: Codes, size: Codes, ranked: Offsets) -> int:
    """The pieces of a topic, largest first, then by their first member: how many; each member's piece by its first."""
    pieces = 0
    for q in range(start, end):
        if seat[labels[q]] < start:
            seat[labels[q]] = q
            size[q - start] = 0
            ranked[pieces] = q - start
            pieces += 1
        first[q - start] = seat[labels[q]] - start
        size[first[q - start]] += 1
    for k in range(pieces):
        place = ranked[k]
        ranked[k] = (np.int64(end - start - size[place]) << 32) + place
    _sort(ranked[:pieces])
    for k in range(pieces):
        ranked[k] &= np.int64(2**32 - 1)
    return pieces


@compiled()
def _choose_slots(
    members: Codes, hosted: Codes, begin: Whole, wanted: int, degrees: Codes, room: Codes, tally: Codes, slots: Codes
) -> int:
    """The `wanted` hosted members of the lowest degrees that have room, in the order of the circle from `begin`."""
    highest = 0
    for k in range(members.size):
        if hosted[k] and room[members[k]] > 0:
            tally[degrees[members[k]]] += 1
            highest = max(highest, degrees[members[k]])
    left, limit = wanted, 0
    while limit <= highest and tally[limit] <= left:
        left -= tally[limit]
        limit += 1
    tally[: highest + 1] = 0
    found = 0
    for c in range(members.size):
        k = (begin + c) % members.size
        u = members[k]
        if not hosted[k] or room[u] <= 0 or degrees[u] > limit:
            continue
        if degrees[u] == limit:
            if left == 0:
                continue
            left -= 1
        slots[found] = u
        found += 1
    return found


@compiled("int32[:,::1](int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], uint64)")
def propose_links(
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    names: Codes,
    degrees: Codes,
    room: Codes,
    seed: np.uint64,
) -> Codes:
    """Links that join the pieces of each topic one by one, low degrees first: rows (u, v), u < v, some of them twice.

    The largest pieces are hosts: as few as have a member for each of the other pieces, the guests. Each guest proposes
    a link between its member of the lowest degree and a member of a host. Nodes of no room propose nothing. Ties go
    round a circle that begins elsewhere in each topic and for each seed, so that topics do not all choose the same
    nodes. `names` are the codes that nodes have in all of the design.
    """
    most = highest = 0
    for t in range(topic_offsets.size - 1):
        most = max(most, topic_offsets[t + 1] - topic_offsets[t])
    for q in range(labels.size):
        highest = max(highest, labels[q])
    tally = np.zeros(max(0, degrees.max() if degrees.size else 0) + 2, np.int32)
    seat = np.full(highest + 1, -1, np.int32)
    first, size, best = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    hosted, slots, ranked = np.empty(most, np.int32), np.empty(most + 1, np.int32), np.empty(most, np.int64)
    links = np.empty((labels.size, 2), np.int32)
    proposed = 0
    for t in range(topic_offsets.size - 1):
        start, end = topic_offsets[t], topic_offsets[t + 1]
        pieces = _find_pieces(labels, start, end, seat, first, size, ranked)
        if pieces < 2:
            continue
        members = topic_nodes[start:end]
        begin = np.int64(
            draw(stream_key(seed, np.uint64(names[members[0]])), np.uint64(end - start)) % np.uint64(end - start)
        )
        for k in range(pieces):
            best[ranked[k]] = -1
        for c in range(members.size):
            place = (begin + c) % members.size
            u, piece = members[place], first[place]
            if room[u] > 0 and (best[piece] < 0 or degrees[u] < degrees[best[piece]]):
                best[piece] = u
        hosts, held = 1, np.int64(size[ranked[0]])
        while hosts < pieces and held < pieces - hosts:
            held += np.int64(size[ranked[hosts]])
            hosts += 1
        guests = 0
        for k in range(pieces):
            size[ranked[k]] = k < hosts  # from here on: whether a host
            guests += k >= hosts and best[ranked[k]] >= 0
        for k in range(members.size):
            hosted[k] = size[first[k]]
        found = _choose_slots(members, hosted[: members.size], begin, guests, degrees, room, tally, slots)
        for k in range(hosts, pieces):
            u = best[ranked[k]]
            if u >= 0 and found > 0:
                found -= 1
                links[proposed, 0] = min(u, slots[found])
                links[proposed, 1] = max(u, slots[found])
                proposed += 1
    return links[:proposed].copy()


@compiled("uint64[::1](int32[::1], int32[::1], uint64)")
def link_words(u: Codes, v: Codes, seed: np.uint64) -> Words:
    """A word for each link, by which proposals are put into an order; below 2**63, as Spark counts."""
    words = np.empty(u.size, np.uint64)
    for k in range(u.size):
        words[k] = draw(stream_key(seed, np.uint64(u[k])), np.uint64(v[k])) >> np.uint64(1)
    return words
