"""Rows of candidate links where pairs have rules: some are no candidates, the others stand in groups by cost.

A row of `greedy_rows` for each node and group. A stream through the topics of a node counts the pairs of one group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.greedy_components import Components, Places, Whole, borrowing, first_after
from omen.kernels.greedy_rows import SATURATED, UNLIMITED, Rows, befriend, next_row, rows_of, start_levels
from omen.kernels.greedy_streams import _compare, _draw_all, _draw_touched, _scatter, _scatter_outside

BARRED = -2  # the group of a pair that is no candidate, as in `engine`
_BY_ZONE = -1  # a pair without a rule of its own has the group of its zones
_MOST_KEPT = 256  # candidates of a node over all groups; each group keeps some
_DRAWN_TOGETHER = 4  # with more groups than these a stream draws the candidates of one alone

Tables = npt.NDArray[np.int32]


class PairRules(NamedTuple):
    """The group of every pair: of its own where it has one, else that of the zones of its ends."""

    zones: Places  # of each node
    zone_groups: Tables  # of each two zones
    offsets: npt.NDArray[np.int64]  # of each node u: its pairs (u, v), v > u, with a group of their own
    nodes: Places  # v, ascending
    groups: Places  # and the group, or BARRED


class Groups(NamedTuple):
    """What `Rows` has of bounds and candidates, once for each group."""

    rules: PairRules
    common: Rows  # lends all groups its degrees, caps and scratch
    bound: Tables
    block_bound: Tables
    level: npt.NDArray[np.int64]
    friendly_bound: Tables
    friendly_block_bound: Tables
    friendly_level: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int32]
    kept: Tables
    limit: Tables
    threshold: Tables
    tied_to: Tables
    by_zone: npt.NDArray[np.int8]  # the group that each node has by its zone, for each zone
    any_own: bool  # whether a pair has a group of its own that is not BARRED
    special: Places  # scratch, by node, _BY_ZONE between uses
    picked: Places  # scratch: the nodes touched that are in a group
    grouped: Places  # scratch: the group of each node touched
    highest: Places  # scratch: the highest count of each group


@compiled()
def groups_of(
    components: Components,
    rules: PairRules,
    degrees: npt.NDArray[np.int32],
    caps: npt.NDArray[np.int32],
    least: int,
    cache_length: int,
) -> Groups:
    """Groups that know no more than how many topics each node shares with any node beyond it."""
    nodes = degrees.size
    count = 1
    for one in range(rules.zone_groups.shape[0]):
        for other in range(rules.zone_groups.shape[1]):
            count = max(count, rules.zone_groups[one, other] + 1)
    for k in range(rules.groups.size):
        count = max(count, rules.groups[k] + 1)
    length = max(1, min(cache_length, nodes, max(8, _MOST_KEPT // count)))
    rows = rows_of(components, degrees, caps, least, 1)
    by_zone = np.empty((rules.zone_groups.shape[0], nodes), np.int8)
    for zone in range(by_zone.shape[0]):
        for v in range(nodes):
            by_zone[zone, v] = rules.zone_groups[zone, rules.zones[v]]
    any_own = False
    for k in range(rules.groups.size):
        any_own = any_own or rules.groups[k] >= 0
    blocks = rows.block_bound.size
    shape = (count, nodes)
    groups = Groups(
        rules,
        rows,
        np.zeros(shape, np.int32),
        np.zeros((count, blocks), np.int32),
        np.zeros((count, 2), np.int64),
        np.zeros(shape, np.int32),
        np.zeros((count, blocks), np.int32),
        np.zeros((count, 2), np.int64),
        np.empty((count, nodes, length), np.int32),
        np.empty((count, nodes, length), np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        by_zone,
        any_own,
        np.full(nodes, _BY_ZONE, np.int32),
        np.empty(nodes + 1, np.int32),
        np.empty(nodes + 1, np.int32),
        np.empty(count, np.int32),
    )
    for g in range(count):
        for u in range(nodes):
            groups.bound[g, u] = rows.bound[u]
        start_levels(groups.bound[g], groups.block_bound[g], groups.level[g])
    return groups


@borrowing
def rows_in(groups: Groups, g: Whole) -> Rows:
    """The rows of one group."""
    common = groups.common
    return Rows(
        common.degrees,
        common.caps,
        common.least,
        groups.bound[g],
        groups.block_bound[g],
        groups.level[g],
        groups.friendly_bound[g],
        groups.friendly_block_bound[g],
        groups.friendly_level[g],
        groups.candidates[g],
        groups.weights[g],
        groups.kept[g],
        groups.limit[g],
        groups.threshold[g],
        groups.tied_to[g],
        common.best,
        common.counts,
        common.tally,
        groups.picked,
        common.drawn,
        common.drawn_weight,
        common.histogram,
        common.mine,
    )


@borrowing
def next_in(groups: Groups, g: Whole, friendly: bool, least: Whole) -> np.int64:
    """The next row of a group, as `next_row`."""
    if friendly:
        return next_row(groups.friendly_bound[g], groups.friendly_block_bound[g], groups.friendly_level[g], least)
    return next_row(groups.bound[g], groups.block_bound[g], groups.level[g], least)


@borrowing
def befriend_all(groups: Groups, max_degree: Whole) -> None:
    """The maximum degree has risen, in every group."""
    for g in range(groups.bound.shape[0]):
        befriend(rows_in(groups, g), max_degree)


@borrowing
def raise_ends(groups: Groups, u: Whole, v: Whole, max_degree: Whole) -> np.int64:
    """The link (u, v) has been added. The maximum degree after it."""
    degrees, caps = groups.common.degrees, groups.common.caps
    highest = np.int64(max_degree)
    for end in (u, v):
        degrees[end] += 1
        highest = max(highest, np.int64(degrees[end]))
        full = caps.size > 0 and degrees[end] >= caps[end]
        for g in range(groups.bound.shape[0]):
            if full or degrees[end] == max_degree:
                groups.friendly_bound[g, end] = 0
            if full:
                groups.bound[g, end] = 0
        if full:
            degrees[end] = SATURATED
    if highest > max_degree:
        befriend_all(groups, highest)
    return highest


@borrowing
def group_of_pair(rules: PairRules, u: Whole, v: Whole) -> np.int32:
    """The group of the pair (u, v), u < v; BARRED where it is no candidate."""
    low, high = rules.offsets[u], rules.offsets[u + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if rules.nodes[middle] < v:
            low = middle + 1
        else:
            high = middle
    if low < end and rules.nodes[low] == v:
        return np.int32(rules.groups[low])
    return np.int32(rules.zone_groups[rules.zones[u], rules.zones[v]])


@borrowing
def stream_group(components: Components, groups: Groups, g: Whole, u: Whole, limit: Whole) -> None:
    """Count row u anew and keep its best candidates of a group; `best` is then as after `stream_row`.

    The bounds of the other groups are lowered too. Where they are few, those whose candidates left some pairs out get
    new ones from the same counts; what the others keep stays true, since contributions only fall.
    """
    rows, highest = rows_in(groups, g), groups.highest
    for h in range(highest.size):
        highest[h] = 0
    any_dense, reached = _count(components, groups.common, u)
    if any_dense:
        _mask(groups, g, u)
        _draw_all(rows, u, limit)
        highest[g] = rows.best[2]
    else:
        _draw_groups(groups, g, u, np.int64(limit), reached)
        least = np.int32(reached > 0)  # `_sift` leaves out what contributes 1: there may be such pairs in any group
        rows.best[1] = max(rows.best[1], np.int64(least))
        highest[g] = rows.best[2]
        for h in range(highest.size):
            highest[h] = max(highest[h], least)
    for h in range(highest.size):
        groups.bound[h, u] = min(groups.bound[h, u], highest[h])
        groups.friendly_bound[h, u] = min(groups.friendly_bound[h, u], highest[h])


@borrowing
def _count(components: Components, rows: Rows, u: Whole) -> tuple[bool, np.int64]:
    """Count what each pair (u, v), v > u, contributes now.

    Whether dense topics are among those counted: counts and tally then hold the result, of any v. Otherwise so many
    nodes as returned are listed as touched.
    """
    any_dense, reached = False, np.int64(0)
    members, labels, offsets = components.members, components.label, components.topic_offsets
    for i in range(components.node_offsets[u], components.node_offsets[u + 1]):
        t, mine, place = components.node_topics[i], components.own[i], components.place[i]
        dense, few = components.dense_row[t], mine == components.giant[t]
        outside = components.rest[offsets[t] : offsets[t] + components.rest_count[t]]
        if dense != -1 and not (few and outside.size * components.dense_divisor <= rows.counts.size):
            any_dense = True
            if dense < 0:
                _compare(rows.counts[u + 1 :], components.wide[-2 - dense, u + 1 :], mine)
            else:
                _compare(rows.tally[u + 1 :], components.narrow[dense, u + 1 :], np.int16(mine - offsets[t]))
        elif few:
            later = outside[first_after(outside, place) :]
            reached = _scatter_outside(rows.counts, rows.touched, reached, later, members, labels, mine)
        else:
            end = offsets[t + np.uint32(1)]
            after = members[place + 1 : end]
            reached = _scatter(rows.counts, rows.touched, reached, after, labels[place + 1 : end], mine)
    return any_dense, reached


@borrowing
def _mask(groups: Groups, g: Whole, u: Whole) -> None:
    """Add the tally to the counts, and leave those of the group alone; note the highest count of each other group.

    A node that is special counts for its zone as well there: the bound of a group may be too high, never too low.
    """
    rules, picked, highest = groups.rules, groups.picked, groups.highest
    counts, tally = groups.common.counts[u + 1 :], groups.common.tally[u + 1 :]
    degrees, by_zone = groups.common.degrees[u + 1 :], groups.by_zone[rules.zones[u], u + 1 :]
    for k in range(counts.size):
        weight = np.int32(counts[k] + tally[k])
        counts[k] = weight if degrees[k] != SATURATED else np.int32(0)
        tally[k] = 0
    for h in range(highest.size):
        if h != g:
            most = np.int32(0)
            for k in range(counts.size):
                weight = counts[k] if by_zone[k] == h else np.int32(0)
                most = weight if weight > most else most
            highest[h] = most
    begin, end = rules.offsets[u], rules.offsets[u + 1]
    for k in range(begin, end):
        weight = counts[rules.nodes[k] - u - 1]
        picked[k - begin] = weight if rules.groups[k] == g else np.int32(0)
        if rules.groups[k] >= 0:
            highest[rules.groups[k]] = max(highest[rules.groups[k]], weight)
    if highest.size > 1:
        for k in range(counts.size):
            counts[k] = counts[k] if by_zone[k] == g else np.int32(0)
    for k in range(begin, end):
        counts[rules.nodes[k] - u - 1] = picked[k - begin]


@borrowing
def _sift(groups: Groups, u: Whole, reached: np.int64) -> np.int64:
    """Leave those candidates alone among the nodes touched that contribute 2 or more, so many as returned.

    `grouped` is then the group of each, and `highest` the highest count of each group. Most nodes touched are counted
    once, and a contribution of 1 is searched directly. What is left is few, and so are the tests that a processor
    cannot foresee.
    """
    counts, degrees, special = groups.common.counts, groups.common.degrees, groups.special
    touched, grouped, highest = groups.common.touched, groups.grouped, groups.highest
    by_zone = groups.by_zone[groups.rules.zones[u]]
    _mark_own(groups, u)
    several = np.int64(0)
    for k in range(reached):
        v = np.uint32(touched[k])
        weight = counts[v]
        more = weight > 1
        counts[v] = weight if more else np.int32(0)
        touched[np.uint64(several)] = v
        several += np.int64(more)
    count = np.int64(0)
    for k in range(several):
        v = np.uint32(touched[k])
        group = special[v] if special[v] != _BY_ZONE else np.int32(by_zone[v])
        weight = counts[v] if (degrees[v] != SATURATED) & (group >= 0) else np.int32(0)
        place = np.uint32(max(group, np.int32(0)))
        highest[place] = max(highest[place], weight)
        counts[v] = weight
        touched[np.uint64(count)] = v
        grouped[np.uint64(count)] = group
        count += np.int64(weight > 0)
    if groups.any_own:
        for k in range(groups.rules.offsets[u], groups.rules.offsets[u + 1]):
            special[groups.rules.nodes[k]] = _BY_ZONE
    return count


@borrowing
def _mark_own(groups: Groups, u: Whole) -> None:
    """Mark the pairs of row u that have a group of their own; where all of them are barred, count none of them."""
    rules, counts = groups.rules, groups.common.counts
    begin, end = rules.offsets[u], rules.offsets[u + 1]
    nodes, own = rules.nodes[begin:end], rules.groups[begin:end]
    if not groups.any_own:
        for k in range(nodes.size):
            counts[np.uint32(nodes[k])] = 0
        return
    for k in range(nodes.size):
        groups.special[np.uint32(nodes[k])] = own[k]


@borrowing
def _pick(groups: Groups, g: Whole, several: np.int64) -> np.int64:
    """List the nodes of a group among those sifted, so many as returned."""
    touched, grouped, picked = groups.common.touched, groups.grouped, groups.picked
    count = np.int64(0)
    for k in range(several):
        picked[np.uint64(count)] = touched[k]
        count += np.int64(grouped[k] == g)
    return count


@borrowing
def _draw_groups(groups: Groups, g: Whole, u: Whole, limit: Whole, reached: np.int64) -> None:
    """Draw the candidates of a group from the nodes touched, after those of other groups that may gain by it."""
    counts, highest, touched = groups.common.counts, groups.highest, groups.common.touched
    several = _sift(groups, u, reached)
    for step in range(1, highest.size + 1):
        h = (np.int64(g) + step) % highest.size
        if h == g or (highest.size <= _DRAWN_TOGETHER and highest[h] > 1 and groups.threshold[h, u] != 1):
            _draw_touched(rows_in(groups, h), u, limit if h == g else np.int64(UNLIMITED), _pick(groups, h, several))
    for k in range(several):
        counts[np.uint32(touched[k])] = 0
