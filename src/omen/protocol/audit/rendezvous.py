"""The rendezvous of a topic: hears of its pieces, and where there are two has them linked.

No paper has this. The node whose place on the ring follows the topic's hash hears from the leader of each piece;
reports expire. If it has two for a topic it asks both leaders, runs the greedy engine (Low-ODA) on all topics it
answers for that are split, with the pieces as components, and proposes the links. It waits a random part of the
period before that: a link that another rendezvous has made may have joined these pieces as well, and then
their leaders say so. Leaders also tell the labels of their other topics that changed lately: where those differ the
same link joins pieces of those topics too, so the engine counts them in, though no link is made for them alone.
"""

from __future__ import annotations

from itertools import zip_longest

import msgspec

from omen.kernels.engine import choose_within
from omen.protocol.audit.labels import FEW
from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, SplitTopicsLinked, Time, Timer, Topic
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.base import EventKind, LinkRules
from omen.protocol.messages.overlay import (
    EventId,
    LinkProposal,
    PieceQuery,
    PieceReply,
    PieceReport,
    PieceReportAck,
    Ref,
)
from omen.protocol.repair.link_rules import limits_of
from omen.protocol.repair.shadow_set import positions

LEADERS_AT_MOST = 4096
PERIODS_KEPT = 5  # halves: a report expires after two and a half periods


class KnownPiece(msgspec.Struct):
    """What one leader has said."""

    ref: Ref
    digest: int
    topics: frozenset[Topic]
    until: Time


class Inquiry(msgspec.Struct):
    """Leaders that were asked whether they still lead, and about what."""

    nonce: int
    asked: dict[NodeId, tuple[Topic, ...]]
    answers: dict[NodeId, PieceReply] = msgspec.field(default_factory=dict)
    tries: int = 0


class Hand(msgspec.Struct):
    """A member of pieces through which they can be linked. `pieces`: which one it is in, by topic. `rules`: what it
    says of its links.
    """

    ref: Ref
    degree: int
    pieces: dict[Topic, int] = msgspec.field(default_factory=dict)
    rules: LinkRules | None = None


class RendezvousTimer(Timer, frozen=True):
    """Topics that seem split are to be looked at."""


class PieceQueryTimer(Timer, frozen=True):
    """Leaders have had their time to answer."""

    nonce: int


