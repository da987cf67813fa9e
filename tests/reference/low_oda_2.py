"""Low-ODA-2 step by step; sets and dicts, never optimised. Whether a node is a cut node is tried by leaving it out."""

from __future__ import annotations

from dataclasses import replace

from reference.greedy import Link, Topics, all_pairs, construct_low_edges, topic_components
from reference.ruled import FleetRules, construct_ruled


def pieces_without(topics_of: Topics, links: list[Link], node: int) -> dict[int, int]:
    """How many pieces each topic of a node would be in without it."""
    others = {other: topics for other, topics in topics_of.items() if other != node}
    left = [link for link in links if node not in link]
    components = topic_components(others, left)
    return {topic: len(set(components[topic].values())) for topic in topics_of[node] if topic in components}


def low_oda_2(topics_of: Topics, rho: float) -> list[Link]:
    """All links, those of Low-ODA first."""
    links = construct_low_edges(topics_of, (), all_pairs(topics_of), rho)
    cuts = {node: sum(pieces > 1 for pieces in pieces_without(topics_of, links, node).values()) for node in topics_of}
    for node in sorted((node for node, count in cuts.items() if count), key=lambda node: (-cuts[node], node)):
        split = {topic for topic, pieces in pieces_without(topics_of, links, node).items() if pieces > 1}
        others = {other: topics & split for other, topics in topics_of.items() if other != node and topics & split}
        degrees = {other: sum(other in link for link in links) for other in topics_of}
        left = [link for link in links if node not in link and set(link) <= others.keys()]
        potential = all_pairs(others)
        links += construct_low_edges(
            others, left, potential, rho, {other: degrees[other] for other in others}, max(degrees.values())
        )
    return links


def cut_by(topics_of: Topics, links: list[Link], node: int) -> set[int]:
    """The topics that are in more pieces without a node than with it."""
    components = topic_components(topics_of, links)
    without = pieces_without(topics_of, links, node)
    return {topic for topic, pieces in without.items() if pieces > len(set(components[topic].values()))}


def low_oda_2_within(topics_of: Topics, rho: float, rules: FleetRules) -> list[Link]:
    """The same under the rules of a fleet, which may leave topics split or cut: all links, those present first."""
    links = [*sorted(rules.present), *construct_ruled(topics_of, rho, rules)]
    cuts = {node: topics for node in topics_of if (topics := cut_by(topics_of, links, node))}
    for node in sorted(cuts, key=lambda node: (-len(cuts[node]), node)):
        split = {topic for topic in cuts[node] if pieces_without(topics_of, links, node)[topic] > 1}
        others = {other: topics & split for other, topics in topics_of.items() if other != node and topics & split}
        degrees = {other: sum(other in link for link in links) for other in topics_of}
        left = frozenset(link for link in links if node not in link and set(link) <= others.keys())
        links += construct_ruled(others, rho, replace(rules, present=left), degrees)
    return links
