"""GM2 (ktco, Alg. 1), line by line; sets and dicts, never optimised. The lines named are those of the paper."""

from __future__ import annotations

from itertools import combinations

from reference.greedy import Link, Topics

Graph = dict[int, set[int]]


def blocks_of(graph: Graph) -> list[set[int]]:
    """The TC-blocks of one topic's subgraph: maximal biconnected subgraphs, bridges, isolated nodes.

    The depth-first search of Hopcroft and Tarjan, which the paper's cost analysis also calls for.
    """
    blocks: list[set[int]] = []
    depth: dict[int, int] = {}
    reach: dict[int, int] = {}
    stack: list[int] = []

    def visit(node: int, parent: int | None) -> None:
        depth[node] = reach[node] = 0 if parent is None else depth[parent] + 1
        stack.append(node)
        for other in graph[node]:
            if other not in depth:
                visit(other, node)
                reach[node] = min(reach[node], reach[other])
                if reach[other] >= depth[node]:
                    block = {node}
                    while other not in block:
                        block.add(stack.pop())
                    blocks.append(block)
            elif other != parent:
                reach[node] = min(reach[node], depth[other])

    for node in graph:
        if node not in depth:
            visit(node, None)
            stack.clear()
            if not graph[node]:
                blocks.append({node})
    return blocks


def apart_in(subscribers: set[int], links: list[Link]) -> set[Link]:
    """The pairs of subscribers that no TC-block of G_t contains."""
    graph: Graph = {node: set() for node in subscribers}
    for u, v in links:
        if u in subscribers and v in subscribers:
            graph[u].add(v)
            graph[v].add(u)
    apart = set(combinations(sorted(subscribers), 2))
    for block in blocks_of(graph):
        apart -= set(combinations(sorted(block), 2))
    return apart


def gm2(topics_of: Topics) -> list[Link]:
    """The links in the order added. Of equal estimates, the lowest (u, v)."""
    chosen: list[Link] = []  # line 1
    subscribers_of = {
        topic: {node for node, topics in topics_of.items() if topic in topics}
        for topic in set().union(*topics_of.values())
    }
    apart = {topic: apart_in(subscribers, chosen) for topic, subscribers in subscribers_of.items()}
    while any(apart.values()):  # line 3: a topic is not 2-connected iff two of its subscribers share no block
        estimates: dict[Link, int] = {}
        for pairs in apart.values():  # lines 4-5
            for link in pairs:
                estimates[link] = estimates.get(link, 0) + 1
        highest = max(estimates.values())
        u, v = min(link for link, estimate in estimates.items() if estimate == highest)  # line 6
        chosen.append((u, v))  # lines 7-8
        for topic in topics_of[u] & topics_of[v]:  # no other topic's subgraph has changed
            apart[topic] = apart_in(subscribers_of[topic], chosen)
    return chosen
