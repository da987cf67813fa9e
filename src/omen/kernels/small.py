"""The greedy rule on some tens of nodes in plain Python: what a live node repairs with, without a compiler or numpy.

The same rule, link for link, as the compiled engine (`greedy.greedy_links`): constructLowEdges (Chen, Jacobsen,
Vitenberg, Alg. 2). Topics a node wants are the bits of one integer, so that a pair is counted by one `&`. Weights only
fall, so a row's highest weight of an earlier link bounds it from above, and is looked up again only where it would win.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

OF_INSTANCE = -1
ALL_PAIRS = -1

Link = tuple[int, int]


def choose_links(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    centre: int = ALL_PAIRS,
    max_degree: int = OF_INSTANCE,
) -> list[Link]:
    """New links (u, v), u < v, among nodes 0..n-1 that join, in every topic, all pieces named by `labels_of`.

    In the order chosen; ties go to the lowest (u, v). Labels may be any integers; equal means same piece. `rho`,
    `centre` and `max_degree` are those of `engine.choose_links`.
    """
    if centre >= 0:
        topics_of, labels_of = within_centre(topics_of, labels_of, centre)
    pieces = split_topics(topics_of, labels_of)
    if not pieces:
        return []
    highest = max(max_degree, *degrees)
    if centre >= 0:
        return _links_of_one(Partners(pieces, len(degrees), centre), list(degrees), highest, rho, centre)
    return _links_of_all(Pairs(pieces, len(degrees)), list(degrees), highest, rho)


def count_steps(topics_of: Sequence[Sequence[int]], centre: int = ALL_PAIRS) -> int:
    """About how many steps `choose_links` takes at most: pairs of nodes, and pairs of subscribers in each topic."""
    subscriptions = sum(map(len, topics_of))
    if centre >= 0:
        return subscriptions
    counts: dict[int, int] = {}
    for topics in topics_of:
        for topic in topics:
            counts[topic] = counts.get(topic, 0) + 1
    return (len(topics_of) ** 2 + sum(count * count for count in counts.values())) // 2


def within_centre(
    topics_of: Sequence[Sequence[int]], labels_of: Sequence[Sequence[int]], centre: int
) -> tuple[list[list[int]], list[list[int]]]:
    """The same with the topics of the centre alone."""
    wanted = set(topics_of[centre])
    labels = [
        [label for topic, label in zip(topics, labels, strict=True) if topic in wanted]
        for topics, labels in zip(topics_of, labels_of, strict=True)
    ]
    return [[topic for topic in topics if topic in wanted] for topics in topics_of], labels


def split_topics(topics_of: Sequence[Sequence[int]], labels_of: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """The pieces of each topic that has several, each as its nodes, ascending."""
    pieces: dict[int, dict[int, list[int]]] = {}
    for node, (topics, labels) in enumerate(zip(topics_of, labels_of, strict=True)):
        for topic, label in zip(topics, labels, strict=True):
            of_topic = pieces.get(topic)
            if of_topic is None:
                of_topic = pieces[topic] = {}
            members = of_topic.get(label)
            if members is None:
                of_topic[label] = [node]
            else:
                members.append(node)
    return [list(of_topic.values()) for of_topic in pieces.values() if len(of_topic) > 1]


class Pairs:
    """The weights of all pairs: in how many topics a link would join two pieces."""

    def __init__(self, pieces: list[list[list[int]]], nodes: int) -> None:
        self._wants = wants = [0] * nodes
        self._piece_of: list[dict[int, list[int]]] = []
        for code, of_topic in enumerate(pieces):
            bit = 1 << code
            self._piece_of.append({node: members for members in of_topic for node in members})
            for members in of_topic:
                for node in members:
                    wants[node] |= bit
        self.rows = rows = [
            [0] * (u + 1) + [(mine & theirs).bit_count() for theirs in wants[u + 1 :]] for u, mine in enumerate(wants)
        ]
        for of_topic in pieces:
            for members in of_topic:
                for position, u in enumerate(members, 1):
                    row = rows[u]
                    for v in members[position:]:
                        row[v] -= 1

    def link(self, u: int, v: int) -> None:
        """Merge the pieces that this link joins: pairs between the two lose the topic."""
        common = self._wants[u] & self._wants[v]
        while common:
            bit = common & -common
            common ^= bit
            piece_of = self._piece_of[bit.bit_length() - 1]
            small, large = piece_of[u], piece_of[v]
            if small is large:
                continue
            if len(small) > len(large):
                small, large = large, small
            self._count_down(small, large)
            large.extend(small)
            for node in small:
                piece_of[node] = large

    def _count_down(self, ones: list[int], others: list[int]) -> None:
        rows = self.rows
        for a in ones:
            row = rows[a]
            for b in others:
                if a < b:
                    row[b] -= 1
                else:
                    rows[b][a] -= 1


def _links_of_all(pairs: Pairs, degree: list[int], highest: int, rho: float) -> list[Link]:
    """Low-ODA, lines 8-14, until no pair joins anything."""
    rows = pairs.rows
    bound = list(map(max, rows))
    below = [int(one < highest) for one in degree]
    friendly_bound = bound.copy()
    links: list[Link] = []
    while True:
        u, best = _best_row(rows, bound)
        if best == 0:
            return links
        v = rows[u].index(best)
        friend = _friendly_pair(rows, friendly_bound, below, rho, best) if rho >= 1 else None
        if friend is not None:
            u, v = friend
        links.append((u, v))
        pairs.link(u, v)
        degree[u] += 1
        degree[v] += 1
        raised = max(degree[u], degree[v])
        if raised > highest:  # nodes of the former maximum are below it again: no bound of theirs is known
            highest = raised
            below = [int(one < highest) for one in degree]
            friendly_bound = bound.copy()
        else:
            below[u], below[v] = int(degree[u] < highest), int(degree[v] < highest)


def _best_row(rows: list[list[int]], bound: list[int]) -> Link:
    """The lowest row that holds the highest weight, and the weight; bounds on the way there are renewed."""
    while True:
        most = max(bound)
        u = bound.index(most)
        bound[u] = max(rows[u])
        if bound[u] == most:
            return u, most


def _friendly_pair(rows: list[list[int]], bound: list[int], below: list[int], rho: float, best: int) -> Link | None:
    """The best pair of nodes that are both below the maximum degree, if `rho` times its weight reaches the best."""
    while True:
        most = max(bound)
        if most == 0 or most * rho < best:
            return None
        u = bound.index(most)
        row = list(map(mul, rows[u], below)) if below[u] else [0]
        bound[u] = max(row)
        if bound[u] == most:
            return u, row.index(most)


class Partners:
    """The weights of pairs with the centre; a piece of one of its topics is merged once, as a whole."""

    def __init__(self, pieces: list[list[list[int]]], nodes: int, centre: int) -> None:
        self.weights = weights = [0] * nodes
        self._apart: list[list[list[int]]] = [[] for _ in range(nodes)]
        for of_topic in pieces:
            for members in of_topic:
                if centre not in members:
                    for node in members:
                        weights[node] += 1
                        self._apart[node].append(members)

    def link(self, node: int) -> None:
        """Merge the pieces of this node into the centre's."""
        for members in self._apart[node]:
            for one in members:
                self.weights[one] -= 1
            members.clear()


def _links_of_one(partners: Partners, degree: list[int], highest: int, rho: float, centre: int) -> list[Link]:
    """The same rule where only pairs with the centre are candidates, as in a join."""
    weights = partners.weights
    links: list[Link] = []
    while best := max(weights):
        v = weights.index(best)
        if rho >= 1 and degree[centre] < highest:
            below = [weight if degree[node] < highest else 0 for node, weight in enumerate(weights)]
            friendly = max(below)
            if friendly and friendly * rho >= best:
                v = below.index(friendly)
        links.append((min(v, centre), max(v, centre)))
        partners.link(v)
        degree[v] += 1
        degree[centre] += 1
        highest = max(highest, degree[v], degree[centre])
    return links
