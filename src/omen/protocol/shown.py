"""What a node shows of itself: a frozen snapshot, and the few values that drivers and monitors ask for often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType

from omen.protocol.config import Config
from omen.protocol.context import Clock
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import Deliver, NodeId, Time, Topic
from omen.protocol.membership.conduct import Conduct
from omen.protocol.messages.base import EventId, Ref
from omen.protocol.messages.overlay import RepairRequest
from omen.protocol.messages.publications import StreamKey
from omen.protocol.parts import Parts
from omen.protocol.repair.links import UP, Links
from omen.protocol.status import (
    BackupSetStatus,
    LinkStatus,
    NodeSizes,
    NodeStatus,
    OwnStatus,
    StreamName,
    StreamStatus,
    backup_sets_status,
    links_status,
    take_status,
)


class ShownNode:
    """The part of a node's interface that changes nothing.

    What costs little is a copy. A mapping that monitors ask for often may be the node's own, and then it can be read
    alone: who keeps it sees it change.
    """

    config: Config
    stopped: bool
    _clock: Clock
    _contacts: tuple[Ref, ...]
    _dissemination: Dissemination
    _parts: Parts
    _refused: Counter[str]
    _conduct: Conduct
    _shown_links: tuple[Links, int, dict[NodeId, LinkStatus]] | None = None

    @property
    def ref(self) -> Ref:
        return self._parts.peer_table.ref

    @property
    def contacts(self) -> tuple[Ref, ...]:
        """The peers this incarnation joins through; none: it is the first of its overlay."""
        return self._contacts

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics this node carries."""
        return self._parts.peer_table.me.topics

    @property
    def wanted(self) -> frozenset[Topic]:
        """The topics of this node once everything it asked for is handled: as they are now."""
        return frozenset(self._parts.requests.wanted)

    @property
    def is_joining(self) -> bool:
        """Whether this node is on its way in, from before it has found its place until its join is handled."""
        return self._parts.requests.joining

    @property
    def has_ring(self) -> bool:
        """Whether this node knows another on the ring."""
        return bool(self._parts.ring.members)

    def estimate_nodes(self) -> int:
        """How many nodes there are, by how closely those around this one stand on the ring."""
        return self._parts.ring.estimate_nodes()

    @property
    def is_leaving(self) -> bool:
        return self._parts.requests.departing

    @property
    def is_busy(self) -> bool:
        """Whether this node has something to repair, to make or to report."""
        parts = self._parts
        queue = parts.coordinator.event_queue
        return bool(
            parts.requests.open
            or parts.loss_reports.open
            or queue.exe_q
            or queue.standby
            or parts.coordinator.repair
            or parts.shadow_member.proposals
            or parts.link_pruning.is_busy
        )

    @property
    def links_stamp(self) -> tuple[Ref, int]:
        """Equal as long as no link of this incarnation has come, gone or changed its state."""
        return self._parts.peer_table.ref, self._parts.links.changes

    def links(self) -> Mapping[NodeId, LinkStatus]:
        """The links alone, for monitors that look at all nodes often; `status` has the rest.

        The same mapping as long as nothing has changed.
        """
        links, shown = self._parts.links, self._shown_links
        if shown is None or shown[0] is not links or shown[1] != links.changes:
            shown = self._shown_links = (links, links.changes, links_status(self._parts))
        return shown[2]

    @property
    def requests(self) -> Mapping[EventId, RepairRequest]:
        """What this node has asked its successor for, and is not yet handled."""
        return MappingProxyType(self._parts.requests.open)

    def has_declared_failed(self, ref: Ref) -> bool:
        """Whether this incarnation of a peer has ended, as far as this node knows."""
        return self._parts.peer_table.is_declared_failed(ref)

    @property
    def loss_reports(self) -> Collection[EventId]:
        """The losses this node still reports."""
        return self._parts.loss_reports.open.keys()

    @property
    def refused(self) -> Mapping[str, int]:
        """The messages that validation dropped, by reason."""
        return MappingProxyType(self._refused)

    def has_backups_for(self, node: NodeId, incarnation: int) -> bool:
        """Whether a backup set is kept for this incarnation of a peer."""
        known = self._parts.peer_table.known.get(node)
        return known is not None and known.digest.ref.incarnation == incarnation and node in self._parts.views.shadows

    @property
    def topic_sets(self) -> Mapping[NodeId, frozenset[Topic]]:
        """The topics of the peers that this node knows."""
        return MappingProxyType(self._parts.peer_table.topic_sets)

    def backup_sets(self) -> Mapping[NodeId, BackupSetStatus]:
        """What is kept in case a predecessor fails."""
        return backup_sets_status(self._parts)

    @property
    def backups_stamp(self) -> object:
        """Equal as long as no backup set, its readiness, or the topics known of peers have changed."""
        parts = self._parts
        views, table = parts.views, parts.peer_table
        ready = tuple(map(views.is_ready, views.shadows))
        return table.me.topics, views.version, table.version, ready

    def sizes(self) -> NodeSizes:
        """How much this node keeps, for monitors that hold bounds; `status` has what it is."""
        parts = self._parts
        queue, membership = parts.coordinator.event_queue, parts.peer_table
        return NodeSizes(
            len(parts.views.shadows),
            len(parts.peer_sampling.view),
            len(parts.ring.members),
            len(queue.handled),
            len(membership.known),
            len(parts.views.seen),
            parts.link_pruning.passing_count,
            len(queue.exe_q),
            len(queue.standby),
            len(queue.pending),
            len(parts.loss_reports.open),
            len(parts.requests.open),
            parts.ring_lookup.open_count,
            sum(map(len, parts.shadow_member.proposals.values())),
            sum(link.state is not UP for link in parts.links.links.values()),
            parts.link_pruning.on_hand,
        )

    @property
    def open_lookups(self) -> int:
        return self._parts.ring_lookup.open_count

    def kept(self, topic: Topic) -> list[Deliver]:
        """The publications of a topic that this node keeps."""
        return self._dissemination.kept(topic)

    def streams(self, past: bool = False) -> dict[StreamName, StreamStatus]:
        """How far each stream is, for those who look often. `past`: also of publishers silent for long."""
        return self._dissemination.streams(self._clock.now, past)

    def status(self) -> NodeStatus:
        """The node as it is now: all that the outside sees of it."""
        now = self._clock.now
        scores, bans = self._conduct.scores(now), self._conduct.bans(now)
        own = OwnStatus(self.config, self.stopped, self.is_busy, dict(self._refused), scores, bans)
        return take_status(self._parts, own, self._dissemination.status(self._clock.now))

    def next_publication(self, topic: Topic, now: Time) -> tuple[StreamKey, int, bool]:
        """What would be published on a topic now: of which stream, with which number, whether it opens a run.

        For a driver that signs it.
        """
        return self._dissemination.peek(topic, now)

    def keeps(self, key: StreamKey, sequence: int) -> bool:
        """Whether this publication has come before and is still kept, so that another with its number is dropped."""
        return self._dissemination.keeps(key, sequence)

    def room(self, topic: Topic, now: Time) -> int:
        """How many bytes may be published on a topic now without anybody falling behind."""
        return self._dissemination.room(topic, now)

    def not_held(self) -> int:
        """Publications of this node that some neighbour never had, and that can no longer be had."""
        return self._dissemination.not_held

    def is_linking(self, topic: Topic) -> bool:
        """Whether this node is still to be linked in a topic, or a loss in it is being repaired."""
        reports = self._parts.loss_reports.open.values()
        return topic in self._parts.requests.waiting_for() or any(topic in report.topics for report in reports)

    def unheld(self) -> int:
        """Publications of this node that not every neighbour on their tree has."""
        reports = self._parts.loss_reports.open.values()
        return self._dissemination.unheld({topic for report in reports for topic in report.topics})
