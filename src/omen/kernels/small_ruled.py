"""The greedy rule on some tens of nodes within the rules of a fleet, in plain Python: what a live node repairs with.

The same rule, link for link, as `ruled.ruled_links` where the caps can be kept: candidates of one cost form a group,
Low-ODA picks one in each, and from cheap to dear a pick replaces the present one only if it contributes more than sigma
times as much. Where the caps leave a topic split a repair goes on beyond them, which a design does not: then those
pairs are candidates that exceed a cap by the least, however little they contribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from omen.kernels.small import ALL_PAIRS, Link, Pairs, Partners, split_topics, within_centre

NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """`room`: how many more links each node may have, below 0 where it has too many; `NO_LIMIT`: any number.

    `zones`: where each stands. Links within a zone are cheap, all others dear. `banned`: pairs (u, v), u < v, that are
    no candidates.
    """

    room: Sequence[int]
    zones: Sequence[str]
    banned: AbstractSet[Link] = frozenset()
    sigma: float = 1.0

    def without(self, pairs: AbstractSet[Link]) -> LinkLimits:
        """The same with these pairs banned too."""
        return replace(self, banned=self.banned | pairs)

    def excess_of(self, links: Sequence[Link]) -> int:
        """By how many links these take nodes beyond their caps, all nodes together."""
        ends: dict[int, int] = {}
        for link in links:
            for end in link:
                ends[end] = ends.get(end, 0) + 1
        return sum(max(0, count - max(0, self.room[end])) for end, count in ends.items())


def choose_links_within(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    limits: LinkLimits,
    centre: int = ALL_PAIRS,
) -> list[Link]:
    """New links that join, in every topic, all pieces as far as bans allow: as `small.choose_links`, within limits."""
    if centre >= 0:
        topics_of, labels_of = within_centre(topics_of, labels_of, centre)
    pieces = split_topics(topics_of, labels_of)
    if not pieces:
        return []
    degree, room = list(degrees), list(limits.room)
    candidates = _Candidates(pieces, len(degree), centre, limits.banned)
    links: list[Link] = []
    while weights := candidates.weights():
        u, v = _pick(_least_excess(weights, room), degree, rho, limits)
        links.append((u, v))
        candidates.link(u, v)
        for end in (u, v):
            degree[end] += 1
            room[end] -= 1
    return links


class _Candidates:
    """The pairs that may be linked and would join something, with what they contribute. It only falls."""

    def __init__(self, pieces: list[list[list[int]]], nodes: int, centre: int, banned: AbstractSet[Link]) -> None:
        self._centre = centre
        self._pairs = Pairs(pieces, nodes) if centre < 0 else None
        self._partners = Partners(pieces, nodes, centre) if centre >= 0 else None
        among = range(nodes)
        every = (
            [(u, v) for u in among for v in range(u + 1, nodes)]
            if centre < 0
            else [(min(node, centre), max(node, centre)) for node in among if node != centre]
        )
        self._links = [link for link in every if link not in banned]

    def weights(self) -> dict[Link, int]:
        """By pair, ascending."""
        found = {link: weight for link in self._links if (weight := self._weight(link))}
        self._links = list(found)
        return found

    def _weight(self, link: Link) -> int:
        if self._pairs is not None:
            return self._pairs.rows[link[0]][link[1]]
        assert self._partners is not None
        return self._partners.weights[self._other(link)]

    def _other(self, link: Link) -> int:
        return link[1] if link[0] == self._centre else link[0]

    def link(self, u: int, v: int) -> None:
        if self._pairs is not None:
            self._pairs.link(u, v)
        elif self._partners is not None:
            self._partners.link(self._other((u, v)))


def _least_excess(weights: dict[Link, int], room: Sequence[int]) -> dict[Link, int]:
    """Those that keep the caps, or where there are none those that take a node beyond its cap by the least."""
    beyond = {(u, v): (max(0, 1 - room[u]), max(0, 1 - room[v])) for u, v in weights}
    excess = {link: (max(ends), sum(ends)) for link, ends in beyond.items()}
    least = min(excess.values())
    return {link: weight for link, weight in weights.items() if excess[link] == least}


def _pick(weights: dict[Link, int], degree: Sequence[int], rho: float, limits: LinkLimits) -> Link:
    """The pick of each group, from cheap to dear; a dearer one replaces the present if over sigma times as good."""
    zones, highest = limits.zones, max(degree)
    cheap = {link: weight for link, weight in weights.items() if zones[link[0]] == zones[link[1]]}
    dear = {link: weight for link, weight in weights.items() if link not in cheap}
    picks = [_low_oda(group, degree, highest, rho) for group in (cheap, dear) if group]
    if len(picks) == 2 and weights[picks[1]] > limits.sigma * weights[picks[0]]:
        return picks[1]
    return picks[0]


def _low_oda(weights: dict[Link, int], degree: Sequence[int], highest: int, rho: float) -> Link:
    """Low-ODA, lines 8-14; ties go to the lowest pair."""
    best = max(weights, key=weights.__getitem__)
    friendly = [link for link in weights if degree[link[0]] < highest and degree[link[1]] < highest]
    if friendly:
        friend = max(friendly, key=weights.__getitem__)
        if weights[friend] * rho >= weights[best]:
            return friend
    return best
