"""What one search has seen around a node: the pieces of each topic without that node, and the links to join them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, compress
from statistics import median_low

import msgspec

from omen.protocol.events import Engine, NodeId, Topic
from omen.protocol.messages.overlay import Ref

Pair = tuple[NodeId, NodeId]
"""Two nodes, the lower one first."""
Barred = Mapping[NodeId, AbstractSet[NodeId]]
"""To which nodes a node is not to be linked; each pair stands at both ends."""
NOTHING: Barred = {}


class Seen(msgspec.Struct, frozen=True):
    """A node that was asked, or of which something is known although it does not answer.

    `topics`: those of the search that it has. `links`: its neighbours, and which of these topics each of them has. Both
    are bits, at the positions that the topics have in the search. `full`: it takes no more links. `forbid`: it
    takes none to these nodes.
    """

    ref: Ref
    topics: int
    links: Mapping[NodeId, tuple[Ref, int]]
    degree: int
    full: bool = False
    forbid: tuple[NodeId, ...] = ()


MANY_TIMES = 1.5
"""A node with more links than this many times those of its surroundings is linked only where no other will do."""
_UNNAMED: tuple[None, int] = (None, 0)
NOBODY: frozenset[NodeId] = frozenset()
_DIGITS = bytes(int(code == ord("1")) for code in range(256))


class Surroundings:
    """`near`: the neighbours of the searching node, and the topics of the search that each has.

    Topics are bits wherever all are looked at in one go: a search may have hundreds of them, and a hundred nodes.
    """

    def __init__(self, centre: NodeId, topics: Iterable[Topic], near: Mapping[NodeId, frozenset[Topic]]) -> None:
        self._centre = centre
        self.topics = tuple(sorted(topics))
        self._bits = bits_by_topic(self.topics)
        self._near = {node: bits_of(shared, self._bits) for node, shared in near.items()}
        self.seen: dict[NodeId, Seen] = {}
        self._met: dict[NodeId, Ref] = {}

    def add(self, seen: Seen) -> None:
        self.seen[seen.ref.id] = seen
        for node, (ref, _) in seen.links.items():
            self._met.setdefault(node, ref)

    def bits_of(self, topics: frozenset[Topic]) -> int:
        """These topics, those of the search among them, as bits."""
        return bits_of(topics, self._bits)

    def reader_of(self, asked: tuple[Topic, ...]) -> Callable[[int], int]:
        """What turns the bits of an answer, one for each topic asked for, into those of the search."""
        places = [self._bits[topic] for topic in asked]
        return lambda bits: _spread(bits, places)

    def apart(self) -> dict[Topic, dict[NodeId, NodeId]]:
        """The topics whose neighbours do not reach each other by what was seen; for each node the root of its piece."""
        links = self._agreed_links()
        cut = self._unreached(links)
        return {topic: self._pieces(bit, links) for topic, bit in self._bits.items() if cut & bit}

    def _agreed_links(self) -> list[tuple[NodeId, NodeId, int]]:
        """The links that count, each once, and in which topics.

        One to the searching node does not, nor one that the far end was asked about and does not name.
        """
        found, everyone, centre = [], self.seen, self._centre
        for node, seen in everyone.items():
            for other, (_, shared) in seen.links.items():
                bits = seen.topics & shared
                far = everyone.get(other)
                if far is not None:
                    bits = bits & far.topics & far.links.get(node, _UNNAMED)[1] if node <= other else 0
                if bits and other != centre:
                    found.append((node, other, bits))
        return found

    def _unreached(self, links: Iterable[tuple[NodeId, NodeId, int]]) -> int:
        """The topics in which the first neighbour that has it does not reach all others: outwards from these first
        ones, all topics at once, each until its neighbours are reached.
        """
        adjacent = self._through(links)
        reached: dict[NodeId, int] = {}
        begun = 0
        for node, bits in self._near.items():
            reached[node] = bits & ~begun
            begun |= bits
        news = dict(reached)
        cut = self._cut(reached)
        while news and cut:
            gained: dict[NodeId, int] = {}
            for node, fresh in news.items():
                for other, bits in adjacent[node]:
                    more = fresh & bits
                    if more:
                        has = reached.get(other, 0)
                        more &= ~has
                        if more:
                            reached[other] = has | more
                            gained[other] = gained.get(other, 0) | more
            cut = self._cut(reached)
            news = {node: fresh & cut for node, fresh in gained.items() if fresh & cut}
        return cut

    def _cut(self, reached: Mapping[NodeId, int]) -> int:
        cut = 0
        for node, bits in self._near.items():
            cut |= bits & ~reached[node]
        return cut

    def _through(self, links: Iterable[tuple[NodeId, NodeId, int]]) -> dict[NodeId, list[tuple[NodeId, int]]]:
        """The links of each node, without those to nodes that only one node names: no way leads through these."""
        adjacent: dict[NodeId, list[tuple[NodeId, int]]] = {node: [] for node in (*self._near, *self.seen)}
        outside: dict[NodeId, list[tuple[NodeId, int]]] = {}
        for one, other, bits in links:
            if other in adjacent:
                adjacent[one].append((other, bits))
                adjacent[other].append((one, bits))
            elif other in outside:
                outside[other].append((one, bits))
            else:
                outside[other] = [(one, bits)]
        for node, ways in outside.items():
            if len(ways) > 1:
                adjacent[node] = ways
                for one, bits in ways:
                    adjacent[one].append((node, bits))
        return adjacent

    def _pieces(self, bit: int, links: Iterable[tuple[NodeId, NodeId, int]]) -> dict[NodeId, NodeId]:
        """Each node seen in a topic, and the lowest one of its piece."""
        parent = {node: node for node, topics in self._near.items() if topics & bit}
        for one, other in [(one, other) for one, other, bits in links if bits & bit]:
            near, far = _root(parent, one), _root(parent, other)
            if near != far:
                parent[max(near, far)] = min(near, far)
        return {node: _root(parent, node) for node in parent}

    def frontier(self, apart: Mapping[Topic, Mapping[NodeId, NodeId]], barred: Barred = NOTHING) -> dict[NodeId, Ref]:
        """Whom to ask next: the nodes at the edge of every piece but the largest. Of that one too where none that was
        asked there can be linked to another piece, since they are full or the links are barred: further off one may.
        """
        wanted: dict[NodeId, Ref] = {}
        for topic, roots in apart.items():
            sizes: dict[NodeId, int] = {}
            for root in roots.values():
                sizes[root] = sizes.get(root, 0) + 1
            bit = self._bits[topic]
            near = {roots[node] for node, topics in self._near.items() if topics & bit}
            largest = max(near, key=lambda root: (sizes[root], -root))
            takers = [node for node in roots if roots[node] in near and self._takes(topic, node)]
            ends = [node for node in takers if roots[node] == largest and node in self.seen]
            others = [node for node in takers if roots[node] != largest]
            if ends if not others else _first_free(ends, others, barred):
                near.discard(largest)
            for node, root in roots.items():
                if root in near and node not in self.seen and node in self._met:
                    wanted[node] = self._met[node]
        return wanted

    def barred(self, in_vain: Iterable[Pair] = ()) -> Barred:
        """The links not to be proposed: those that an end forbids, and those proposed in vain."""
        found: dict[NodeId, set[NodeId]] = {}
        forbidden = ((node, other) for node, seen in self.seen.items() for other in seen.forbid)
        for one, other in (*in_vain, *forbidden):
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
        return found

    def plan(
        self,
        apart: Mapping[Topic, Mapping[NodeId, NodeId]],
        engine: Engine,
        rho: float,
        barred: Barred = NOTHING,
    ) -> list[tuple[Ref, Ref]]:
        """The links that join what is apart, by the greedy rule. `barred`: those that others take the place of.

        First among nodes of about as many links as those around them: one that has many topics is worth most in every
        search around it, and without this all of them would link it. What these cannot join all are asked to.
        """
        takers = [node for node, seen in self.seen.items() if not seen.full]
        usual = MANY_TIMES * median_low(self.seen[node].degree for node in takers) if takers else 0
        moderate = [node for node in takers if self.seen[node].degree <= usual]
        chosen = self._greedy(moderate, apart, engine, rho)
        if len(moderate) < len(takers) and (left := self._left(apart, chosen)):
            chosen += self._greedy(takers, left, engine, rho)
        if any(_is_barred(pair, barred) for pair in chosen):
            chosen = self._without(chosen, apart, barred)
        return [(self._ref(one), self._ref(other)) for one, other in chosen]

    def _greedy(
        self, among: Iterable[NodeId], apart: Mapping[Topic, Mapping[NodeId, NodeId]], engine: Engine, rho: float
    ) -> list[Pair]:
        """The links among these nodes that the greedy rule takes."""
        nodes, order = sorted(among), sorted(apart)
        coded = [(code, self._bits[topic]) for code, topic in enumerate(order)]
        rows = [[code for code, bit in coded if self.seen[node].topics & bit] for node in nodes]
        labels = [[apart[order[code]].get(node, node) for code in row] for node, row in zip(nodes, rows, strict=True)]
        degrees = [self.seen[node].degree for node in nodes]
        pairs = engine(*self._near_pieces(rows, labels, order, apart), degrees, rho, -1)
        return [pair_of(nodes[one], nodes[other]) for one, other in pairs]

    def _left(
        self, apart: Mapping[Topic, Mapping[NodeId, NodeId]], chosen: Iterable[Pair]
    ) -> dict[Topic, dict[NodeId, NodeId]]:
        """The topics whose neighbours would be apart with these links too, and their pieces then."""
        left = {}
        for topic, roots in apart.items():
            bit, parent = self._bits[topic], dict(roots)
            for one, other in chosen:
                if self._has(one, bit, roots) and self._has(other, bit, roots):
                    near, far = _root(parent, one), _root(parent, other)
                    parent[max(near, far)] = min(near, far)
            joined = {node: _root(parent, node) for node in parent}
            if len({joined[node] for node, topics in self._near.items() if topics & bit}) > 1:
                left[topic] = joined
        return left

    def _without(
        self, chosen: Iterable[Pair], apart: Mapping[Topic, Mapping[NodeId, NodeId]], barred: Barred
    ) -> list[Pair]:
        """The chosen links that are not barred. What those that are would have joined, topic by topic, is joined by
        others, whichever pieces these lead through: the links with the fewest links at their ends first, and those to
        nodes that were only met, and not asked, last.
        """
        given_up = [pair for pair in chosen if _is_barred(pair, barred)]
        found = dict.fromkeys(pair for pair in chosen if not _is_barred(pair, barred))
        concerned = {topic: roots for topic, roots in apart.items() if self._joins_any(topic, roots, given_up)}
        for topic, roots in concerned.items():
            left = self._left({topic: roots}, found).get(topic)
            if left is not None:
                found.update(dict.fromkeys(self._join(topic, left, barred)))
        return list(found)

    def _joins_any(self, topic: Topic, roots: Mapping[NodeId, NodeId], pairs: Iterable[Pair]) -> bool:
        """Whether one of these would join pieces of the topic."""
        bit = self._bits[topic]
        return any(
            roots.get(one, one) != roots.get(other, other)
            and self._has(one, bit, roots)
            and self._has(other, bit, roots)
            for one, other in pairs
        )

    def _has(self, node: NodeId, bit: int, roots: Mapping[NodeId, NodeId]) -> bool:
        """Whether a node has a topic, as far as known: one that was only met has those by which it was."""
        return bool(self.seen[node].topics & bit) if node in self.seen else node in roots

    def _join(self, topic: Topic, roots: Mapping[NodeId, NodeId], barred: Barred) -> list[Pair]:
        """Links that join the neighbours' pieces of one topic, as far as there are any."""
        bit = self._bits[topic]
        concerned = {roots[node] for node, has in self._near.items() if has & bit}
        takers = [node for node in roots if roots[node] in concerned and self._takes(topic, node)]
        pieces: dict[NodeId, list[NodeId]] = {}
        for node in sorted(_with_another(takers, roots, barred), key=self._burden):
            pieces.setdefault(roots[node], []).append(node)
        parent = {root: root for root in pieces}
        found: list[tuple[tuple[int, int], Pair]] = []
        for one, other in combinations(sorted(pieces), 2):
            free = _first_free(pieces[one], pieces[other], barred)
            if free is not None:
                unmet, links = zip(*(self._burden(node)[:2] for node in free), strict=True)
                found.append(((sum(unmet), sum(links)), pair_of(*free)))
        taken = []
        for _, pair in sorted(found):
            near, far = (_root(parent, roots[node]) for node in pair)
            if near != far:
                parent[max(near, far)] = min(near, far)
                taken.append(pair)
        return taken

    def _takes(self, topic: Topic, node: NodeId) -> bool:
        seen = self.seen.get(node)
        if seen is None:
            return node in self._met
        return bool(seen.topics & self._bits[topic]) and not seen.full

    def _burden(self, node: NodeId) -> tuple[int, int, NodeId]:
        """Those that were asked first, then by links."""
        seen = self.seen.get(node)
        return (1, 0, node) if seen is None else (0, seen.degree, node)

    def _ref(self, node: NodeId) -> Ref:
        return self.seen[node].ref if node in self.seen else self._met[node]

    def _near_pieces(
        self,
        rows: Sequence[Sequence[int]],
        labels: Sequence[Sequence[NodeId]],
        order: Sequence[Topic],
        apart: Mapping[Topic, Mapping[NodeId, NodeId]],
    ) -> tuple[list[list[int]], list[list[NodeId]]]:
        """Only pieces that hold a neighbour need to be joined."""
        near = [
            {apart[topic][node] for node, topics in self._near.items() if topics & self._bits[topic]} for topic in order
        ]
        kept = [
            [(code, label) for code, label in zip(row, named, strict=True) if label in near[code]]
            for row, named in zip(rows, labels, strict=True)
        ]
        return [[code for code, _ in row] for row in kept], [[label for _, label in row] for row in kept]


