"""The state of one repair: the losses, the shadow set, its replies, and the links that follow (omen Alg. 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from omen.kernels.engine import LinkLimits, choose_within
from omen.protocol.events import Engine, NodeId, RepairStage, Topic
from omen.protocol.messages.base import EventKind, LinkRules
from omen.protocol.messages.overlay import EventId, LinkProposal, Ref, ShadowQuery, ShadowReply
from omen.protocol.repair.around import GIVEN_UP, TRIED_IN_VAIN, Lists, plan_around, plan_rest
from omen.protocol.repair.join_check import JoinCheck, Pair, needed_links
from omen.protocol.repair.led_walk import LedWalk
from omen.protocol.repair.link_rules import are_apart, limits_of


class Loss(msgspec.Struct):
    """A node that has failed or left, or topics that it gives up, and what is known of its former neighbours.

    `known` is false for a linked loss as long as its own coordinator has not told who its neighbours were.
    """

    event: EventId
    topics: set[Topic] = msgspec.field(default_factory=set)
    neighbours: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    backups: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    known: bool = True


class Repair(msgspec.Struct):
    """The state of one repair. `centre`: the node to be linked (join, added topics); None for a loss.

    `outer`: answers of nodes around the shadow set, `unheard` those still to answer, `widened` how many hops so far.
    `passed_over`: nodes that could have taken a newcomer in, had they answered. `agreed_by_both`: a link between two
    nodes that were heard counts only if both name it. `planned`: the new links of this round. `check`: what is asked
    again before it ends; `doubted`: links that were not confirmed then. `led`: the walk that is led from here.
    `in_vain`: links that were planned, and never made. `refused`: who was asked again after a refused connection, and
    in which attempt. `centre_rules`, `centre_links`: what the node to be linked says of its links, and how many it has.
    """

    event: EventId
    centre: Ref | None
    topics: set[Topic]
    losses: dict[NodeId, Loss] = msgspec.field(default_factory=dict)
    members: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    former: set[NodeId] = msgspec.field(default_factory=set)
    answers: dict[NodeId, ShadowReply] = msgspec.field(default_factory=dict)
    outer: dict[NodeId, ShadowReply] = msgspec.field(default_factory=dict)
    unheard: set[NodeId] = msgspec.field(default_factory=set)
    widened: int = 0
    asked: tuple[Topic, ...] = ()
    stage: RepairStage = RepairStage.WAITING
    attempt: int = 0
    tries: int = 0
    walks: int = 0
    walks_over: bool = False
    walking: frozenset[Topic] = frozenset()
    walked_for: set[Topic] = msgspec.field(default_factory=set)
    led: LedWalk | None = None
    gone: dict[NodeId, int] = msgspec.field(default_factory=dict)
    passed_over: dict[NodeId, Ref] = msgspec.field(default_factory=dict)
    inquiries: set[NodeId] = msgspec.field(default_factory=set)
    open_links: dict[Pair, set[NodeId]] = msgspec.field(default_factory=dict)
    under_way: set[Pair] = msgspec.field(default_factory=set)
    confirmed_by: set[NodeId] = msgspec.field(default_factory=set)
    made: list[tuple[NodeId, NodeId]] = msgspec.field(default_factory=list)
    agreed_by_both: bool = True
    planned: list[Pair] = msgspec.field(default_factory=list)
    check: JoinCheck = msgspec.field(default_factory=JoinCheck)
    doubted: set[Pair] = msgspec.field(default_factory=set)
    in_vain: Counter[Pair] = msgspec.field(default_factory=Counter)
    refused: dict[NodeId, int] = msgspec.field(default_factory=dict)
    centre_rules: LinkRules | None = None
    centre_links: int = 0

    def silent(self) -> list[NodeId]:
        """Members that have not answered yet."""
        return sorted(node for node in self.members if node not in self.answers)

    def address_of_silent(self, node: NodeId) -> str | None:
        """Where a member is asked that has not answered yet. Others may name another address."""
        return self.members[node].address if node in self.members and node not in self.answers else None

    def uncovered(self) -> list[Topic]:
        """For a join: the topics in which no member that answered can take the newcomer in."""
        if self.centre is None:
            return []
        has = self._settled()
        if self.has_walked():
            for answer in self._open_answers():
                has |= self._anchored(answer, has)
        return self._topics_without(has)

    def has_walked(self) -> bool:
        """Whether no walk is left to make: one for each topic that nobody settles found nobody, or there were too many.

        A member may give a topic up after a walk for others came back, and so leave one to look for.
        """
        return self.walks_over or self.walked_for.issuperset(self._topics_without(self._settled()))

    def unsettled(self) -> list[Topic]:
        """For a join: the topics that no member which answered has, but for such as wait to be linked themselves."""
        return self._topics_without(self._settled()) if self.centre is not None else []

    def _topics_without(self, has: int) -> list[Topic]:
        return [topic for position, topic in enumerate(self.asked) if not has >> position & 1]

    def _settled(self) -> int:
        """The topics that some member has and does not wait to be linked in, as bits."""
        has = 0
        for answer in self._open_answers():
            has |= int.from_bytes(answer.mine, "little") & ~int.from_bytes(answer.unsettled, "little")
        return has

    def _open_answers(self) -> Iterator[ShadowReply]:
        """The answers of members that may be linked to the newcomer."""
        centre, rules = self.centre, self.centre_rules
        for node, answer in self.answers.items():
            if centre is None or not are_apart(centre.id, rules, node, answer.rules):
                yield answer

    def _anchored(self, answer: ShadowReply, settled: int) -> int:
        """The topics in which a member can take the newcomer in, as bits.

        One that waits to be linked itself stands for no other, so it counts only where no other is to be found,
        and then two newcomers must not both count on each other: the one with the higher place may count on the lower.
        """
        mine, unsettled = int.from_bytes(answer.mine, "little"), int.from_bytes(answer.unsettled, "little")
        assert self.centre is not None
        return mine & ~(unsettled & settled if answer.me.id < self.centre.id else unsettled)

    def is_outrun(self) -> bool:
        """Whether a topic is left in which another newcomer, higher on the ring, is about to be linked."""
        missing = to_bits(self.asked, self.uncovered())
        return any(common_positions(missing, answer.unsettled) for answer in self.answers.values())

    def is_about(self, event: EventId) -> bool:
        """Whether this loss is repaired here, alone or along with another."""
        return event.node in self.losses and self.losses[event.node].event == event

    def is_in_part(self) -> bool:
        """Whether nobody could tell yet what a linked loss has left behind: it is asked for again before this ends.

        Its own repair does not know of this one. A node that gives topics up is there, and reports the loss itself.
        """
        return self.event.kind == EventKind.LEAVE and not all(loss.known for loss in self.losses.values())

    def claimed(self) -> list[EventId]:
        """The linked losses that are repaired along with this event: those known in full, and not linked to another
        that is not. What stands beyond that one was not asked, and its own repair is to count on this one.
        """
        more = left = {node for node, loss in self.losses.items() if not loss.known}
        while more := {
            node
            for node, loss in self.losses.items()
            if node not in left
            and (more & loss.neighbours.keys() or any(node in self.losses[one].neighbours for one in more))
        }:
            left = left | more
        return [loss.event for node, loss in self.losses.items() if node not in left]

    def is_lost(self, ref: Ref) -> bool:
        """Whether it is one of the losses. A node may have begun anew, and be a former neighbour of another loss."""
        loss = self.losses.get(ref.id)
        return loss is not None and ref.incarnation <= loss.event.incarnation

    def is_stranger(self, ref: Ref) -> bool:
        """Whether it is neither asked here nor lost."""
        return ref.id not in self.members and not self.is_lost(ref)

    def add_loss(self, loss: Loss) -> None:
        """A linked loss becomes part of this event: its former neighbours and topics come in.

        A node that gives topics up is not asked. Where it was a neighbour of the lost one in topics that it keeps, the
        loss is not this repair's to claim: its own repair asks it.
        """
        own = self.losses.get(self.event.node)
        if self.event.kind == EventKind.DROP and self.event.node in loss.neighbours and own is not None:
            loss.known = loss.known and own.topics >= loss.topics
        present = self.losses.setdefault(loss.event.node, loss)
        present.topics |= loss.topics
        present.neighbours.update(loss.neighbours)
        present.known |= loss.known
        self.topics |= loss.topics
        for node, ref in loss.neighbours.items():
            if not self.is_lost(ref):
                self.members[node] = ref
                self.former.add(node)
        for node, ref in loss.backups.items():
            if not self.is_lost(ref):
                self.members.setdefault(node, ref)
        lost = self.members.get(loss.event.node)
        if lost is not None and lost.incarnation <= loss.event.incarnation:
            del self.members[lost.id]
            self.answers.pop(lost.id, None)
            self.former.discard(lost.id)

    def question(self, me: Ref, has_ended: Callable[[Ref], bool]) -> ShadowQuery:
        """What the shadow set is asked: which nodes are lost, and which are there but give up topics."""
        lost = tuple(
            ref
            for loss in self.losses.values()
            if loss.event.kind == EventKind.LEAVE and has_ended(ref := Ref(loss.event.node, loss.event.incarnation, ""))
        )
        gone = {ref.id for ref in lost}
        fading = tuple(sorted(node for node in self.losses if node not in gone))
        return ShadowQuery(me, self.event, self.attempt, self.asked, lost, fading)

    def plan(self, engine: Engine, rho: float, halo: bool, sigma: float = 1.0) -> list[tuple[NodeId, NodeId]]:
        """Run the greedy engine on the shadow set; the links that make it topic-connected."""
        nodes, topics_of, labels_of = self._instance(halo)
        limits = self._limits(nodes, sigma)
        if limits is not None:
            return self._plan_within(limits, rho, halo)
        degrees = [self.answers[node].degree if node in self.answers else 0 for node in nodes]
        centre = nodes.index(self.centre.id) if self.centre is not None else -1
        pairs = engine(topics_of, labels_of, degrees, rho, centre)
        refused = {pair for pair, rounds in self.in_vain.items() if rounds >= TRIED_IN_VAIN}
        if not any(_pair(nodes[one], nodes[other]) in refused for one, other in pairs):
            return [(nodes[one], nodes[other]) for one, other in pairs]

        def choose(topics: Lists, labels: Lists) -> list[tuple[int, int]]:
            return engine(topics, labels, degrees, rho, centre)

        found = plan_around(refused, nodes, topics_of, labels_of, choose)
        rest = [(nodes[one], nodes[other]) for one, other in plan_rest(topics_of, labels_of, found, choose)]
        hopeful = [pair for pair in rest if self.in_vain[_pair(*pair)] < GIVEN_UP]
        return [*((nodes[one], nodes[other]) for one, other in found), *hopeful]

    def _instance(self, halo: bool) -> tuple[list[NodeId], Lists, Lists]:
        """The nodes that may get links, their topics, and the piece of each in each of them."""
        nodes = sorted(node for node in self.members if node in self.answers)
        if self.centre is None:
            return nodes, *self._pieces(nodes, halo)
        nodes = sorted({*nodes, self.centre.id})
        return nodes, *self._attach(nodes)

    def _limits(self, nodes: Sequence[NodeId], sigma: float) -> LinkLimits | None:
        """What members say of their links. A link to a node that leaves does not count: it is about to go."""
        rules = {node: rule for node in nodes if node in self.answers and (rule := self.answers[node].rules)}
        leaving = {
            node
            for node, loss in self.losses.items()
            if loss.event.kind == EventKind.LEAVE and node not in self.answers
        }
        links = {
            node: self.answers[node].degree - sum(other in leaving for other, _ in self.answers[node].links)
            for node in rules
        }
        if self.centre is not None and self.centre_rules is not None:
            rules[self.centre.id], links[self.centre.id] = self.centre_rules, self.centre_links
        return limits_of(nodes, rules, links, sigma)

    def _plan_within(self, limits: LinkLimits, rho: float, halo: bool) -> list[tuple[NodeId, NodeId]]:
        """The plan within caps, zones and bans. Where it would exceed a cap, or bans may leave a topic split, nodes
        around that were heard come in: they may have room, and the others may be linked to them.
        """
        nodes, found = self._choose_within(limits, rho, halo)
        if self.centre is None and self.outer and (limits.banned or limits.excess_of(found)):
            for node, answer in self.outer.items():
                self.members[node], self.answers[node] = answer.me, answer
            self.outer = {}
            wider = self._limits(self._instance(halo)[0], limits.sigma)
            assert wider is not None
            nodes, found = self._choose_within(wider, rho, halo)
        return [(nodes[one], nodes[other]) for one, other in found]

    def _choose_within(self, limits: LinkLimits, rho: float, halo: bool) -> tuple[list[NodeId], list[tuple[int, int]]]:
        nodes, topics_of, labels_of = self._instance(halo)
        degrees = [self.answers[node].degree if node in self.answers else 0 for node in nodes]
        centre = nodes.index(self.centre.id) if self.centre is not None else -1
        refused, given_up = (
            {
                (places[0], places[1])
                for pair, rounds in self.in_vain.items()
                if rounds >= most and len(places := sorted(nodes.index(node) for node in pair if node in nodes)) == 2
            }
            for most in (TRIED_IN_VAIN, GIVEN_UP)
        )
        found = choose_within(topics_of, labels_of, degrees, rho, limits.without(refused), centre)

        def choose(topics: Lists, labels: Lists) -> list[tuple[int, int]]:
            return choose_within(topics, labels, degrees, rho, limits.without(given_up), centre)

        return nodes, [*found, *(plan_rest(topics_of, labels_of, found, choose) if refused else ())]

    def note_in_vain(self) -> None:
        """These links were planned, and have not come about although both ends answer."""
        self.in_vain.update(_pair(*pair) for pair in self.open_links if pair in self.under_way)

    def proposals(self, me: Ref, pairs: Iterable[Pair]) -> Iterator[tuple[Ref, LinkProposal]]:
        """What is to be told to each end that has not confirmed its link."""
        refs = dict(self.members)
        if self.centre is not None:
            refs[self.centre.id] = self.centre
        for one, other in pairs:
            for end, far in ((one, other), (other, one)):
                if end not in self.open_links[one, other]:
                    yield refs[end], LinkProposal(me, self.event, self.attempt, refs[far])

    def has_both(self, pair: tuple[NodeId, NodeId]) -> bool:
        """Whether both ends of a planned link are still there."""
        centre = self.centre.id if self.centre is not None else None
        return all(end in self.members or end == centre for end in pair)

    def is_centre_silent(self) -> bool:
        """Whether the node to be linked has confirmed nothing: if it is there, it will ask again."""
        return self.centre is not None and self.centre.id not in self.confirmed_by

    def _attach(self, nodes: Sequence[NodeId]) -> tuple[list[list[int]], list[list[int]]]:
        """Before a join all present subscribers of a topic are one piece; the newcomer is another."""
        assert self.centre is not None
        newcomer = self.centre.id
        everything, settled = list(range(len(self.asked))), self._settled()
        topics_of = [
            everything if node == newcomer else _positions(self._anchored(self.answers[node], settled))
            for node in nodes
        ]
        labels_of = [[int(node == newcomer)] * len(topics) for node, topics in zip(nodes, topics_of, strict=True)]
        return topics_of, labels_of

    def strangers(self) -> dict[NodeId, list[NodeId]]:
        """Who around is worth asking, each with the node (the key) that named it first."""
        wanted = self._connectors() if self.centre is None else self._wide()
        found: dict[NodeId, list[NodeId]] = {}
        for node, answer in sorted((*self.answers.items(), *self.outer.items())):
            for other, _ in answer.links:
                if other in wanted:
                    wanted.discard(other)
                    found.setdefault(node, []).append(other)
        return found

    def _connectors(self) -> set[NodeId]:
        """After a loss: who might connect pieces that seem apart."""
        nodes = sorted(node for node in self.members if node in self.answers)
        parents = self._unite(nodes, True)
        wanted: set[NodeId] = set()
        for parent, roots in zip(parents, self._broken_off(parents, nodes), strict=True):
            if len(roots) > 1:
                wanted.update(node for node in parent if _find(parent, node) in roots)
        return wanted - self.answers.keys() - self.outer.keys() - self.losses.keys() - self.gone.keys()

    def _wide(self) -> set[NodeId]:
        """For a join: a cover of the newcomer's topics by as few as will do, so that few links can link it."""
        assert self.centre is not None
        seen: dict[NodeId, int] = {}
        for answer in self.answers.values():
            for other, bits in answer.links:
                seen[other] = seen.get(other, 0) | int.from_bytes(bits, "little")
        for node in (*self.members, *self.gone, self.centre.id):
            seen.pop(node, None)
        missing = (1 << len(self.asked)) - 1
        wanted: set[NodeId] = set()
        while missing and seen:
            best = min(seen, key=lambda node: (-(seen[node] & missing).bit_count(), node))
            if not seen[best] & missing:
                break
            wanted.add(best)
            missing &= ~seen.pop(best)
        return wanted

    def prunable_pairs(self, most: int) -> list[tuple[NodeId, NodeId]]:
        """Links inside the shadow set that either end might do without, those of the busiest ends first."""
        prunable = {node: set(answer.prunable) for node, answer in self.answers.items()}
        pairs = [
            (node, other)
            for node, others in prunable.items()
            for other in others
            if node < other and node in prunable.get(other, ())
        ]
        pairs.sort(key=lambda pair: (-self.answers[pair[0]].degree - self.answers[pair[1]].degree, pair))
        return pairs[:most]

    def _pieces(self, nodes: Sequence[NodeId], halo: bool) -> tuple[list[list[int]], list[list[int]]]:
        """The piece of each member in each topic, by the links that the members named.

        A backup whose visible piece of a topic holds no former neighbour is left out of that topic: every piece the
        loss broke off holds one, so joining theirs is enough, and joining more only costs links.
        """
        topics_of = [positions(self.answers[node].mine) for node in nodes]
        parents = self._unite(nodes, halo)
        broken_off = self._broken_off(parents, nodes)
        labelled = [
            [(topic, root) for topic in topics if (root := _find(parents[topic], node)) in broken_off[topic]]
            for node, topics in zip(nodes, topics_of, strict=True)
        ]
        return [[topic for topic, _ in row] for row in labelled], [[root for _, root in row] for row in labelled]

    def _unite(self, nodes: Sequence[NodeId], halo: bool) -> list[dict[NodeId, NodeId]]:
        """For each topic a forest over the nodes seen in it: those of a tree are connected by links seen."""
        parents: list[dict[NodeId, NodeId]] = [{} for _ in self.asked]
        for node in nodes:
            for topic in positions(self.answers[node].mine):
                parents[topic].setdefault(node, node)
        for node, other, shared in self._counted_links(nodes, halo):
            for topic in _positions(shared):
                _unite(parents[topic], node, other)
        return parents

    def _counted_links(self, nodes: Sequence[NodeId], halo: bool) -> Iterator[tuple[NodeId, NodeId, int]]:
        """The links counted on, by what was answered: who named it, the other end, the topics as bits."""
        inside = set(nodes)
        heard = self.outer | {node: self.answers[node] for node in nodes}
        named = {node: dict(answer.links) for node, answer in heard.items()}
        for node, answer in heard.items():
            for other, bits in answer.links:
                if other not in inside and (not halo or other in self.losses or other in self.gone):
                    continue
                if self.doubted and _pair(node, other) in self.doubted:
                    continue
                shared = int.from_bytes(answer.mine, "little") & int.from_bytes(bits, "little")
                if other in named and self.agreed_by_both:
                    # half made, half gone, or about to give a topic up: both ends must count on it
                    shared &= int.from_bytes(heard[other].mine, "little")
                    shared &= int.from_bytes(named[other].get(node, b""), "little")
                yield node, other, shared

    def begin_check(self, halo: bool) -> JoinCheck:
        """What has to be asked again before this repair of a loss ends; nothing for a join, whose links are confirmed.

        Links between former neighbours come first, then those whose ends were both heard: they cost fewest questions.
        """
        if self.centre is not None:
            self.check = JoinCheck()
            return self.check
        nodes = sorted(node for node in self.members if node in self.answers)
        mine = {node: int.from_bytes(self.answers[node].mine, "little") for node in nodes}
        former = {node: mine[node] for node in nodes if node in self.former}
        # One end of a planned link may be lost by now, and another take its place.
        fresh = {_pair(*pair): mine[pair[0]] & mine[pair[1]] for pair in self.planned if mine.keys() >= set(pair)}
        counted: dict[Pair, int] = {}
        for node, other, shared in self._counted_links(nodes, halo):
            if shared:
                counted[_pair(node, other)] = counted.get(_pair(node, other), 0) | shared

        def rank(pair: Pair) -> tuple[int, int, Pair]:
            unheard = sum(end not in mine and end not in self.outer for end in pair)
            return unheard, sum(end not in former for end in pair), pair

        self.check = needed_links(former, fresh, {pair: counted[pair] for pair in sorted(counted, key=rank)})
        return self.check

    def doubt(self, pairs: Iterable[Pair]) -> None:
        """Count on these links no more."""
        self.doubted.update(pairs)

    def way_to(self, witness: NodeId) -> tuple[Ref, bool]:
        """Whom to send a question to: the witness, or (false) a neighbour of it that passes the question on."""
        if witness in self.members:
            return self.members[witness], True
        if witness in self.outer:
            return self.outer[witness].me, True
        named = next(
            node for pair in self.check.needed if witness in pair for node in pair if self._is_heard(node, witness)
        )
        return (self.members[named] if named in self.members else self.outer[named].me), False

    def _is_heard(self, node: NodeId, witness: NodeId) -> bool:
        return node != witness and (node in self.members or node in self.outer)

    def _broken_off(self, parents: Sequence[dict[NodeId, NodeId]], nodes: Iterable[NodeId]) -> list[set[NodeId]]:
        """For each topic the pieces (by their roots) that hold a former neighbour."""
        former = self.former.intersection(nodes)
        return [{_find(parent, node) for node in former if node in parent} for parent in parents]


