"""Which piece of a topic is this node in? A label for each topic, the same throughout a piece and in no other.

A label is (sequence, leader); the higher one wins, and spreads from neighbour to neighbour through the subscribers of
its topic. A node that loses a link that carried a topic raises its label: the next sequence, with itself as leader.
After a split each piece holds a node that lost a link, and has not been reached by what was raised in the others, so
the labels of two pieces differ; where nothing was split, the highest wins. The leader of a label is therefore in its
piece, unless it has gone since, and then its neighbours have raised theirs.

That holds from any state in which labels are as said. For all other states (memory that was damaged, messages of
another making) the leader renews its label now and then, and a node that has waited three times as long raises its own.

Cost while all is well: one digest a link and a period, over the labels of all topics the two share. Only where digests
differ do labels travel, and where many topics are shared only those of the buckets that differ.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Timer, Topic
from omen.protocol.messages.overlay import DescriptorRequest, LabelBuckets, LabelDigest, LabelUpdate, LinkClose, Ref
from omen.protocol.repair.links import Links

MASK = (1 << 64) - 1
FEW = 64
BUCKETS = 64
LEAP = 1 << 32  # a sequence this far ahead is no node's raise
SILENT_PERIODS = 4
RECENT_PERIODS = 2

Label = tuple[int, NodeId]


def mix(one: int, two: int = 0, three: int = 0) -> int:
    """A hash of three numbers, the same everywhere."""
    value = (
        one * 0x9E3779B97F4A7C15 + two * 0xC2B2AE3D27D4EB4F + three * 0x165667B19E3779F9 + 0x27D4EB2F165667C5
    ) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


class CarriedLabel(msgspec.Struct, frozen=True):
    """What a link carries: the topics of both ends, and those they share."""

    mine: frozenset[Topic]
    theirs: frozenset[Topic]
    topics: frozenset[Topic]


class LabelSpreadTimer(Timer, frozen=True):
    """Neighbours are to hear of labels that have changed."""


class PieceLabels:
    """`pending`: labels that a neighbour is still to hear. `led_changed`: this node leads other pieces than before."""

    def __init__(self, context: NodeContext, links: Links) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._links = links
        self._mine: frozenset[Topic] = frozenset()
        self.labels: dict[Topic, Label] = {}
        self._hashes: dict[Topic, int] = {}
        self._changed_in: dict[Topic, int] = {}
        self._carried: dict[NodeId, CarriedLabel] = {}
        self._checked_in: dict[NodeId, int] = {}
        self._period = 0
        self.pending: dict[NodeId, set[Topic]] = {}
        self.led_changed = False
        self._armed = False

    def note_reported(self) -> None:
        """The rendezvous are being told which pieces this node leads."""
        self.led_changed = False

    def led(self) -> list[Topic]:
        """The topics of whose piece this node is the leader."""
        me = self._peer_table.id
        return sorted(topic for topic, (_, leader) in self.labels.items() if leader == me)

    def leads(self, topic: Topic) -> bool:
        label = self.labels.get(topic)
        return label is not None and label[1] == self._peer_table.id

    def carriers(self, topics: Iterable[Topic]) -> list[tuple[NodeId, frozenset[Topic]]]:
        """The neighbours that share some of these topics, and which."""
        wanted = frozenset(topics)
        return [
            (node, carried.topics & wanted)
            for node, carried in sorted(self._carried.items())
            if not carried.topics.isdisjoint(wanted)
        ]

    def changed_lately(self) -> dict[Topic, int]:
        """The topics that may be split: those whose label has changed lately, a hash of it for each."""
        since = self._period - RECENT_PERIODS
        lately = sorted((-when, topic) for topic, when in self._changed_in.items() if when >= since)
        return {topic: self._hashes[topic] for _, topic in lately[:FEW]}

    def note_change(self) -> None:
        """Links have changed, or there is something to tell: soon look at it, once for all that happens meanwhile."""
        if not self._armed:
            self._armed = True
            self._out.set_timer(LabelSpreadTimer(), self._config.answer_timeout)

    def spread(self) -> None:
        """Take in what has changed, and tell the neighbours the labels they have not heard."""
        self._armed = False
        self._review()
        for node in sorted(self.pending):
            link = self._links.links.get(node)
            if link is not None and self.pending[node]:
                self._out.send(link.ref, LabelUpdate(self._grouped(self.pending[node])))
        self.pending.clear()

    def _grouped(self, topics: set[Topic]) -> tuple[tuple[int, NodeId, tuple[Topic, ...]], ...]:
        groups: dict[Label, list[Topic]] = {}
        for topic in sorted(topics):
            label = self.labels.get(topic)
            if label is not None:
                groups.setdefault(label, []).append(topic)
        return tuple((sequence, leader, tuple(groups[sequence, leader])) for sequence, leader in sorted(groups))

    def next_period(self) -> None:
        """Look at everything once more; one digest for each link."""
        self._period += 1
        self._review()
        self._renew()
        me = self._peer_table.me.digest
        for node in self._links.up():
            if self._period - self._checked_in.setdefault(node, self._period) > SILENT_PERIODS:
                self._links.close(node)
                continue
            digest = self._digest(self._carried[node].topics) if node in self._carried else 0
            self._out.send(self._links.links[node].ref, LabelDigest(digest, me.ref.incarnation, me.topics_version))
        self._checked_in = {node: when for node, when in self._checked_in.items() if node in self._links.links}

    def _digest(self, topics: Iterable[Topic]) -> int:
        hashes = self._hashes
        return sum(hashes[topic] for topic in topics) & MASK

    def _review(self) -> None:
        """Compare what each link carries with what it carried before; raise the labels of what was lost."""
        mine = self._peer_table.topics_of(self._peer_table.id)
        if mine is not self._mine:
            self._mine = mine
            for topic in [topic for topic in self.labels if topic not in mine]:
                del self.labels[topic], self._hashes[topic], self._changed_in[topic]
            for topic in sorted(mine - self.labels.keys()):
                self._set(topic, (1, self._peer_table.id))
        lost: set[Topic] = set()
        for node in [node for node in self._carried if not self._links.is_up(node)]:
            lost |= self._carried.pop(node).topics
        for node in self._links.up():
            lost |= self._follow(node, mine)
        for topic in sorted(lost & mine):
            self._set(topic, (self.labels[topic][0] + 1, self._peer_table.id))

    def _follow(self, node: NodeId, mine: frozenset[Topic]) -> frozenset[Topic]:
        """What a link that is up carries now; the topics it has lost."""
        theirs = self._peer_table.topics_of(node)
        before = self._carried.get(node)
        if before is not None and before.mine is mine and before.theirs is theirs:
            return frozenset()
        if not theirs and node not in self._peer_table.known:
            return frozenset()
        topics = mine & theirs
        had = before.topics if before is not None else frozenset()
        self._carried[node] = CarriedLabel(mine, theirs, topics)
        if not topics <= had:
            self._tell(node, topics - had)
        return had - topics

    def _set(self, topic: Topic, label: Label) -> None:
        me = self._peer_table.id
        before = self.labels.get(topic)
        if label[1] == me or (before is not None and before[1] == me):
            self.led_changed = True
        self.labels[topic] = label
        self._hashes[topic] = mix(topic, *label)
        self._changed_in[topic] = self._period
        for node, carried in self._carried.items():
            if topic in carried.topics:
                self._tell(node, (topic,))

    def _tell(self, node: NodeId, topics: Iterable[Topic]) -> None:
        self.pending.setdefault(node, set()).update(topics)
        self.note_change()

    def _renew(self) -> None:
        """A leader renews its label in time; a label that is not renewed belongs to no node here."""
        me, age = self._peer_table.id, self._config.label_refresh
        for topic, since in list(self._changed_in.items()):
            waited = self._period - since
            sequence, leader = self.labels[topic]
            if waited >= (age if leader == me else 3 * age):
                self._set(topic, (sequence + 1, me))

    def on_update(self, sender: NodeId, message: LabelUpdate) -> None:
        """Take the higher label; tell the other of it where ours is."""
        carried = self._carried.get(sender)
        if carried is None:
            self._review()
            carried = self._carried.get(sender)
            if carried is None:
                return
        for sequence, leader, topics in message.pieces:
            label = (sequence, leader)
            for topic in topics:
                ours = self.labels.get(topic)
                if ours is None or topic not in carried.topics or label == ours:
                    continue
                if label < ours:
                    self._tell(sender, (topic,))
                elif sequence < ours[0] + LEAP:
                    self._set(topic, label)
                    self.pending[sender].discard(topic)

    def on_digest(self, sender: NodeId, message: LabelDigest) -> None:
        """A neighbour's digest. One that has a link this node knows nothing of is told so.

        One of an earlier incarnation than the link's came late, or the link is to an incarnation that never began, by
        a message that lied: that one is given up when no other digest comes for some periods.
        """
        link = self._links.links.get(sender)
        if link is None:
            self._out.send(Ref(sender, message.incarnation, ""), LinkClose(self._peer_table.ref.incarnation))
            return
        if message.incarnation < link.ref.incarnation:
            return
        self._checked_in[sender] = self._period
        known = self._peer_table.known.get(sender)
        if known is None or known.digest.topics_version < message.topics_version:
            self._out.send(link.ref, DescriptorRequest(self._peer_table.ref, (sender,)))
        carried = self._carried.get(sender)
        if carried is None or self._digest(carried.topics) == message.digest:
            return
        if len(carried.topics) <= FEW:
            self._tell(sender, carried.topics)
        else:
            self._out.send(link.ref, LabelBuckets(tuple(self._bucket_digests(carried.topics))))

    def _bucket_digests(self, topics: Iterable[Topic]) -> list[int]:
        digests = [0] * BUCKETS
        for topic in topics:
            digests[mix(topic) % BUCKETS] += self._hashes[topic]
        return [digest & MASK for digest in digests]

    def on_buckets(self, sender: NodeId, message: LabelBuckets) -> None:
        carried = self._carried.get(sender)
        if carried is None or len(message.digests) != BUCKETS:
            return
        ours = self._bucket_digests(carried.topics)
        differ = {bucket for bucket in range(BUCKETS) if ours[bucket] != message.digests[bucket]}
        if differ:
            self._tell(sender, (topic for topic in carried.topics if mix(topic) % BUCKETS in differ))
