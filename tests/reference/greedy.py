"""constructLowEdges (shadows, Alg. 2), which is Low-ODA (Alg. 1) when nothing is linked yet; sets and dicts, no tricks.

GM is rho = 0 (the degree never decides), MinMax-ODA is rho = infinity. Nodes and topics are ints; a link is (u, v),
u < v.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import inf

Link = tuple[int, int]
Topics = dict[int, set[int]]
Components = dict[int, dict[int, int]]


def all_pairs(nodes: Iterable[int]) -> set[Link]:
    """V x V without loops, each pair once."""
    return set(combinations(sorted(nodes), 2))


def pairs_with(centre: int, nodes: Iterable[int]) -> set[Link]:
    """The candidate links of a join: every pair that holds the centre."""
    return {(min(centre, node), max(centre, node)) for node in nodes if node != centre}


def topic_components(topics_of: Topics, links: Iterable[Link]) -> Components:
    """For each topic, the component of G_t every subscriber is in, named by its lowest node."""
    linked_with: dict[int, set[int]] = {node: set() for node in topics_of}
    for u, v in links:
        linked_with[u].add(v)
        linked_with[v].add(u)
    components: Components = {}
    for topic in {topic for topics in topics_of.values() for topic in topics}:
        subscribers = {node for node in topics_of if topic in topics_of[node]}
        component_of: dict[int, int] = {}
        for start in sorted(subscribers):
            if start in component_of:
                continue
            component_of[start] = start
            unseen = [start]
            while unseen:
                for other in linked_with[unseen.pop()] & subscribers:
                    if other not in component_of:
                        component_of[other] = start
                        unseen.append(other)
        components[topic] = component_of
    return components


def contribution(shared: set[int], components: Components, link: Link) -> int:
    """How many topic components the link would remove: one for each shared topic that has its ends apart."""
    u, v = link
    return sum(components[topic][u] != components[topic][v] for topic in shared)


@dataclass(frozen=True)
class Limits:
    """What a link must be to be a candidate: it contributes `least`, and takes neither end above its cap.

    Where one of its ends has the maximum degree, it contributes `raising`; where degrees never decide (rho below 1)
    that does not matter.
    """

    least: int = 1
    caps: dict[int, int] | None = None
    raising: int = 1

    def allow(self, link: Link, contribution: int, degrees: dict[int, int], max_degree: float) -> bool:
        least = self.least if all(degrees[u] < max_degree for u in link) else max(self.least, self.raising)
        return contribution >= least and (self.caps is None or all(degrees[u] < self.caps[u] for u in link))


NO_LIMITS = Limits()


def find_low_edge(
    contributions: dict[Link, int], degrees: dict[int, int], max_degree: int, rho: float, limits: Limits = NO_LIMITS
) -> Link | None:
    """Low-ODA, lines 8-14. A link of contribution 0 is no candidate; ties go to the lowest (u, v)."""
    highest = max_degree if rho >= 1 else inf
    candidates = [link for link, contrib in contributions.items() if limits.allow(link, contrib, degrees, highest)]
    if not candidates:
        return None
    best = _highest(candidates, contributions)
    friendly = [(u, v) for u, v in candidates if degrees[u] < max_degree and degrees[v] < max_degree]
    if not friendly:
        return best
    best_friendly = _highest(friendly, contributions)
    if contributions[best_friendly] * rho >= contributions[best]:
        return best_friendly
    return best


def _highest(links: list[Link], contributions: dict[Link, int]) -> Link:
    most = max(contributions[link] for link in links)
    return min(link for link in links if contributions[link] == most)


def construct_low_edges(
    topics_of: Topics,
    current: Iterable[Link],
    potential: Iterable[Link],
    rho: float,
    degrees: dict[int, int] | None = None,
    max_degree: int | None = None,
    limits: Limits = NO_LIMITS,
) -> list[Link]:
    """The new links in the order chosen.

    Degrees are those of `current` unless given; `max_degree` is the largest of them unless it is given and larger.
    Where `potential` cannot connect every topic, it ends when no candidate contributes any more.
    """
    existing = set(current)
    degree = {node: sum(node in link for link in existing) for node in topics_of} if degrees is None else dict(degrees)
    highest = max([0 if max_degree is None else max_degree, *degree.values()])
    shared = {link: topics_of[link[0]] & topics_of[link[1]] for link in potential}
    shared = {link: topics for link, topics in shared.items() if topics}
    sharing: dict[int, list[Link]] = {topic: [] for topics in topics_of.values() for topic in topics}
    for link, topics in shared.items():
        for topic in topics:
            sharing[topic].append(link)
    components = topic_components(topics_of, existing)
    contributions = {link: contribution(shared[link], components, link) for link in shared}
    chosen: list[Link] = []
    while (link := find_low_edge(contributions, degree, highest, rho, limits)) is not None:
        chosen.append(link)
        for end in link:
            degree[end] += 1
            highest = max(highest, degree[end])
        components = topic_components(topics_of, existing | set(chosen))
        del contributions[link]
        # Only pairs that share a topic with both its ends can contribute less now; the others need no second look.
        for other in {other for topic in shared[link] for other in sharing[topic]}:
            if contributions.get(other, 0) > 0:
                contributions[other] = contribution(shared[other], components, other)
    return chosen
