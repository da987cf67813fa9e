"""Backup sets from what one node knows: the four rules of the papers, over descriptors instead of arrays.

`pd-weight` is shadows Alg. 12, `greedy-weight` Alg. 11; `pd-cover` and `greedy-cover` are the forms of omen 4.2. A node
sees only its own choices, so a candidate's weight is its links plus the backup sets it already serves in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from fractions import Fraction

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Randomness, Topic
from omen.protocol.messages.base import Descriptor, Ref

FULL = 1 << 20
Weights = Mapping[NodeId, int]
Shared = Mapping[NodeId, Set[Topic]]
"""Which topics a candidate has in common with the node to be covered."""
Subscribers = Mapping[Topic, Sequence[NodeId]]
"""The candidates that have a topic, in order."""


def build_backups(
    topics: Set[Topic],
    candidates: Mapping[NodeId, Set[Topic]],
    weights: Weights,
    coverage: int,
    rule: str,
    randomness: Randomness,
) -> list[NodeId]:
    """`coverage` disjoint covers of `topics` out of `candidates`, each as complete as the candidates allow."""
    shared = {node: common for node, theirs in candidates.items() if (common := topics & theirs)}
    subscribers: dict[Topic, list[NodeId]] = {}
    for node in sorted(shared):
        for topic in shared[node]:
            subscribers.setdefault(topic, []).append(node)
    chosen: list[NodeId] = []
    for _ in range(coverage):
        cover = RULES[rule](subscribers, shared, weights, randomness)
        if not cover:
            break
        chosen.extend(cover)
        for node in cover:
            for topic in shared.pop(node):
                subscribers[topic].remove(node)
    return sorted(chosen)


def _cover_primal_dual(
    subscribers: Subscribers, shared: Shared, weights: Weights, randomness: Randomness, by_weight: bool
) -> list[NodeId]:
    """Pick an uncovered topic at random, then its lightest subscriber (or the one that covers most), until done."""
    weight = {node: weights.get(node, 0) for node in shared}
    rest = sorted(topic for topic, nodes in subscribers.items() if nodes)
    uncovered = set(rest)
    cover: list[NodeId] = []
    while rest:
        topic = rest[randomness.randrange(len(rest))]
        open_to = subscribers[topic]
        if by_weight:
            price = min([weight[node] for node in open_to])
            best = next(node for node in open_to if weight[node] == price)
            for node in open_to:
                weight[node] -= price
        else:
            best = min(open_to, key=lambda node: (-len(shared[node] & uncovered), node))
        cover.append(best)
        uncovered -= shared[best]
        rest = [topic for topic in rest if topic in uncovered]
    return cover


def _cover_greedily(
    subscribers: Subscribers, shared: Shared, weights: Weights, _: Randomness, by_weight: bool
) -> list[NodeId]:
    """Take the node with the least weight for each topic it newly covers (or the one that covers most), until done."""
    uncovered = {topic for topic, nodes in subscribers.items() if nodes}
    left = dict(shared)
    cover: list[NodeId] = []
    while uncovered and left:
        gains = {node: len(theirs & uncovered) for node, theirs in left.items()}
        open_to = [node for node, gain in gains.items() if gain]
        if not open_to:
            break
        if by_weight:
            best = min(open_to, key=lambda node: (Fraction(weights.get(node, 0), gains[node]), node))
        else:
            best = min(open_to, key=lambda node: (-gains[node], node))
        cover.append(best)
        uncovered -= left.pop(best)
    return cover


_Rule = Callable[[Subscribers, Shared, Weights, Randomness], Sequence[NodeId]]

RULES: dict[str, _Rule] = {
    "pd-weight": lambda t, s, w, r: _cover_primal_dual(t, s, w, r, by_weight=True),
    "pd-cover": lambda t, s, w, r: _cover_primal_dual(t, s, w, r, by_weight=False),
    "greedy-weight": lambda t, s, w, r: _cover_greedily(t, s, w, r, by_weight=True),
    "greedy-cover": lambda t, s, w, r: _cover_greedily(t, s, w, r, by_weight=False),
}


def weight_of(descriptor: Descriptor) -> int:
    """How much a node has to do: its links; one that may have no more of them comes after all others."""
    return len(descriptor.neighbours) + (FULL if descriptor.is_full else 0)


def members_for_join(
    context: NodeContext, newcomer: NodeId, topics: Set[Topic], unavailable: Set[NodeId]
) -> dict[NodeId, Ref]:
    """The paper's S for a join, less the newcomer (omen 3.2). Covered at least once, or there were no node to link to.

    `unavailable`: nodes that did not answer before.
    """
    peer_table, config = context.peer_table, context.config
    candidates = {
        node: has for node, has in peer_table.topic_sets.items() if node != newcomer and node not in unavailable
    }
    if peer_table.id not in unavailable:
        candidates[peer_table.id] = frozenset(peer_table.me.topics)
    known = {node: descriptor for node in candidates if (descriptor := peer_table.get(node)) is not None}
    weights = {node: weight_of(known[node]) if node in known else 0 for node in candidates}
    chosen = build_backups(topics, candidates, weights, max(1, config.coverage), config.backups, context.random)
    return {node: known[node].digest.ref for node in chosen if node in known}
