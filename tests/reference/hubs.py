"""CD-ODA, CD-ODA-I, CD-ODA-II (low-oda, section VI): sets and dicts, never optimised."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from reference.greedy import Link, Topics

Score = Callable[[int, Topics], Fraction]


def neighbours_of(node: int, remaining: Topics) -> set[int]:
    """Who shares a topic that is still in the set of topics."""
    return {other for other in remaining if other != node and remaining[other] & remaining[node]}


def neighbours(node: int, remaining: Topics) -> Fraction:
    """CD-ODA: n_u."""
    return Fraction(len(neighbours_of(node, remaining)))


def weighted_neighbours(node: int, remaining: Topics) -> Fraction:
    """CD-ODA-I: w_u."""
    return Fraction(sum(len(remaining[other] & remaining[node]) for other in remaining if other != node))


def density(node: int, remaining: Topics) -> Fraction:
    """CD-ODA-II: d_u = w_u / n_u; a node without neighbours is no hub."""
    if not neighbours_of(node, remaining):
        return Fraction(0)
    return weighted_neighbours(node, remaining) / neighbours(node, remaining)


def stars(topics_of: Topics, score: Score) -> list[Link]:
    """The links, hub after hub, each hub's by ascending neighbour. Of equal scores, the lowest node."""
    remaining = {node: set(topics) for node, topics in topics_of.items()}
    links: list[Link] = []
    while remaining:
        scores = {node: score(node, remaining) for node in sorted(remaining)}
        hub = max(scores, key=lambda node: (scores[node], -node))
        if scores[hub] == 0:
            break
        links += [(min(hub, other), max(hub, other)) for other in sorted(neighbours_of(hub, remaining))]
        covered = set(remaining[hub])
        for topics in remaining.values():
            topics -= covered
    return links
