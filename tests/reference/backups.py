"""Backup sets by sets and dicts: shadows Algs. 11 and 12, and the rules of OMen 4.2; never optimised."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from omen.kernels.counter_random import mix


@dataclass
class Node:
    """NODESTRUCT (shadows, Struct 5)."""

    topics: set[int]
    neighbours: set[int] = field(default_factory=set)
    backups: set[int] = field(default_factory=set)
    primaries: set[int] = field(default_factory=set)


Nodes = dict[int, Node]


def weight_of(node: Node) -> int:
    return len(node.neighbours) + len(node.primaries)


def draw_topic(rest: set[int], seed: int, label: int, build: int, cover: int) -> int:
    """An uncovered topic at random: the one with the lowest word of (seed, build, cover, node, topic)."""
    key = mix(np.uint64(seed), np.uint64(build), np.uint64(cover))
    return min(rest, key=lambda topic: int(mix(np.uint64(key), np.uint64(label), np.uint64(topic))) >> 1)


def forget_old_backups(nodes: Nodes, v: int) -> None:
    """Line 1 of Algs. 11 and 12, with primaries kept in step."""
    for w in nodes[v].backups:
        nodes[w].primaries.discard(v)
    nodes[v].backups = set()


def choose(nodes: Nodes, v: int, w: int) -> None:
    nodes[v].backups.add(w)
    nodes[w].primaries.add(v)


def build_backups_greedily_at(nodes: Nodes, v: int, covers: int, by_weight: bool) -> None:
    """Alg. 11; `by_weight` False: OMen 4.2, the node that covers most uncovered topics."""
    forget_old_backups(nodes, v)
    for _ in range(covers):
        rest = set(nodes[v].topics)
        candidates = set(nodes) - {v} - nodes[v].backups
        while rest and candidates:
            candidates = {u for u in candidates if nodes[u].topics & rest}
            if not candidates:
                break
            if by_weight:
                w = min(candidates, key=lambda u: (Fraction(weight_of(nodes[u]), len(nodes[u].topics & rest)), u))
            else:
                w = min(candidates, key=lambda u: (-len(nodes[u].topics & rest), u))
            choose(nodes, v, w)
            candidates.discard(w)
            rest -= nodes[w].topics


def build_backups_by_pd_at(nodes: Nodes, v: int, covers: int, by_weight: bool, seed: int, build: int) -> None:
    """Alg. 12; `by_weight` False: OMen 4.2, of the subscribers of the drawn topic the one that covers most.

    Line 8 as we read it: nodes chosen before are out, nodes of weight zero stay. A topic without candidates is given
    up.
    """
    forget_old_backups(nodes, v)
    for cover in range(covers):
        rest = set(nodes[v].topics)
        weight = {u: weight_of(nodes[u]) for u in set(nodes) - {v} - nodes[v].backups}
        while rest:
            t = draw_topic(rest, seed, v, build, cover)
            candidates = {u for u in weight if t in nodes[u].topics and u not in nodes[v].backups}
            if not candidates:
                rest.discard(t)
                continue
            if by_weight:
                w = min(candidates, key=lambda u: (weight[u], u))
            else:
                w = min(candidates, key=lambda u: (-len(nodes[u].topics & rest), u))
            choose(nodes, v, w)
            rest -= nodes[w].topics
            least = weight[w]
            for u in candidates:
                weight[u] -= least


def build_backups_at(nodes: Nodes, v: int, rule: str, covers: int, seed: int, build: int) -> None:
    by_weight = rule.endswith("weight")
    if rule.startswith("greedy"):
        build_backups_greedily_at(nodes, v, covers, by_weight)
    else:
        build_backups_by_pd_at(nodes, v, covers, by_weight, seed, build)


def are_valid(nodes: Nodes, v: int, covers: int) -> bool:
    """Each backup shares a topic; each topic is covered `covers` times or by all its other subscribers."""
    mine = nodes[v]
    for t in mine.topics:
        others = {u for u in nodes if u != v and t in nodes[u].topics}
        if len(others & mine.backups) < min(covers, len(others)):
            return False
    return v not in mine.backups and all(nodes[u].topics & mine.topics for u in mine.backups)
