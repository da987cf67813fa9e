"""Low-ODA-2: overlays in which no single loss cuts a topic, with a low maximum degree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from omen.design.greedy import design_low_oda
from omen.kernels.engine import Instance, Rows, choose_links

if TYPE_CHECKING:
    from omen.interests import Codes, Interests
    from omen.overlay import Overlay

Node = int
Topic = int
Choice = Callable[[Instance, Sequence[Node]], "Codes"]
"""The links that the greedy engine chooses in an instance of these nodes, by their places."""


def design_low_oda_2(interests: Interests, rho: float) -> Overlay:
    """Low-ODA, then links until every node is dispensable: its neighbours in a topic reach each other without it.

    Ours; the papers' 2-topic-connected design is GM2. Guarantee: 2-topic-connected, since all nodes dispensable is just
    that. No bound is proved on the degrees; the maximum is a fraction of GM2's at about as many links. Cost: Low-ODA,
    then for each node that cuts topics a search through these and one call of the greedy engine on their subscribers.

    Nodes are taken in the order of how many topics they cut, most first, then by label. For each, the pieces that its
    loss would leave in all topics that it cuts are joined by the rule of Low-ODA(rho), its degrees included. A link
    that is added makes no other node a cut node, so each is looked at once.
    """
    import numpy as np

    from omen.overlay import Overlay

    links = make_dispensable(interests, design_low_oda(interests, rho), rho)
    ends = np.array(links, dtype=np.int64).reshape(-1, 2)
    return Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


def make_dispensable(interests: Interests, overlay: Overlay, rho: float) -> list[tuple[Node, Node]]:
    """All links of an overlay that is topic-connected, and those that make every node dispensable."""
    links = list(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))
    return links + bypass_all(interests, links, range(interests.topic_count), rho)


def bypass_all(
    interests: Interests, links: Iterable[tuple[Node, Node]], topics: Iterable[Topic], rho: float
) -> list[tuple[Node, Node]]:
    """The links that make every node dispensable in these topics, in the order chosen."""
    return bypass_by(interests, links, topics, lambda instance, _: choose_links(instance, rho))


def bypass_by(
    interests: Interests, links: Iterable[tuple[Node, Node]], topics: Iterable[Topic], choose: Choice
) -> list[tuple[Node, Node]]:
    """`bypass_all` with another choice of links, which may leave topics cut."""
    graph = _Graph(interests, links, topics)
    cuts = graph.cuts()
    chosen: list[tuple[Node, Node]] = []
    for node in sorted(cuts, key=lambda node: (-len(cuts[node]), node)):
        chosen += graph.bypass(node, cuts[node], choose)
    return chosen


class _Graph:
    """Who is linked to whom, and wants which of these topics."""

    def __init__(self, interests: Interests, links: Iterable[tuple[Node, Node]], topics: Iterable[Topic]) -> None:
        offsets, nodes = interests.topic_offsets, interests.topic_nodes
        self._subscribers = {topic: nodes[offsets[topic] : offsets[topic + 1]].tolist() for topic in topics}
        self._wants = {topic: set(members) for topic, members in self._subscribers.items()}
        self._near: list[set[Node]] = [set() for _ in range(interests.node_count)]
        for one, other in links:
            self._link(one, other)

    def _link(self, one: Node, other: Node) -> None:
        self._near[one].add(other)
        self._near[other].add(one)

    def cuts(self) -> dict[Node, list[Topic]]:
        """The nodes that cut topics, and which."""
        from omen.quality.cut_nodes import cut_nodes

        found: dict[Node, list[Topic]] = {}
        for topic, members in sorted(self._subscribers.items()):
            wants = self._wants[topic]
            pairs = [(node, other) for node in members for other in sorted(self._near[node] & wants) if node < other]
            for node in cut_nodes(pairs):
                found.setdefault(node, []).append(topic)
        return found

    def bypass(self, node: Node, topics: Sequence[Topic], choose: Choice) -> list[tuple[Node, Node]]:
        """Join the pieces that the loss of a node would leave in these topics; the new links."""
        labels = {topic: self._pieces(topic, node) for topic in topics}
        split = [topic for topic in topics if len(set(labels[topic].values())) > 1]
        if not split:
            return []
        nodes, instance = _instance(split, labels, self._near)
        links = [(nodes[one], nodes[other]) for one, other in choose(instance, nodes).tolist()]
        for one, other in links:
            self._link(one, other)
        return links

    def _pieces(self, topic: Topic, without: Node) -> dict[Node, int]:
        """The piece of each other subscriber, numbered in the order of their lowest nodes."""
        wants, labels = self._wants[topic], dict[Node, int]()
        pieces = 0
        for start in self._subscribers[topic]:
            if start == without or start in labels:
                continue
            labels[start] = pieces
            unseen = [start]
            while unseen:
                for other in self._near[unseen.pop()] & wants:
                    if other != without and other not in labels:
                        labels[other] = pieces
                        unseen.append(other)
            pieces += 1
        return labels


def _instance(
    topics: Sequence[Topic], labels: dict[Topic, dict[Node, int]], near: Sequence[set[Node]]
) -> tuple[list[Node], Instance]:
    """What the greedy engine is asked, and for which nodes: the subscribers of these topics."""
    import numpy as np

    nodes = sorted({node for topic in topics for node in labels[topic]})
    codes = {node: code for code, node in enumerate(nodes)}
    members = [sorted(labels[topic]) for topic in topics]
    rows: list[list[int]] = [[] for _ in nodes]
    for place, subscribers in enumerate(members):
        for node in subscribers:
            rows[codes[node]].append(place)
    instance = Instance(
        Rows(
            np.cumsum([0, *map(len, rows)], dtype=np.int64),
            np.array([place for row in rows for place in row], dtype=np.int32),
            np.cumsum([0, *map(len, members)], dtype=np.int64),
            np.array([codes[node] for subscribers in members for node in subscribers], dtype=np.int32),
        ),
        np.array(
            [labels[t][node] for t, subscribers in zip(topics, members, strict=True) for node in subscribers],
            dtype=np.int32,
        ),
        np.array([len(near[node]) for node in nodes], dtype=np.int32),
        max(map(len, near)),
    )
    return nodes, instance
