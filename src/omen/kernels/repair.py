"""What churn asks for: the engine's instance to repair what a loss split, and the links of a newcomer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_small import prefers_first
from omen.kernels.pieces import EXACT, HALO_NEAR, LITERAL, join_seen, root_of, search_pieces, sort_by_order
from omen.kernels.population import BITS, Bits, Codes, Int64s, keep_wanting
from omen.kernels.rows import POOL, SPANS, Pool, Spans

GRAPH = f"Tuple(({SPANS}, {POOL}, {SPANS}, {POOL}, {SPANS}, {POOL}, {BITS}, int64[::1]))"
SCRATCH = f"Tuple((int64[::1], int64[::1], {POOL}, {POOL}, {POOL}))"
OF_SHADOW = -1

Graph = tuple[Spans, Pool, Spans, Pool, Spans, Pool, Bits, Int64s]
Scratch = tuple[Int64s, Int64s, Codes, Codes, Codes]


@compiled(f"{POOL}({POOL}, {POOL}, int64[::1], int64[::1], int64[::1])")
def _union(first: Codes, second: Codes, order: Int64s, clock: Int64s, marks: Int64s) -> Codes:
    """The slots in either, each once, in label order."""
    both = np.empty(first.size + second.size, np.int32)
    found = 0
    for slots in (first, second):
        for slot in slots:
            if marks[slot] != clock[0]:
                marks[slot] = clock[0]
                both[found] = slot
                found += 1
    clock[0] += 1
    union = both[:found].copy()
    sort_by_order(union, order)
    return union


@compiled()
def _subscribers_among(graph: Graph, topic: int, among: Codes, everyone: bool) -> Codes:
    """Those of `among`, or of all nodes, that want the topic, in label order."""
    topic_spans, topic_pool, member_spans, member_pool, _, _, bits, order = graph
    if everyone:
        start, length = member_spans[topic, 0], member_spans[topic, 1]
        members = member_pool[start : start + length].copy()
        sort_by_order(members, order)
        return members
    inside = np.empty(among.size, np.int32)
    return inside[: keep_wanting(topic_spans, topic_pool, bits, among, topic, inside)]


@compiled()
def _keep_near(seeds: Codes, inside: Codes, labels: Codes, base: int, marks: Int64s, near: Codes) -> Codes:
    """Leave out nodes in a piece without a former neighbour (seed); all, where that leaves a single piece."""
    kept = pieces = 0
    for seed in range(seeds.size):
        near[seed] = labels[marks[seeds[seed]] - base]
        fresh = 1
        for other in range(seed):
            if near[other] == near[seed]:
                fresh = 0
        pieces += fresh
    if pieces < 2:
        return inside[:0]
    for item in range(inside.size):
        for seed in range(seeds.size):
            if near[seed] == labels[item]:
                inside[kept], labels[kept] = inside[item], labels[item]
                kept += 1
                break
    return inside[:kept]


@compiled()
def _label(
    graph: Graph,
    scratch: Scratch,
    topic: int,
    seeds: Codes,
    shadow: Codes,
    everyone: bool,
    components: int,
    parent: Codes,
    ends: Codes,
    labels: Codes,
) -> Codes:
    """The members of S in the topic, in label order, with their labels filled in; none if the topic is in one piece."""
    topic_spans, topic_pool, _, _, link_spans, link_pool, bits, _ = graph
    clock, marks, _, queue, _ = scratch
    if components != EXACT:
        inside = _subscribers_among(graph, topic, shadow, everyone)
        pieces = join_seen(
            topic,
            inside,
            components != LITERAL,
            topic_spans,
            topic_pool,
            link_spans,
            link_pool,
            bits,
            clock,
            marks,
            parent,
        )
        for item in range(inside.size):
            labels[item] = root_of(parent, item)
        if components == HALO_NEAR:
            return _keep_near(seeds, inside, labels, clock[0] - inside.size, marks, ends)
        return inside if pieces > 1 else inside[:0]
    pieces, rest = search_pieces(
        topic, seeds, topic_spans, topic_pool, link_spans, link_pool, bits, clock, marks, queue, parent, ends
    )
    inside = seeds[:0]
    if pieces > 1:
        inside = _subscribers_among(graph, topic, shadow, everyone)
        for item in range(inside.size):
            seed = marks[inside[item]] - clock[0]
            labels[item] = root_of(parent, seed) if seed >= 0 else rest
    clock[0] += seeds.size
    return inside


@compiled()
def _instance_of(
    graph: Graph, scratch: Scratch, topic_offsets: Int64s, members: Codes
) -> tuple[Codes, Int64s, Codes, Codes, Codes]:
    """The engine's instance of topics given by their members (slots in label order).

    Returns the nodes (slots; their places are the instance's codes), node_offsets, node_topics, topic_nodes, degrees.
    """
    link_spans, order = graph[4], graph[7]
    clock, marks, places, _, _ = scratch
    nodes = _union(members, members[:0], order, clock, marks)
    degrees = np.empty(nodes.size, np.int32)
    node_offsets = np.zeros(nodes.size + 1, np.int64)
    for code in range(nodes.size):
        places[nodes[code]] = code
        degrees[code] = link_spans[nodes[code], 1]
    topic_nodes = np.empty(members.size, np.int32)
    for place in range(members.size):
        topic_nodes[place] = places[members[place]]
        node_offsets[topic_nodes[place] + 1] += 1
    for code in range(nodes.size):
        places[nodes[code]] = -1
        node_offsets[code + 1] += node_offsets[code]
    node_topics = np.empty(members.size, np.int32)
    next_place = node_offsets[:-1].copy()
    for topic in range(topic_offsets.size - 1):
        for place in range(topic_offsets[topic], topic_offsets[topic + 1]):
            node_topics[next_place[topic_nodes[place]]] = topic
            next_place[topic_nodes[place]] += 1
    return nodes, node_offsets, node_topics, topic_nodes, degrees


@compiled(
    f"Tuple(({POOL}, {POOL}, int64[::1], {POOL}, int64[::1], {POOL}, {POOL}, {POOL}, int64))"
    f"({GRAPH}, {SCRATCH}, {POOL}, {POOL}, {POOL}, boolean, int64, int64)"
)
def split_instance(
    graph: Graph,
    scratch: Scratch,
    former: Codes,
    helpers: Codes,
    lost_topics: Codes,
    everyone: bool,
    components: int,
    max_degree: int,
) -> tuple[Codes, Codes, Int64s, Codes, Int64s, Codes, Codes, Codes, int]:
    """The shadow set of a loss, and what the greedy engine needs to connect the topics that it split.

    (Chen, Jacobsen, Vitenberg, Algs. 4 and 7.) The lost nodes are gone from the rows already. `former`: nodes
    linked to a lost one; `helpers`: backups; S is their union, `everyone` makes it all nodes. `lost_topics` ascend.
    The maximum degree is that of S (OF_SHADOW), or that given. Every piece of G_t holds a former neighbour, so S
    meets every piece, and once the members of S are connected in t, so is t, whatever `components` says: HALO and
    LITERAL see finer pieces than there are and may ask for links that EXACT does not. HALO_NEAR connects only what it
    sees around former neighbours, which is enough for the same reason.

    Returns (shadow, nodes, node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, max_degree);
    shadow and nodes are slots in label order, the instance's node codes are places in `nodes`. Topics that did not
    split and nodes that want none of the others are left out: they cannot contribute.
    """
    member_spans, link_spans, order = graph[2], graph[4], graph[7]
    clock, marks, _, _, _ = scratch
    shadow = _union(former, helpers, order, clock, marks)
    seeds_from = _union(former, former[:0], order, clock, marks)
    if max_degree == OF_SHADOW:
        for slot in shadow:
            max_degree = max(max_degree, link_spans[slot, 1])
    most = shadow.size
    if everyone:
        most = 0
        for topic in lost_topics:
            most = max(most, member_spans[topic, 1])
    parent = np.empty(max(most, seeds_from.size), np.int32)
    ends = np.empty(3 * seeds_from.size, np.int32)
    seeds_room = np.empty(seeds_from.size, np.int32)
    members = np.empty(max(64, 4 * most), np.int32)
    labels = np.empty(members.size, np.int32)
    offsets = np.zeros(lost_topics.size + 1, np.int64)
    split = 0
    for topic in lost_topics:
        seeds = seeds_room[: keep_wanting(graph[0], graph[1], graph[6], seeds_from, topic, seeds_room)]
        if seeds.size == 0 or (seeds.size == 1 and components == EXACT):
            continue
        begin = offsets[split]
        if begin + most > members.size:
            members = np.concatenate((members, np.empty(members.size + most, np.int32)))
            labels = np.concatenate((labels, np.empty(labels.size + most, np.int32)))
        inside = _label(graph, scratch, topic, seeds, shadow, everyone, components, parent, ends, labels[begin:])
        if inside.size > 0:
            members[begin : begin + inside.size] = inside
            split += 1
            offsets[split] = begin + inside.size
    used = offsets[split]
    offsets = offsets[: split + 1].copy()
    labels = labels[:used].copy()
    nodes, node_offsets, node_topics, topic_nodes, degrees = _instance_of(graph, scratch, offsets, members[:used])
    return shadow, nodes, node_offsets, node_topics, offsets, topic_nodes, labels, degrees, max_degree


@compiled()
def _best_partner(graph: Graph, partners: Codes, counts: Codes, degree: int, most: int, rho: float) -> int:
    """The partner the Low-ODA rule links the newcomer to, -1 where none contributes."""
    link_spans, order = graph[4], graph[7]
    best, friendly = np.int32(0), np.int32(0)
    best_slot = friendly_slot = -1
    for slot in partners:
        count = counts[slot]
        if count == 0 or count < friendly:
            continue
        if count > best or (count == best and order[slot] < order[best_slot]):
            best, best_slot = count, slot
        if degree < most and link_spans[slot, 1] < most and (count > friendly or order[slot] < order[friendly_slot]):
            friendly, friendly_slot = count, slot
    return friendly_slot if prefers_first(friendly, best, rho) else best_slot


@compiled()
def _missing_topics(graph: Graph, node: int, topics: Codes, room: Codes) -> Codes:
    """Those of the topics that other nodes want and none of the node's neighbours does."""
    topic_spans, topic_pool, member_spans, _, link_spans, link_pool, bits, _ = graph
    missing = np.empty(topics.size, np.int32)
    found = 0
    neighbours = link_pool[link_spans[node, 0] : link_spans[node, 0] + link_spans[node, 1]]
    for topic in topics:
        if member_spans[topic, 1] > 1 and keep_wanting(topic_spans, topic_pool, bits, neighbours, topic, room) == 0:
            missing[found] = topic
            found += 1
    return missing[:found]


@compiled()
def _wanting(graph: Graph, topic: int, helpers: Codes, everyone: bool, room: Codes) -> Codes:
    """The subscribers of the topic among the helpers, or all."""
    topic_spans, topic_pool, member_spans, member_pool, _, _, bits, _ = graph
    if everyone:
        return member_pool[member_spans[topic, 0] : member_spans[topic, 0] + member_spans[topic, 1]]
    return room[: keep_wanting(topic_spans, topic_pool, bits, helpers, topic, room)]


@compiled(f"int32[:,::1]({GRAPH}, {SCRATCH}, {POOL}, int64, {POOL}, {POOL}, boolean, int64, float64)")
def repair_gain(
    graph: Graph,
    scratch: Scratch,
    counts: Codes,
    node: int,
    helpers: Codes,
    topics: Codes,
    everyone: bool,
    max_degree: int,
    rho: float,
) -> npt.NDArray[np.int32]:
    """Links from a node to others that bring it into each of the topics (Chen, Jacobsen, Vitenberg, Algs. 3 and 10).

    All others are connected in each topic, so the engine's components are the node and the rest, and contributions
    are plain counts of topics still missing: the greedy rule needs no instance here. Partners are `helpers`, or
    `everyone`; `max_degree` as in `split_instance`, S being the node and the helpers, or a lower one: then all that
    have as many links are spared. Links as (node, partner) in the order chosen.
    """
    topic_spans, topic_pool, link_spans = graph[0], graph[1], graph[4]
    topic_places = scratch[4]
    room = np.empty(max(helpers.size, link_spans[node, 1]), np.int32)
    missing = _missing_topics(graph, node, topics, room)
    if max_degree == OF_SHADOW:
        max_degree = link_spans[node, 1]
        for slot in helpers:
            max_degree = max(max_degree, link_spans[slot, 1])
    partners = np.empty(counts.size if everyone else helpers.size, np.int32)
    found = 0
    for topic in missing:
        topic_places[topic] = 0
        for slot in _wanting(graph, topic, helpers, everyone, room):
            if counts[slot] == 0 and slot != node:
                partners[found] = slot
                found += 1
            counts[slot] += 1
    counts[node] = 0
    partners = partners[:found]
    links = np.empty((missing.size, 2), np.int32)
    chosen = 0
    degree = link_spans[node, 1]
    while True:
        partner = _best_partner(graph, partners, counts, degree, max_degree, rho)
        if partner < 0:
            break
        links[chosen, 0] = node
        links[chosen, 1] = partner
        chosen += 1
        degree += 1
        if degree > max_degree or link_spans[partner, 1] + 1 > max_degree:
            max_degree += 1
        for place in range(topic_spans[partner, 0], topic_spans[partner, 0] + topic_spans[partner, 1]):
            topic = topic_pool[place]
            if topic_places[topic] >= 0:
                topic_places[topic] = -1
                for slot in _wanting(graph, topic, helpers, everyone, room):
                    counts[slot] -= 1
    for topic in missing:
        topic_places[topic] = -1
    counts[node] = 0
    for slot in partners:
        counts[slot] = 0
    return links[:chosen].copy()
