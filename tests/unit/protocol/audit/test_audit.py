"""The audit by itself: labels of pieces, what is said about them while all is well, and what a rendezvous does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest

from omen.maintain.choosing import choose_links
from omen.protocol.audit.labels import BUCKETS, FEW
from omen.protocol.config import Config
from omen.protocol.events import SECOND, NodeId, Output, Received, Send, SetTimer, Time, Timer, TimerFired
from omen.protocol.messages.overlay import (
    Descriptor,
    Digest,
    LabelBuckets,
    LabelDigest,
    LabelUpdate,
    LinkProposal,
    LinkSeen,
    Message,
    PieceQuery,
    PieceReport,
)
from omen.protocol.node import OmenNode
from unit.protocol.contexts import ref

CONFIG = Config(audit=True, gossip_period=1000 * SECOND)
PERIOD = CONFIG.audit_period


class Small:
    """A few nodes, linked as said, all with the same topics; messages arrive at once, timers in order."""

    def __init__(self, links: list[tuple[int, int]], topics: int = 1) -> None:
        names = sorted({node for link in links for node in link})
        wanted = tuple(range(1, topics + 1))
        near = {node: sorted({a + b - node for a, b in links if node in (a, b)}) for node in names}
        described = {
            node: Descriptor(Digest(ref(node), 1, 1), wanted, tuple(ref(other) for other in near[node]))
            for node in names
        }
        self.cores: dict[int, OmenNode] = {}
        self.timers: dict[tuple[int, Timer], tuple[Time, int]] = {}
        self.sent: list[tuple[Time, int, int, Message]] = []
        self.now: Time = 0
        self._counter = 0
        for node in names:
            core = OmenNode(ref(node), wanted, CONFIG, random.Random(node), choose_links)
            others = [described[other] for other in names if other != node]
            core.preset(
                others, [(ref(other), ()) for other in near[node]], [ref(other) for other in names if other != node]
            )
            self.cores[node] = core
        for node, core in self.cores.items():
            self._obey(node, core.start(0))

    def _obey(self, node: int, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if isinstance(output, SetTimer):
                self._counter += 1
                self.timers[node, output.timer] = (self.now + output.delay, self._counter)
            elif isinstance(output, Send) and output.to in self.cores:
                self.sent.append((self.now, node, output.to, output.message))
                self.receive(output.to, node, output.message)

    def receive(self, node: int, sender: int, message: Message) -> None:
        self._obey(node, self.cores[node].handle(Received(sender, message), self.now))

    def pass_time(self, time: Time) -> None:
        end = self.now + time
        while self.timers:
            (node, timer), (at, _) = min(self.timers.items(), key=lambda entry: entry[1])
            if at > end:
                break
            self.now = at
            del self.timers[node, timer]
            self._obey(node, self.cores[node].handle(TimerFired(timer), self.now))
        self.now = end

    def drop(self, one: int, other: int, noticed: bool = False) -> None:
        """Both ends forget a link. `noticed`: something comes in, so that they look at their links."""
        for node, far in ((one, other), (other, one)):
            self.cores[node].drop_link(far)
            if noticed:
                self.receive(node, far, LinkSeen())

    def labels(self, topic: int = 1) -> dict[int, tuple[int, NodeId]]:
        return {node: core.status().labels[topic] for node, core in self.cores.items()}

    def links(self) -> set[tuple[int, int]]:
        neighbours = {node: core.status().neighbours() for node, core in self.cores.items()}
        return {(node, other) for node, others in neighbours.items() for other in others if node < other}

    def rendezvous(self) -> int:
        """The node that the leaders report to; with one topic there is one."""
        return next(to for _, _, to, message in reversed(self.sent) if isinstance(message, PieceReport))

    def counts(self, since: Time = 0) -> Counter[type]:
        return Counter(type(message) for at, _, _, message in self.sent if at >= since)


PATH = [(1, 2), (2, 3), (3, 4)]


def test_a_piece_agrees_on_one_label_and_its_leader_is_in_it() -> None:
    small = Small(PATH)
    small.pass_time(SECOND)
    assert set(small.labels().values()) == {(1, 4)}


def test_after_a_split_the_pieces_have_different_labels() -> None:
    small = Small(PATH)
    small.pass_time(SECOND)
    small.drop(2, 3, noticed=True)
    small.pass_time(SECOND)
    labels = small.labels()
    assert labels[1] == labels[2] == (2, 2)
    assert labels[3] == labels[4] == (2, 3)


def test_a_lost_link_that_splits_no_topic_leaves_one_label() -> None:
    small = Small([*PATH, (1, 4)])
    small.pass_time(SECOND)
    small.drop(2, 3, noticed=True)
    small.pass_time(SECOND)
    assert len(set(small.labels().values())) == 1


def test_a_split_that_no_node_noticed_is_repaired_within_two_periods() -> None:
    small = Small(PATH)
    small.pass_time(2 * PERIOD)
    small.drop(2, 3)
    small.pass_time(2 * PERIOD)
    assert len(set(small.labels().values())) == 1
    assert len(small.links()) == 3
    assert any(isinstance(message, LinkProposal) for _, _, _, message in small.sent)


def test_split_topics_are_counted_while_they_are_split_and_no_longer() -> None:
    small = Small(PATH)

    def split() -> int:
        return sum(core.status().split_topics for core in small.cores.values())

    small.pass_time(2 * PERIOD)
    assert split() == 0
    small.drop(2, 3)
    seen = 0
    for _ in range(200):
        small.pass_time(PERIOD // 100)
        seen = max(seen, split())
    assert seen == 1
    small.pass_time(3 * PERIOD)
    assert len(set(small.labels().values())) == 1
    assert split() == 0


def test_while_all_is_well_there_is_one_digest_per_link_and_period_and_reports_in_short() -> None:
    small = Small(PATH, topics=5)
    small.pass_time(3 * PERIOD)
    start = small.now
    small.pass_time(4 * PERIOD)
    counts = small.counts(start)
    assert counts[LabelDigest] == 2 * len(PATH) * 4
    assert counts[LabelUpdate] == counts[LabelBuckets] == counts[PieceQuery] == counts[LinkProposal] == 0
    reports = [message for at, _, _, message in small.sent if at >= start and isinstance(message, PieceReport)]
    assert reports and all(message.topics is None for message in reports)


def test_labels_travel_only_where_digests_differ() -> None:
    small = Small([(1, 2)], topics=FEW + 200)
    small.pass_time(3 * PERIOD)
    start = small.now
    small.receive(1, 2, LabelUpdate(((9, 2, (7,)),)))  # a label that 2 has never raised: it is not told of it
    small.pass_time(2 * PERIOD)
    told = [message for at, _, _, message in small.sent if at >= start and isinstance(message, LabelUpdate)]
    buckets = [message for at, _, _, message in small.sent if at >= start and isinstance(message, LabelBuckets)]
    assert len(buckets) >= 1 and all(len(message.digests) == BUCKETS for message in buckets)
    assert 0 < sum(len(topics) for message in told for _, _, topics in message.pieces) < (FEW + 200) // 4
    assert small.labels(7) == {1: (9, 2), 2: (9, 2)}


def test_labels_that_are_equal_in_both_pieces_do_not_stay_so() -> None:
    """No run of the protocol leads there; lies may. The leader's renewal shows which nodes are out of its reach."""
    small = Small(PATH)
    small.pass_time(SECOND)
    small.drop(2, 3, noticed=True)
    small.pass_time(SECOND)
    for node, neighbour in ((1, 2), (2, 1), (3, 4), (4, 3)):
        small.receive(node, neighbour, LabelUpdate(((5, 4, (1,)),)))
    assert set(small.labels().values()) == {(5, 4)}
    small.pass_time((3 * CONFIG.label_refresh + 8) * PERIOD)
    assert len(small.links()) == 3


