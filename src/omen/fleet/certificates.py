"""Why rules leave a topic split: statements from which it follows, each of which can be checked by itself.

A design that fails is no proof: it is greedy. A certificate is one. Where none is found, another order of links might
do; `relaxing` then still says what would be enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omen.interests import Codes, Interests, Label
from omen.overlay import Overlay
from omen.quality import component_labels
from omen.rules import NO_CAP, FleetRules, PairRule

COUNTED_NODES = 3000
"""Up to so many subscribers the pairs that share topics are counted."""
SHOWN = 8


@dataclass(frozen=True)
class HeldAboveCap:
    """The links that a node must have are more than it may have."""

    node: Label
    cap: int
    links: int

    def __str__(self) -> str:
        return f"node {self.node} may have {self.cap} links, but {self.links} are required or kept"


@dataclass(frozen=True)
class BannedApart:
    """All pairs between some subscribers of a topic and the others are forbidden."""

    topic: Label
    nodes: tuple[Label, ...]  # the smaller side
    others: int

    def __str__(self) -> str:
        return (
            f"topic {self.topic}: links between {_listed(self.nodes)} and the other {self.others} subscribers"
            " are all forbidden"
        )


@dataclass(frozen=True)
class NodeShort:
    """A node cannot reach all its topics: the best partners its cap allows share fewer with it, counted together."""

    node: Label
    cap: int
    topics: int  # that others want too
    reach: int

    def __str__(self) -> str:
        partners = "it can have no partner" if self.reach == 0 else f"its best {self.cap} partners share {self.reach}"
        return f"node {self.node} may have {self.cap} links and shares {self.topics} topics with others: {partners}"


@dataclass(frozen=True)
class TopicsShort:
    """All links that caps allow among the subscribers of some topics remove fewer pieces than there are to remove.

    A link removes at most one piece for each of these topics that its ends share. `reach` is what the best links of
    every node come to, counted at both ends and halved.
    """

    topics: tuple[Label, ...]
    subscribers: int
    needed: int
    reach: int

    def __str__(self) -> str:
        if len(self.topics) == 1:
            return (
                f"topic {self.topics[0]}: the caps of its {self.subscribers} subscribers allow at most {self.reach}"
                f" links among them, {self.needed} are needed"
            )
        return (
            f"topics {_listed(self.topics)}: the links that the caps of their {self.subscribers} subscribers allow"
            f" remove at most {self.reach} pieces, {self.needed} must go"
        )


Certificate = HeldAboveCap | BannedApart | NodeShort | TopicsShort
"""A statement from which it follows that rules leave a topic split."""


def find_certificates(interests: Interests, rules: FleetRules, split: Sequence[int]) -> list[Certificate]:
    """What proves that the topics of these codes, or some of them, cannot be connected under the rules."""
    found: list[Certificate] = list(_held_above_cap(rules))
    banned = _banned_rows(rules)
    for topic in split:
        found += _banned_apart(interests, banned, topic)
    if rules.has_caps:
        suspects = sorted({int(node) for topic in split for node in interests.subscribers_of(topic)})
        found += _nodes_short(interests, rules, banned, suspects)
        several = [[topic] for topic in split] + ([list(split)] if len(split) > 1 else [])
        found += [one for topics in several for one in _topics_short(interests, rules, banned, topics)]
        if not found:
            found += _topics_short(interests, rules, banned, range(interests.topic_count))
    return found


def _held_above_cap(rules: FleetRules) -> Iterator[HeldAboveCap]:
    degrees = rules.held.degrees
    for node in rules.exceeding(degrees).tolist():
        yield HeldAboveCap(rules.nodes[[node]].tolist()[0], int(rules.caps[node]), int(degrees[node]))


def _banned_rows(rules: FleetRules) -> Overlay:
    return Overlay.from_codes(rules.nodes, *rules.pairs_of(PairRule.FORBID))


def _banned_apart(interests: Interests, banned: Overlay, topic: int) -> Iterator[BannedApart]:
    """The piece of the allowed pairs with the lowest subscriber, or the others, where that is not all."""
    members = interests.subscribers_of(topic)
    left = set(members[1:].tolist())
    piece = {int(members[0])}
    waiting = [int(members[0])]
    while waiting and left:
        reached = left - set(banned.neighbours_of(waiting.pop()).tolist())
        left -= reached
        piece |= reached
        waiting += reached
    if left:
        side, others = sorted((piece, left), key=lambda nodes: (len(nodes), min(nodes)))
        nodes = interests.nodes[np.array(sorted(side))].tolist()
        yield BannedApart(interests.topics[[topic]].tolist()[0], tuple(nodes), len(others))


def _nodes_short(
    interests: Interests, rules: FleetRules, banned: Overlay, suspects: Iterable[int]
) -> Iterator[NodeShort]:
    sizes = np.diff(interests.topic_offsets)
    for node in suspects:
        if rules.caps[node] == NO_CAP:
            continue
        topics = [topic for topic in interests.topics_of(node).tolist() if sizes[topic] > 1]
        shared = np.zeros(interests.node_count, dtype=np.int64)
        for topic in topics:
            shared[interests.subscribers_of(topic)] += 1
        shared[node] = 0
        reach = _best(shared, rules.caps[node], banned.neighbours_of(node), rules.held.neighbours_of(node))
        if reach < len(topics):
            label = interests.nodes[[node]].tolist()[0]
            yield NodeShort(label, int(rules.caps[node]), len(topics), reach)


def _best(shared: npt.NDArray[np.int64], cap: int, banned: Codes, held: Codes) -> int:
    """The most that `cap` links of a node can come to, those among them that are held."""
    open_to = shared.copy()
    open_to[banned] = 0
    open_to[held] = 0
    room = min(max(int(cap) - held.size, 0), open_to.size)
    best = np.sort(open_to)[::-1][:room]
    return int(shared[held].sum() + best.sum())


def _topics_short(
    interests: Interests, rules: FleetRules, banned: Overlay, topics: Sequence[int]
) -> Iterator[TopicsShort]:
    wanted = [topic for topic in topics if interests.subscribers_of(topic).size > 1]
    nodes = np.unique(np.concatenate([np.empty(0, np.int32), *(interests.subscribers_of(topic) for topic in wanted)]))
    if not 1 < nodes.size <= COUNTED_NODES or nodes.size * len(wanted) > COUNTED_NODES**2:
        return
    wants = np.zeros((nodes.size, len(wanted)), dtype=np.float32)
    for place, topic in enumerate(wanted):
        wants[np.searchsorted(nodes, interests.subscribers_of(topic)), place] = 1
    shared = (wants @ wants.T).astype(np.int64)
    np.fill_diagonal(shared, 0)
    twice = 0
    everyone = np.zeros(interests.node_count, dtype=np.int64)
    for place, node in enumerate(nodes.tolist()):
        everyone[nodes] = shared[place]
        twice += _best(everyone, rules.caps[node], banned.neighbours_of(node), rules.held.neighbours_of(node))
    needed = sum(int(interests.subscribers_of(topic).size) - 1 for topic in wanted)
    if twice // 2 < needed:
        labels = tuple(interests.topics[np.array(wanted)].tolist())
        yield TopicsShort(labels, int(nodes.size), needed, twice // 2)


def split_topics(interests: Interests, overlay: Overlay) -> list[int]:
    """The codes of the topics that an overlay leaves split."""
    labels = component_labels(interests, overlay)
    offsets = interests.topic_offsets
    highest = [int(labels[offsets[t] : offsets[t + 1]].max(initial=0)) for t in range(interests.topic_count)]
    return [topic for topic, label in enumerate(highest) if label > 0]


def _listed(labels: Sequence[Label]) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(str(label) for label in labels[:SHOWN]) + more
