"""A plan around links that do not come about, although both their ends answer.

Not in the paper. One of the two may have banned the other (see `membership.conduct`), or may not keep its word; nobody
else can tell which. Planned again, such a link would hold the repair up for ever, and with it all that wait behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set

from omen.protocol.events import NodeId
from omen.protocol.repair.join_check import Pair

TRIED_IN_VAIN = 2
"""Rounds after which a link is planned around. One may have been lost on the way."""
GIVEN_UP = 20
"""Rounds after which it is planned no more, although there is no way around it: what lies between its ends may heal."""

Lists = Sequence[Sequence[int]]
Choice = list[tuple[int, int]]


def plan_around(
    refused: Set[Pair],
    nodes: Sequence[NodeId],
    topics_of: Lists,
    labels_of: Lists,
    choose: Callable[[Lists, Lists], Choice],
) -> Choice:
    """All are linked without the node that most such links were for; then that one, to those it has not failed with."""
    counts = Counter(node for pair in refused for node in pair if node in nodes)
    apart = nodes.index(max(sorted(counts), key=lambda node: counts[node]))
    averse = {
        place for place, node in enumerate(nodes) if (min(node, nodes[apart]), max(node, nodes[apart])) in refused
    }
    first = choose(*_without({apart}, topics_of, labels_of))
    second = choose(*_without(averse, topics_of, _join(topics_of, labels_of, first)))
    return list(dict.fromkeys((*first, *second)))


def plan_rest(topics_of: Lists, labels_of: Lists, links: Choice, choose: Callable[[Lists, Lists], Choice]) -> Choice:
    """The links that would join what these leave apart."""
    return choose(topics_of, _join(topics_of, labels_of, links))


def _without(places: Set[int], topics_of: Lists, labels_of: Lists) -> tuple[Lists, Lists]:
    """The same as if these nodes had no topics."""
    return (
        [() if place in places else topics for place, topics in enumerate(topics_of)],
        [() if place in places else labels for place, labels in enumerate(labels_of)],
    )


def _join(topics_of: Lists, labels_of: Lists, links: Choice) -> Lists:
    """The labels as they are once these links are made."""
    label_of = [dict(zip(topics, labels, strict=True)) for topics, labels in zip(topics_of, labels_of, strict=True)]
    for one, other in links:
        for topic in label_of[one].keys() & label_of[other].keys():
            kept, given_up = label_of[one][topic], label_of[other][topic]
            for labels in label_of:
                if labels.get(topic) == given_up:
                    labels[topic] = kept
    return [[labels[topic] for topic in topics] for topics, labels in zip(topics_of, label_of, strict=True)]
