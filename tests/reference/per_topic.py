"""HararyPT (ktco, Alg. 2) and the rings: sets and lists, never optimised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from reference.greedy import Link, Topics


def harary(k: int, order: Sequence[int]) -> set[Link]:
    """H(k, n) on the nodes in this order; a clique where n <= k, a path where k = 1."""
    n = len(order)
    if n <= k:
        return {(min(pair), max(pair)) for pair in combinations(order, 2)}
    if k == 1:
        return {(min(pair), max(pair)) for pair in pairwise(order)}
    places = {(i, (i + step) % n) for i in range(n) for step in range(1, k // 2 + 1)}
    if k % 2 == 1 and n % 2 == 0:
        places |= {(i, i + n // 2) for i in range(n // 2)}
    if k % 2 == 1 and n % 2 == 1:
        places |= {(i, i + (n - 1) // 2) for i in range((n - 1) // 2 + 1)}
    return {(min(order[i], order[j]), max(order[i], order[j])) for i, j in places}


def per_topic(topics_of: Topics, k: int, order_of: Callable[[int, list[int]], list[int]]) -> set[Link]:
    """The union over all topics; `order_of(topic, subscribers)` says in what order a topic's subscribers stand."""
    links: set[Link] = set()
    for topic in set().union(*topics_of.values()):
        subscribers = sorted(node for node, topics in topics_of.items() if topic in topics)
        links |= harary(k, order_of(topic, subscribers))
    return links


def by_label(topic: int, subscribers: list[int]) -> list[int]:
    return subscribers