def _pair(one: NodeId, other: NodeId) -> Pair:
    return (one, other) if one < other else (other, one)


def _find(piece: dict[NodeId, NodeId], node: NodeId) -> NodeId:
    root = node
    while piece[root] != root:
        root = piece[root]
    while piece[node] != root:
        piece[node], node = root, piece[node]
    return root


def _unite(piece: dict[NodeId, NodeId], one: NodeId, other: NodeId) -> None:
    piece.setdefault(one, one)
    piece.setdefault(other, other)
    one, other = _find(piece, one), _find(piece, other)
    if one != other:
        piece[max(one, other)] = min(one, other)


def to_bits(asked: Sequence[Topic], topics: Iterable[Topic]) -> bytes:
    """Which of the asked topics are among these, as bits, the first topic lowest."""
    has = topics if isinstance(topics, (set, frozenset)) else set(topics)
    value = 0
    for position, topic in enumerate(asked):
        if topic in has:
            value |= 1 << position
    return value.to_bytes((len(asked) + 7) // 8, "little")


def positions(bits: bytes) -> list[int]:
    """The positions of the bits that are set."""
    return _positions(int.from_bytes(bits, "little"))


def common_positions(one: bytes, other: bytes) -> list[int]:
    """The positions set in both."""
    return _positions(int.from_bytes(one, "little") & int.from_bytes(other, "little"))


def _positions(value: int) -> list[int]:
    found = []
    while value:
        lowest = value & -value
        found.append(lowest.bit_length() - 1)
        value ^= lowest
    return found