def test_a_link_only_one_end_has_is_given_up() -> None:
    small = Small(PATH)
    small.pass_time(PERIOD)
    small.cores[2].drop_link(3)
    small.pass_time(2 * PERIOD)
    assert (2 in small.cores[3].status().neighbours()) == (3 in small.cores[2].status().neighbours())


def test_a_neighbour_whose_digests_do_not_come_is_given_up() -> None:
    small = Small([(1, 2)])
    small.pass_time(PERIOD)
    del small.cores[2]
    small.timers = {key: timer for key, timer in small.timers.items() if key[0] == 1}
    small.pass_time(8 * PERIOD)
    assert not small.cores[1].status().links


def test_a_rendezvous_asks_before_it_acts() -> None:
    small = Small(PATH)
    small.pass_time(2 * PERIOD)
    rendezvous = small.rendezvous()
    liar = 2 if rendezvous == 1 else 1
    start = small.now
    small.receive(rendezvous, liar, PieceReport(ref(liar), 77, (1,)))
    small.pass_time(PERIOD)
    assert small.counts(start)[PieceQuery] >= 1
    assert small.counts(start)[LinkProposal] == 0


@pytest.mark.parametrize(
    "message", [LabelDigest(1, 1, 1), LabelUpdate(((2**40, 9, (1,)),)), PieceQuery(ref(3), 1, (1, 2))]
)
def test_a_node_without_a_link_changes_no_label(message: Message) -> None:
    small = Small(PATH)
    small.pass_time(SECOND)
    before = small.labels()
    small.receive(1, 3, message)
    small.pass_time(SECOND)
    assert small.labels() == before


def test_a_late_digest_of_an_earlier_incarnation_costs_no_link() -> None:
    small = Small(PATH)
    small.pass_time(SECOND)
    small.receive(2, 1, LabelDigest(0, 0, 1))
    assert small.links() == set(PATH)