class Rendezvous:
    """`pieces`: what was reported, by leader. `leaders`: who reports a piece of each topic."""

    def __init__(self, context: NodeContext, ring: Ring) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._random = context.random
        self._engine = context.engine
        self._out = context.out
        self._clock = context.clock
        self._ring = ring
        self.pieces: dict[NodeId, KnownPiece] = {}
        self.leaders: dict[Topic, set[NodeId]] = {}
        self.inquiry: Inquiry | None = None
        self._nonce = 0
        self._armed = False

    def expire(self) -> None:
        now = self._clock.now
        for leader in [leader for leader, report in self.pieces.items() if report.until <= now]:
            self._remove(leader)

    def count_split(self) -> int:
        """Topics that are reported in several pieces now; those whose leader says no more are not among them."""
        now = self._clock.now
        expired = {leader for leader, report in self.pieces.items() if report.until <= now}
        return sum(len(leaders - expired) > 1 for leaders in self.leaders.values())

    def on_report(self, _: NodeId, message: PieceReport) -> None:
        """A leader's report: all of it, or that it is what it was."""
        leader = message.me.id
        have = self.pieces.get(leader)
        until = self._clock.now + self._config.audit_period * PERIODS_KEPT // 2
        if message.topics is not None:
            self._remove(leader)
            if message.topics and len(self.pieces) < LEADERS_AT_MOST:
                self.pieces[leader] = KnownPiece(message.me, message.digest, frozenset(message.topics), until)
                for topic in message.topics:
                    self.leaders.setdefault(topic, set()).add(leader)
        elif have is not None and have.digest == message.digest and have.ref == message.me:
            have.until = until
        else:
            self._remove(leader)
        report = self.pieces.get(leader)
        start = self._ring.predecessors[0] if self._ring.predecessors else self._peer_table.id
        self._out.send(
            message.me, PieceReportAck(self._peer_table.ref, report.digest if report is not None else 0, start)
        )
        if report is not None and any(len(self.leaders[topic]) > 1 for topic in report.topics):
            self._arm()

    def _remove(self, leader: NodeId) -> None:
        report = self.pieces.pop(leader, None)
        if report is not None:
            for topic in report.topics:
                self._strike(topic, leader)

    def _strike(self, topic: Topic, leader: NodeId) -> None:
        leaders = self.leaders.get(topic)
        if leaders is not None:
            leaders.discard(leader)
            if not leaders:
                del self.leaders[topic]

    def _arm(self) -> None:
        if not self._armed and self.inquiry is None:
            self._armed = True
            period = self._config.audit_period
            self._out.set_timer(RendezvousTimer(), period // 20 + self._random.randrange(period // 2))

    def inquire(self, _: RendezvousTimer) -> None:
        """Ask the leaders of topics that seem to be in two pieces."""
        self._armed = False
        asked: dict[NodeId, list[Topic]] = {}
        for topic in sorted(topic for topic, leaders in self.leaders.items() if len(leaders) > 1):
            for leader in sorted(self.leaders[topic]):
                asked.setdefault(leader, []).append(topic)
        if asked:
            self._nonce += 1
            self.inquiry = Inquiry(self._nonce, {leader: tuple(topics) for leader, topics in asked.items()})
            self._ask_silent(self._nonce)

    def on_query_timer(self, timer: PieceQueryTimer) -> None:
        self._ask_silent(timer.nonce)

    def _ask_silent(self, nonce: int) -> None:
        """Ask those who have not answered, a few times; then do without them."""
        inquiry = self.inquiry
        if inquiry is None or inquiry.nonce != nonce:
            return
        inquiry.tries += 1
        if inquiry.tries > self._config.attempts:
            self._decide(inquiry)
            return
        for leader, topics in inquiry.asked.items():
            if leader not in inquiry.answers and leader in self.pieces:
                self._out.send(self.pieces[leader].ref, PieceQuery(self._peer_table.ref, nonce, topics))
        self._out.set_timer(PieceQueryTimer(nonce), self._config.answer_timeout)

    def on_reply(self, _: NodeId, message: PieceReply) -> None:
        inquiry = self.inquiry
        if inquiry is None or message.nonce != inquiry.nonce or message.me.id not in inquiry.asked:
            return
        asked = len(inquiry.asked[message.me.id])
        told = asked + len(message.near)
        if int.from_bytes(message.led, "little") >> asked or len(message.near) > FEW:
            return
        if any(int.from_bytes(bits, "little") >> told for _, _, bits in message.hands):
            return
        inquiry.answers[message.me.id] = message
        if len(inquiry.answers) == len(inquiry.asked):
            self._decide(inquiry)

    def _decide(self, inquiry: Inquiry) -> None:
        """Have the pieces linked that are still led; strike the others."""
        self.inquiry = None
        led: dict[Topic, list[NodeId]] = {}
        for leader, topics in inquiry.asked.items():
            answer = inquiry.answers.get(leader)
            if answer is None:
                self._remove(leader)
                continue
            still = {topics[position] for position in positions(answer.led)}
            for topic in topics:
                if topic in still:
                    led.setdefault(topic, []).append(leader)
                elif leader in self.pieces:
                    self._strike(topic, leader)
                    self.pieces[leader].digest = 0
        split = {topic for topic, leaders in led.items() if len(leaders) > 1}
        if split:
            self._have_linked(inquiry, split)
            self._arm()  # to see whether that was enough: a node that leads no more says so

    def _have_linked(self, inquiry: Inquiry, split: set[Topic]) -> None:
        hands = _gather_hands(inquiry, split)
        nodes = sorted(
            node for node, hand in hands.items() if hand.pieces and not self._peer_table.is_declared_failed(hand.ref)
        )
        codes = {topic: code for code, topic in enumerate(sorted({t for node in nodes for t in hands[node].pieces}))}
        rows = [sorted(hands[node].pieces.items()) for node in nodes]
        topics_of = [[codes[topic] for topic, _ in row] for row in rows]
        labels_of = [[label for _, label in row] for row in rows]
        degrees = [hands[node].degree for node in nodes]
        rules = {node: rule for node in nodes if (rule := hands[node].rules) is not None}
        limits = limits_of(nodes, rules, dict(zip(nodes, degrees, strict=True)), self._config.sigma)
        if limits is None:
            pairs = self._engine(topics_of, labels_of, degrees, self._config.rho, -1)
        else:
            pairs = choose_within(topics_of, labels_of, degrees, self._config.rho, limits)
        chosen = _joining([(hands[nodes[one]], hands[nodes[other]]) for one, other in pairs], split)
        event = EventId(self._peer_table.id, self._peer_table.ref.incarnation, EventKind.AUDIT, inquiry.nonce)
        for one, other in chosen:
            self._out.send(one.ref, LinkProposal(self._peer_table.ref, event, 0, other.ref))
            self._out.send(other.ref, LinkProposal(self._peer_table.ref, event, 0, one.ref))
        links = tuple((one.ref.id, other.ref.id) for one, other in chosen)
        self._out.notify(SplitTopicsLinked(links, tuple(sorted(split))))


def _gather_hands(inquiry: Inquiry, split: set[Topic]) -> dict[NodeId, Hand]:
    """Whom to link: for topics that are split the piece goes by its leader, for those near it by the label's hash."""
    hands: dict[NodeId, Hand] = {}
    for leader in sorted(inquiry.answers):
        answer = inquiry.answers[leader]
        asked = [(topic, leader, topic in split) for topic in inquiry.asked[leader]]
        told = asked + [(topic, label, topic not in split) for topic, label in answer.near]
        for (ref, degree, bits), rules in zip_longest(answer.hands, answer.rules[: len(answer.hands)]):
            hand = hands.setdefault(ref.id, Hand(ref, degree, rules=rules))
            for topic, piece, counts in (told[position] for position in positions(bits)):
                if counts:
                    hand.pieces.setdefault(topic, piece)
    return hands


def _joining(pairs: list[tuple[Hand, Hand]], split: set[Topic]) -> list[tuple[Hand, Hand]]:
    """Of the links the engine chose, in its order, those that join pieces of topics that are split."""
    parents: dict[tuple[Topic, int], tuple[Topic, int]] = {}

    def find(piece: tuple[Topic, int]) -> tuple[Topic, int]:
        while (parent := parents.get(piece, piece)) != piece:
            piece = parent
        return piece

    chosen = []
    for one, other in pairs:
        shared = [topic for topic in one.pieces.keys() & other.pieces.keys() if topic in split]
        roots = [(find((topic, one.pieces[topic])), find((topic, other.pieces[topic]))) for topic in shared]
        joined = [(root, far) for root, far in roots if root != far]
        parents.update(joined)
        if joined:
            chosen.append((one, other))
    return chosen
