"""Low-ODA under the rules of a fleet, literally: groups by cost, each with its own pick; sets and dicts, no tricks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reference.greedy import Limits, Link, Topics, all_pairs, contribution, find_low_edge, topic_components


@dataclass(frozen=True)
class FleetRules:
    """`present`: required and kept links. A pair costs what `costs` says of it, else 1."""

    caps: dict[int, int] = field(default_factory=dict)
    forbidden: frozenset[Link] = frozenset()
    present: frozenset[Link] = frozenset()
    costs: dict[Link, float] = field(default_factory=dict)
    sigma: float = 1.0


def find_ruled_edge(
    contributions: dict[Link, int], degrees: dict[int, int], max_degree: int, rho: float, rules: FleetRules
) -> Link | None:
    """The pick of each group, from cheap to dear; a dearer one replaces the present if over sigma times as good."""
    caps = {node: rules.caps.get(node, len(degrees)) for node in degrees}
    groups: dict[float, dict[Link, int]] = {}
    for link, contrib in contributions.items():
        groups.setdefault(rules.costs.get(link, 1.0), {})[link] = contrib
    present: Link | None = None
    for cost in sorted(groups):
        pick = find_low_edge(groups[cost], degrees, max_degree, rho, Limits(1, caps))
        if pick and (present is None or contributions[pick] > rules.sigma * contributions[present]):
            present = pick
    return present


def construct_ruled(
    topics_of: Topics, rho: float, rules: FleetRules, degrees: dict[int, int] | None = None
) -> list[Link]:
    """The links that are added to those present, in the order chosen.

    `degrees`: of all nodes of the overlay, where there are more of them or of their links than are concerned here.
    """
    present = {node: sum(node in link for link in rules.present) for node in topics_of}
    degree = present if degrees is None else dict(degrees)
    links = set(rules.present)
    candidates: Iterable[Link] = all_pairs(topics_of) - rules.forbidden - rules.present
    shared = {(u, v): topics_of[u] & topics_of[v] for u, v in candidates}
    chosen: list[Link] = []
    while True:
        components = topic_components(topics_of, links)
        contributions = {link: contribution(topics, components, link) for link, topics in shared.items()}
        link = find_ruled_edge(contributions, degree, max([0, *degree.values()]), rho, rules)
        if link is None:
            return chosen
        chosen.append(link)
        links.add(link)
        for end in link:
            degree[end] += 1