def _is_barred(pair: Pair, barred: Barred) -> bool:
    return pair[1] in barred.get(pair[0], NOBODY)


def _with_another(takers: Iterable[NodeId], roots: Mapping[NodeId, NodeId], barred: Barred) -> list[NodeId]:
    """Those of these that can be linked to one in another piece. Around a hub few may be, and each pair of the others
    need not be looked at.
    """
    members: dict[NodeId, set[NodeId]] = {}
    for node in takers:
        members.setdefault(roots[node], set()).add(node)
    everyone = frozenset[NodeId]().union(*members.values())
    return [node for node in takers if node not in barred or not everyone <= barred[node] | members[roots[node]]]


def _first_free(ends: Iterable[NodeId], others: Sequence[NodeId], barred: Barred) -> tuple[NodeId, NodeId] | None:
    """The first pair of these that is not barred. All may be: a fleet of two sites that only gateways link."""
    among = frozenset(others)
    for one in ends:
        banned = barred.get(one, NOBODY)
        if not among <= banned:
            return one, next(other for other in others if other not in banned)
    return None


def pair_of(one: NodeId, other: NodeId) -> Pair:
    return (one, other) if one < other else (other, one)


def bits_by_topic(topics: Sequence[Topic]) -> dict[Topic, int]:
    """The bit of each of these, the first one's lowest; one that is named twice has both."""
    bits: dict[Topic, int] = {}
    for position, topic in enumerate(topics):
        bits[topic] = bits.get(topic, 0) | 1 << position
    return bits


def bits_of(topics: frozenset[Topic], bits: Mapping[Topic, int]) -> int:
    """Those of these topics that have a bit."""
    return sum(map(bits.__getitem__, topics & bits.keys()))


def _spread(value: int, places: Sequence[int]) -> int:
    """The sum of the places whose bit is set, the first one's the lowest. By its binary digits: there are many."""
    return sum(compress(places, f"{value:b}"[::-1].encode().translate(_DIGITS)))


def _root(parent: dict[NodeId, NodeId], node: NodeId) -> NodeId:
    """The root of the piece of this node, which is a piece by itself so far where it is new."""
    above = parent.setdefault(node, node)
    while above != node:
        parent[node] = node = parent[above]
        above = parent[node]
    return node
