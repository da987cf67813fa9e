"""Cut nodes of a graph: those whose loss splits what is left of their piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Node = int


def cut_nodes(links: Iterable[tuple[Node, Node]]) -> list[Node]:
    """The cut nodes, ascending (Hopcroft and Tarjan 1973). Linear; for graphs of thousands, for it is not compiled."""
    near: dict[Node, list[Node]] = {}
    for one, other in links:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    found: set[Node] = set()
    for root in near:
        if root not in order and _walk(root, near, order, low, found) > 1:
            found.add(root)
    return sorted(found)


def _walk(
    root: Node,
    near: Mapping[Node, list[Node]],
    order: dict[Node, int],
    low: dict[Node, int],
    found: set[Node],
) -> int:
    """Walk one piece depth first; how many branches its root has."""
    branches = 0
    order[root] = low[root] = len(order)
    path = [(root, root, iter(near[root]))]
    while path:
        node, parent, rest = path[-1]
        for other in rest:
            if other not in order:
                order[other] = low[other] = len(order)
                path.append((other, node, iter(near[other])))
                break
            if other != parent:
                low[node] = min(low[node], order[other])
        else:
            path.pop()
            if node != root:
                low[parent] = min(low[parent], low[node])
                branches += parent == root
                if parent != root and low[node] >= order[parent]:
                    found.add(parent)
    return branches
