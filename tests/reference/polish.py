"""The local search of `--polish`, literally: after every change all topics are looked at anew."""

from __future__ import annotations

from itertools import product

import networkx as nx

from reference.greedy import Link, Topics


def is_connected(topics_of: Topics, links: set[Link]) -> bool:
    """Whether every topic is in one piece."""
    for topic in set().union(*topics_of.values()):
        graph = nx.Graph()
        graph.add_nodes_from(node for node, topics in topics_of.items() if topic in topics)
        graph.add_edges_from(link for link in links if all(topic in topics_of[end] for end in link))
        if not nx.is_connected(graph):
            return False
    return True


def degrees(topics_of: Topics, links: set[Link]) -> dict[int, int]:
    return {node: sum(node in link for link in links) for node in topics_of}


def drop_all(topics_of: Topics, links: set[Link]) -> set[Link]:
    count = degrees(topics_of, links)
    for link in sorted(links, key=lambda link: (*sorted(-count[end] for end in link), link)):
        if is_connected(topics_of, links - {link}):
            links = links - {link}
    return links


def move_one(topics_of: Topics, links: set[Link]) -> set[Link] | None:
    """Of all pairs that mend what the loss of a busy node's link splits, the one of the idlest ends on either side."""
    count = degrees(topics_of, links)
    most = max(count.values(), default=0)
    for busy in sorted(node for node in topics_of if count[node] == most):
        for other in sorted(node for node in topics_of if tuple(sorted((busy, node))) in links):
            left = links - {(min(busy, other), max(busy, other))}
            now = degrees(topics_of, left)
            fit = sorted((node for node in topics_of if now[node] <= most - 2), key=lambda node: (now[node], node))
            pairs = [(a, b) for a, b in product(fit, fit) if a != b and joins(topics_of, left, (busy, a), (other, b))]
            if pairs:
                a, b = min(pairs, key=lambda pair: [(now[end], end) for end in pair])
                return left | {(min(a, b), max(a, b))}
    return None


def joins(topics_of: Topics, links: set[Link], here: Link, there: Link) -> bool:
    """Whether a link of here[1] and there[1] mends it all, here[1] being on the side of here[0] wherever it matters."""
    a, b = here[1], there[1]
    if not is_connected(topics_of, links | {(min(a, b), max(a, b))}):
        return False
    for topic in topics_of[here[0]] & topics_of[there[0]]:
        graph = nx.Graph()
        graph.add_nodes_from(node for node, topics in topics_of.items() if topic in topics)
        graph.add_edges_from(link for link in links if all(topic in topics_of[end] for end in link))
        if not nx.has_path(graph, here[0], there[0]) and not nx.has_path(graph, here[0], a):
            return False
    return True


def polish(topics_of: Topics, links: set[Link]) -> set[Link]:
    links = drop_all(topics_of, links)
    while (moved := move_one(topics_of, links)) is not None:
        links = drop_all(topics_of, moved)
    return links
