"""Links that mend what a loss split, found in one call: labels, the instance of the nodes concerned, the greedy engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy import CACHE_LENGTH, DENSE_DIVISOR, NO_CENTRE, SMALL_NODES, greedy_links
from omen.kernels.greedy_small import prefers_first
from omen.kernels.pieces import EXACT, HALO, join_seen, root_of, search_pieces, sort_by_order
from omen.kernels.population import BITS, Bits, Codes, Int64s, wants
from omen.kernels.rows import POOL, SPANS, Pool, Spans

GRAPH = f"Tuple(({SPANS}, {POOL}, {SPANS}, {POOL}, {SPANS}, {POOL}, {BITS}, int64[::1]))"
SCRATCH = f"Tuple((int64[::1], int64[::1], {POOL}, {POOL}, {POOL}))"
OF_SHADOW = -1

Graph = tuple[Spans, Pool, Spans, Pool, Spans, Pool, Bits, Int64s]
Scratch = tuple[Int64s, Int64s, Codes, Codes, Codes]


@compiled()
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
    found = 0
    inside = np.empty(among.size, np.int32)
    for slot in among:
        if wants(bits, topic_spans, topic_pool, slot, topic):
            inside[found] = slot
            found += 1
    return inside[:found]


@compiled()
def _label(
    graph: Graph, scratch: Scratch, topic: int, seeds: Codes, inside: Codes, components: int, parent: Codes, labels: Codes
) -> int:
    """Fill `labels` for the nodes of `inside`, all of which want the topic; returns how many pieces it is in."""
    topic_spans, topic_pool, _, _, link_spans, link_pool, bits, _ = graph
    clock, marks, _, queue, _ = scratch
    if components != EXACT:
        pieces = join_seen(
            topic, inside, components == HALO, topic_spans, topic_pool, link_spans, link_pool, bits, clock, marks, parent
        )
        for item in range(inside.size):
            labels[item] = root_of(parent, item)
        return pieces
    pieces, rest = search_pieces(
        topic, seeds, topic_spans, topic_pool, link_spans, link_pool, bits, clock, marks, queue, parent
    )
    if pieces > 1:
        for item in range(inside.size):
            seed = marks[inside[item]] - clock[0]
            labels[item] = root_of(parent, seed) if seed >= 0 else rest
    clock[0] += seeds.size
    return pieces


@compiled()
def _greedy_among(
    graph: Graph,
    scratch: Scratch,
    topic_offsets: Int64s,
    members: Codes,
    labels: Codes,
    max_degree: int,
    rho: float,
) -> Codes:
    """Run the engine on the topics given by their members (slots in label order) and labels; links as slots."""
    _, _, _, _, link_spans, _, _, order = graph
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
    links = greedy_links(
        node_offsets,
        node_topics,
        topic_offsets,
        topic_nodes,
        labels,
        degrees,
        max_degree,
        rho,
        NO_CENTRE,
        CACHE_LENGTH,
        DENSE_DIVISOR,
        SMALL_NODES,
    )
    for place in range(links.shape[0]):
        links[place, 0] = nodes[links[place, 0]]
        links[place, 1] = nodes[links[place, 1]]
    return links


@compiled(
    f"Tuple((int32[:,::1], int32[::1]))({GRAPH}, {SCRATCH}, {POOL}, {POOL}, {POOL}, boolean, int64, int64, float64)"
)
def repair_losses(
    graph: Graph,
    scratch: Scratch,
    former: Codes,
    helpers: Codes,
    lost_topics: Codes,
    everyone: bool,
    components: int,
    max_degree: int,
    rho: float,
) -> tuple[npt.NDArray[np.int32], Codes]:
    """Links that connect the lost topics again, and the shadow set (Chen, Jacobsen, Vitenberg, Algs. 4 and 7).

    The lost nodes are gone from the rows already. `former`: who was linked to a lost node and wants a lost topic of it;
    `helpers`: backups; S is their union, `everyone` makes it all nodes. `lost_topics` ascend. The maximum degree is that of S
    (OF_SHADOW), or that given. Every piece of G_t holds a former neighbour, so S meets every piece, and once the members
    of S are connected in t, so is t, whatever `components` says; HALO and LITERAL see finer pieces than there are and may
    add links EXACT does not need. Links are pairs of slots in the order chosen, the lower label first.
    """
    _, _, member_spans, _, link_spans, _, _, order = graph
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
    room = max(64, 4 * most)
    members = np.empty(room, np.int32)
    labels = np.empty(room, np.int32)
    offsets = np.zeros(lost_topics.size + 1, np.int64)
    split = 0
    for topic in lost_topics:
        seeds = _subscribers_among(graph, topic, seeds_from, False)
        if seeds.size == 0 or (seeds.size == 1 and components == EXACT):
            continue
        begin = offsets[split]
        if begin + most > members.size:
            members = np.concatenate((members, np.empty(members.size + most, np.int32)))
            labels = np.concatenate((labels, np.empty(labels.size + most, np.int32)))
        inside = _subscribers_among(graph, topic, shadow, everyone)
        if _label(graph, scratch, topic, seeds, inside, components, parent, labels[begin:]) > 1:
            members[begin : begin + inside.size] = inside
            offsets[split + 1] = begin + inside.size
            split += 1
    if split == 0:
        return np.empty((0, 2), np.int32), shadow
    used = offsets[split]
    links = _greedy_among(
        graph, scratch, offsets[: split + 1], members[:used], labels[:used], max_degree, rho
    )
    return links, shadow


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
        if (
            degree < most
            and link_spans[slot, 1] < most
            and (count > friendly or order[slot] < order[friendly_slot])
        ):
            friendly, friendly_slot = count, slot
    return friendly_slot if prefers_first(friendly, best, rho) else best_slot


@compiled()
def _missing_topics(graph: Graph, node: int, topics: Codes) -> Codes:
    """Those of the topics that other nodes want and none of the node's neighbours does."""
    topic_spans, topic_pool, member_spans, _, link_spans, link_pool, bits, _ = graph
    missing = np.empty(topics.size, np.int32)
    found = 0
    start, length = link_spans[node, 0], link_spans[node, 1]
    for topic in topics:
        reached = member_spans[topic, 1] < 2
        for place in range(start, start + length):
            if reached:
                break
            reached = wants(bits, topic_spans, topic_pool, link_pool[place], topic)
        if not reached:
            missing[found] = topic
            found += 1
    return missing[:found]


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

    All others are connected in each topic, so the engine's components are the node and the rest, and contributions are
    plain counts of topics still missing: the greedy rule needs no instance here. Partners are `helpers`, or `everyone`;
    `max_degree` as in `repair_losses`, S being the node and the helpers. Links as (node, partner) in the order chosen.
    """
    topic_spans, topic_pool, member_spans, member_pool, link_spans, _, bits, _ = graph
    clock, marks, _, _, topic_places = scratch
    missing = _missing_topics(graph, node, topics)
    if max_degree == OF_SHADOW:
        max_degree = link_spans[node, 1]
        for slot in helpers:
            max_degree = max(max_degree, link_spans[slot, 1])
    room = helpers.size
    if everyone:
        room = 0
        for topic in missing:
            room += member_spans[topic, 1]
    partners = np.empty(min(room, marks.size), np.int32)
    found = 0
    for topic in missing:
        topic_places[topic] = 0
        if everyone:
            for place in range(member_spans[topic, 0], member_spans[topic, 0] + member_spans[topic, 1]):
                slot = member_pool[place]
                if slot != node:
                    if counts[slot] == 0:
                        partners[found] = slot
                        found += 1
                    counts[slot] += 1
        else:
            for slot in helpers:
                if wants(bits, topic_spans, topic_pool, slot, topic):
                    if counts[slot] == 0:
                        partners[found] = slot
                        found += 1
                    counts[slot] += 1
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
        max_degree = max(max_degree, degree, link_spans[partner, 1] + 1)
        for place in range(topic_spans[partner, 0], topic_spans[partner, 0] + topic_spans[partner, 1]):
            topic = topic_pool[place]
            if topic_places[topic] < 0:
                continue
            topic_places[topic] = -1
            if everyone:
                for seat in range(member_spans[topic, 0], member_spans[topic, 0] + member_spans[topic, 1]):
                    counts[member_pool[seat]] -= member_pool[seat] != node
            else:
                for slot in partners:
                    counts[slot] -= wants(bits, topic_spans, topic_pool, slot, topic)
    for topic in missing:
        topic_places[topic] = -1
    for slot in partners:
        counts[slot] = 0
    return links[:chosen].copy()
