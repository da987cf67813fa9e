"""SpiderCast's choices, straight from Figs. 3 and 5: sets and dicts, never optimised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Interests = Mapping[int, frozenset[int] | set[int]]


def calc_k_uncovered(self_interest: Iterable[int], neighbours: Interests, times: int) -> int:
    """Fig. 3 lines 1-7."""
    uncovered = 0
    for topic in self_interest:
        cover = {node for node, interest in neighbours.items() if topic in interest}
        if len(cover) < times:
            uncovered += 1
    return uncovered


def best_candidates(view: Interests, excluded: Iterable[int], uncovered: Iterable[int]) -> set[int]:
    """Fig. 5 line 8: among whom the greedy rule draws. Who covers nothing is no candidate."""
    gains = {node: len(set(view[node]) & set(uncovered)) for node in view.keys() - set(excluded)}
    best = max(gains.values(), default=0)
    return {node for node, gain in gains.items() if gain == best and gain > 0}


def random_candidates(view: Interests, excluded: Iterable[int], uncovered: Iterable[int]) -> set[int]:
    """Fig. 5 line 17: among whom the random rule draws."""
    return {node for node in view.keys() - set(excluded) if set(view[node]) & set(uncovered)}


def disconnect_candidates(
    self_interest: Iterable[int], neighbours: Interests, high: Iterable[int], times: int
) -> set[int]:
    """Fig. 3 lines 8-22: among whom DISCONNECTCANDIDATE draws; `high` are those that have reached their target."""
    topics = list(self_interest)
    missed = {
        node: calc_k_uncovered(topics, {other: neighbours[other] for other in neighbours.keys() - {node}}, times)
        for node in high
    }
    fewest = min(missed.values(), default=0)
    return {node for node, number in missed.items() if number == fewest}
