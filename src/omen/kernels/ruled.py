"""The greedy engine for fleets with rules: caps, pairs that are no candidates, and groups of pairs by cost."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Places, Whole, borrowing, components_of, first_after, link
from omen.kernels.greedy_rows import SATURATED, UNLIMITED
from omen.kernels.greedy_search import _search_candidates
from omen.kernels.greedy_small import grown
from omen.kernels.ruled_rows import (
    Groups,
    PairRules,
    befriend_all,
    group_of_pair,
    groups_of,
    next_in,
    raise_ends,
    rows_in,
    stream_group,
)

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@borrowing
def _search_group(
    components: Components, groups: Groups, bound: Places, g: Whole, u: Whole, level: Whole, limit: Whole
) -> np.int64:
    """As `greedy_search.search_row`, among the pairs of one group."""
    rows = rows_in(groups, g)
    threshold = rows.threshold[u]
    if level >= threshold and rows.limit[u] >= limit:
        v, highest = _search_candidates(components, rows, u, level, limit)
        if level > threshold or 0 <= v <= rows.tied_to[u]:
            bound[u] = max(highest, threshold) if v < 0 else bound[u]
            return v
    if level == 1:
        v = _search_apart(components, groups, g, u, limit)
        bound[u] = 0 if v < 0 else bound[u]
        return v
    stream_group(components, groups, g, u, limit)
    bound[u] = groups.common.best[1]
    return groups.common.best[0] if groups.common.best[1] == level else np.int64(-1)


@borrowing
def _search_apart(components: Components, groups: Groups, g: Whole, u: Whole, limit: Whole) -> np.int64:
    """The lowest v of the group below the degree limit that is apart from u in any topic.

    Where there is none whatever its degree, the row is done with: it need not be searched for every rise of the limit.
    """
    members, labels, topic_offsets = components.members, components.label, components.topic_offsets
    degrees, by_zone = groups.common.degrees, groups.by_zone[groups.rules.zones[u]]
    any_own, none = groups.any_own, np.uint32(degrees.size)
    best = none
    any_apart = False
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t = components.node_topics[i]
        mine = components.own[i]
        if mine == components.giant[t]:
            outside = components.rest[topic_offsets[t] : topic_offsets[t] + components.rest_count[t]]
            for k in range(first_after(outside, components.place[i]), outside.size):
                q = np.uint32(outside[k])
                v = members[q]
                if v >= best:
                    break
                if labels[q] != mine and (any_own or by_zone[v] == g):
                    if _is_candidate(groups, u, v, g, limit):
                        best = v
                        break
                    any_apart = any_apart or _is_candidate(groups, u, v, g, SATURATED)
        else:
            for place in range(components.place[i] + 1, topic_offsets[t + np.uint32(1)]):
                v = members[place]
                if v >= best:
                    break
                if labels[place] != mine and (any_own or by_zone[v] == g):
                    if _is_candidate(groups, u, v, g, limit):
                        best = v
                        break
                    any_apart = any_apart or _is_candidate(groups, u, v, g, SATURATED)
    if best == none and not any_apart:
        groups.bound[g, u] = 0
        groups.friendly_bound[g, u] = 0
    return np.int64(-1) if best == none else np.int64(best)


@borrowing
def _is_candidate(groups: Groups, u: Whole, v: Whole, g: Whole, limit: Whole) -> bool:
    """Whether a link to this node is of the group, and its degree below the limit."""
    if groups.common.degrees[v] >= limit:
        return False
    return bool(group_of_pair(groups.rules, np.int64(u), np.int64(v)) == g)


@borrowing
def _least_friendly(best: Whole, rho: float, least: Whole) -> np.int64:
    """The smallest contribution with which a degree-friendly link is preferred to the best: w * rho >= best."""
    wanted = max(np.int64(math.ceil(best / rho)), np.int64(least))
    while wanted > least and (wanted - 1) * rho >= best:
        wanted -= 1
    while not wanted * rho >= best:
        wanted += 1
    return wanted


@borrowing
def _find_in_group(
    components: Components, groups: Groups, g: Whole, max_degree: Whole, rho: float, to_beat: float
) -> tuple[np.int64, np.int64, np.int64]:
    """The link that Low-ODA (lines 8-14) picks in a group and its contribution; -1 where that is not above `to_beat`.

    Three searches at most. Degree-friendly pairs above `to_beat`; then all pairs above that, or above rho times what
    was found; then, if only the second found one, whether a degree-friendly pair below would have been preferred to it.
    """
    none = np.int64(-1)
    u = v = weight = none
    friendly = rho >= 1
    last = False
    floor = np.int64(math.floor(to_beat)) + 1
    while True:  # one call of _search_group for all searches, so that it is compiled into here but once
        row = next_in(groups, g, friendly, floor)
        if row < 0:
            if last or not friendly:
                return u, v, weight
            friendly = False
            continue
        level = groups.friendly_level[g, 0] if friendly else groups.level[g, 0]
        limit = np.int64(max_degree) if friendly else np.int64(UNLIMITED)
        bound = groups.friendly_bound[g] if friendly else groups.bound[g]
        other = _search_group(components, groups, bound, g, row, level, limit)
        if other < 0:
            continue
        if last:
            return none, none, none
        if friendly:
            friendly = False
            u, v, weight = row, other, np.int64(level)
            if weight * rho >= UNLIMITED:
                return u, v, weight
            floor = np.int64(math.floor(weight * rho)) + 1
        elif weight >= 0 or rho < 1:
            return row, other, np.int64(level)
        else:
            u, v, weight = row, other, np.int64(level)
            friendly = last = True
            floor = _least_friendly(weight, rho, groups.common.least)


@borrowing
def _find_link(
    components: Components, groups: Groups, max_degree: Whole, rho: float, sigma: float
) -> tuple[np.int64, np.int64]:
    """From cheap to dear: the pick of a group replaces the present one if it contributes over sigma times as much."""
    u = v = np.int64(-1)
    to_beat = groups.common.least - 1.0
    for g in range(groups.bound.shape[0]):
        if groups.level[g, 0] > to_beat:
            found_u, found_v, weight = _find_in_group(components, groups, g, max_degree, rho, to_beat)
            if found_u >= 0:
                u, v = found_u, found_v
                to_beat = weight * sigma
    return u, v


@borrowing
def _add_links(
    components: Components, groups: Groups, links: Codes, start: Whole, max_degree: Whole, tuning: tuple[float, float]
) -> tuple[np.int64, np.int64, bool]:
    """Choose links until none is needed or the room is full: how many there are, the maximum degree, whether done."""
    highest = np.int64(max_degree)
    for place in range(start, links.shape[0]):
        u, v = _find_link(components, groups, highest, tuning[0], tuning[1])
        if u < 0:
            return np.int64(place), highest, True
        links[place, 0], links[place, 1] = u, v
        link(components, u, v)
        highest = raise_ends(groups, u, v, highest)
    return np.int64(links.shape[0]), highest, False


@compiled(
    "int32[:,::1](int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], "
    "int32[::1], int32[:,::1], int64[::1], int32[::1], int32[::1], int64, int64, float64, float64, int64, int64)"
)
def ruled_links(
    node_offsets: Offsets,
    node_topics: Codes,
    topic_offsets: Offsets,
    topic_nodes: Codes,
    labels: Codes,
    degrees: Codes,
    caps: Codes,
    zones: Codes,
    zone_groups: npt.NDArray[np.int32],
    pair_offsets: Offsets,
    pair_nodes: Codes,
    pair_groups: Codes,
    max_degree: int,
    least: int,
    rho: float,
    sigma: float,
    cache_length: int,
    dense_divisor: int,
) -> Codes:
    """`greedy.greedy_links` under rules: rows (u, v), u < v, in the order chosen.

    Pairs are in groups 0, 1, ..., from cheap to dear (see `ruled_rows.PairRules`); barred ones are no candidates. Each
    group has the pick that Low-ODA would make if it held all candidates there are. Beginning with the cheapest, a
    dearer pick replaces the present one only if it contributes over `sigma` times as much. With one group, no barred
    pair and no caps this is `greedy_links`. Topics that the candidates cannot connect stay split.

    Cost: that of `greedy_links`, with bounds and candidates for each group of a row.
    """
    rules = PairRules(zones, zone_groups, pair_offsets, pair_nodes, pair_groups)
    highest = np.int64(max_degree)
    for u in range(degrees.size):
        highest = max(highest, np.int64(degrees[u]))
    components = components_of(node_offsets, node_topics, topic_offsets, topic_nodes, labels, dense_divisor)
    groups = groups_of(components, rules, degrees, caps, least, cache_length)
    if rho >= 1:
        befriend_all(groups, highest)
    links = np.empty((degrees.size, 2), np.int32)
    chosen, highest, done = _add_links(components, groups, links, 0, highest, (rho, sigma))
    while not done:
        links = grown(links)
        chosen, highest, done = _add_links(components, groups, links, chosen, highest, (rho, sigma))
    return links[:chosen].copy()
