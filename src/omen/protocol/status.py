"""A node as the outside sees it: metrics, monitors, pages and tests read this and no part of the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from omen.protocol.audit.labels import Label
from omen.protocol.config import Config
from omen.protocol.events import NodeId, RepairStage, Time, Topic
from omen.protocol.messages.base import Descriptor, EventId, EventKind, Ref
from omen.protocol.repair.links import LinkState

if TYPE_CHECKING:
    from omen.protocol.parts import Parts


class LinkStatus(NamedTuple):
    """One link as this end sees it."""

    ref: Ref
    state: LinkState

    @property
    def is_up(self) -> bool:
        return self.state is LinkState.UP


class BackupSetStatus(msgspec.Struct, frozen=True):
    """What a node keeps in case a predecessor fails (omen 4.3). `ready`: R(v')."""

    topics: frozenset[Topic]
    backups: tuple[NodeId, ...]
    lacking: frozenset[Topic]
    ready: bool


class RepairStatus(msgspec.Struct, frozen=True):
    """The repair that this node coordinates now."""

    event: EventId
    stage: RepairStage
    members: tuple[NodeId, ...]


class MembershipStatus(msgspec.Struct, frozen=True):
    """`predecessors` and `successors`: the L nearest on the ring, nearest first. `ring`: all that is kept of it.

    `known`: the descriptors of peers, `topic_sets` their topics as sets.
    """

    ring: Mapping[NodeId, Ref]
    predecessors: tuple[NodeId, ...]
    successors: tuple[NodeId, ...]
    sample: tuple[NodeId, ...]
    known: Mapping[NodeId, Descriptor]
    topic_sets: Mapping[NodeId, frozenset[Topic]]
    view: frozenset[NodeId]
    lookups: int
    seen_digests: int
    tombstones: int
    suspected: tuple[NodeId, ...]
    suspicions: int
    refutations: int


class RequestedTopics(msgspec.Struct, frozen=True):
    """What a node has asked its successor for: links in these topics, a repair in those."""

    added: tuple[Topic, ...]
    dropped: tuple[Topic, ...]


class RepairsStatus(msgspec.Struct, frozen=True):
    """Everything about repairs that is still open here."""

    current: RepairStatus | None
    queued: tuple[EventId, ...]
    standby: tuple[EventId, ...]
    pending: tuple[EventId, ...]
    handled: int
    loss_reports: tuple[EventId, ...]
    requests: Mapping[EventId, RequestedTopics]
    proposals: int
    links_on_trial: int
    path_probes: int

    @property
    def open_events(self) -> frozenset[EventId]:
        """The events this node waits to see handled: queued here, stood by for, or reported."""
        return frozenset((*self.queued, *self.standby, *self.loss_reports))


class StreamStatus(msgspec.Struct, frozen=True):
    """One stream at one node: all up to `settled` was delivered, passed over or told; `known`: the highest sequence
    heard of; `waits`: how long the oldest hole has been there, in microseconds.
    """

    settled: int
    known: int
    waits: int


StreamName = tuple[Topic, NodeId, int]


class DisseminationStatus(msgspec.Struct, frozen=True):
    """Publications kept and given up. `missing`: streams that lack something known of.

    `cuts`: how often bytes cut a window below the time a repair takes; `late`: publications that came after their gap.
    `not_held`: publications of this node's own that some neighbour never had, and that can no longer be had.
    `waiting`: streams subscribed to that wait for a hole, `lacking` so many publications together, `waits` so long in
    microseconds at most. `evictions`: how often a publisher made way for another. `refused`: publications with an
    impossible sequence.
    """

    topics: int
    publications: int
    bytes: int
    missing: int
    duplicates: int
    gaps: int
    evictions: int
    refused: int
    cuts: int
    late: int
    not_held: int
    waiting: int
    lacking: int
    waits: int


class StorageStatus(msgspec.Struct, frozen=True):
    """Stored records that this node keeps. `refused`: those that it had no room for."""

    records: int
    bytes: int
    refused: int


class OwnStatus(msgspec.Struct, frozen=True):
    """What the node itself adds to the state of its parts. `offences`: the points of peers that broke rules lately;
    `bans`: how long those that did too often are still dropped.
    """

    config: Config
    stopped: bool
    busy: bool
    refused: Mapping[str, int]
    offences: Mapping[NodeId, float]
    bans: Mapping[NodeId, Time]


class NodeStatus(msgspec.Struct, frozen=True):
    """One node at one moment. `wanted`: its topics once all it asked for is handled; `waiting`: those it is still to be
    linked in. `cut_topics`: how many topics the loss of this node would split, as far as it has seen. `labels`: of the
    piece of each topic that the node is in.

    A snapshot: nothing in it changes when the node goes on. Who looks often asks the node for single values instead
    (`protocol/shown.py`): a status copies what the node knows of its peers.
    """

    own: OwnStatus
    me: Descriptor
    wanted: frozenset[Topic]
    waiting: frozenset[Topic]
    leaving: bool
    links: Mapping[NodeId, LinkStatus]
    membership: MembershipStatus
    repairs: RepairsStatus
    backup_sets: Mapping[NodeId, BackupSetStatus]
    split_topics: int
    cut_topics: int
    led_topics: frozenset[Topic]
    labels: Mapping[Topic, Label]
    dissemination: DisseminationStatus
    storage: StorageStatus

    @property
    def config(self) -> Config:
        return self.own.config

    @property
    def links_above_max(self) -> int:
        """By how many links this node exceeds its `max_links`."""
        most = self.config.max_links
        return max(0, len(self.links) - most) if most else 0

    @property
    def stopped(self) -> bool:
        """Whether this node has left."""
        return self.own.stopped

    @property
    def busy(self) -> bool:
        """Whether this node has something to repair, to make or to report."""
        return self.own.busy

    @property
    def refused(self) -> Mapping[str, int]:
        """The messages that validation dropped, by reason."""
        return self.own.refused

    @property
    def offences(self) -> Mapping[NodeId, float]:
        """The points of peers that broke rules lately."""
        return self.own.offences

    @property
    def bans(self) -> Mapping[NodeId, Time]:
        """How long peers that broke rules too often are still dropped."""
        return self.own.bans

    @property
    def ref(self) -> Ref:
        return self.me.digest.ref

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics this node carries."""
        return self.me.topics

    def neighbours(self) -> list[NodeId]:
        """The far ends of the links that both ends agreed on."""
        return sorted(node for node, link in self.links.items() if link.is_up)

    @property
    def is_joining(self) -> bool:
        """Whether this node still waits for its first links."""
        return any(event.kind == EventKind.JOIN for event in self.repairs.requests)


class NodeSizes(NamedTuple):
    """How much a node keeps, as numbers alone. What comes after `path_probes` is work that is still open."""

    backup_sets: int
    sample: int
    ring: int
    handled: int
    known: int
    seen_digests: int
    path_probes: int
    queued: int
    standby: int
    pending: int
    loss_reports: int
    requests: int
    lookups: int
    proposals: int
    half_made_links: int
    links_on_trial: int


def links_status(parts: Parts) -> dict[NodeId, LinkStatus]:
    return {node: LinkStatus(link.ref, link.state) for node, link in parts.links.links.items()}


def _membership_status(parts: Parts) -> MembershipStatus:
    ring, table, detector = parts.ring, parts.peer_table, parts.failure_detector
    return MembershipStatus(
        ring=dict(ring.members),
        predecessors=tuple(ring.get_preds()),
        successors=tuple(ring.get_succs()),
        sample=tuple(parts.peer_sampling.view),
        known=dict(table.known),
        topic_sets=dict(table.topic_sets),
        view=frozenset(parts.views.get_view()),
        lookups=parts.ring_lookup.open_count,
        seen_digests=len(parts.views.seen),
        tombstones=len(table.tombstones),
        suspected=tuple(sorted(detector.suspected())),
        suspicions=detector.suspicions,
        refutations=detector.refuted,
    )


def _repairs_status(parts: Parts) -> RepairsStatus:
    queue, repair = parts.coordinator.event_queue, parts.coordinator.repair
    current = None if repair is None else RepairStatus(repair.event, repair.stage, tuple(sorted(repair.members)))
    return RepairsStatus(
        current=current,
        queued=tuple(queue.exe_q),
        standby=tuple(queue.standby),
        pending=tuple(queue.pending),
        handled=len(queue.handled),
        loss_reports=tuple(parts.loss_reports.open),
        requests={event: RequestedTopics(ask.added, ask.dropped) for event, ask in parts.requests.open.items()},
        proposals=sum(map(len, parts.shadow_member.proposals.values())),
        links_on_trial=parts.link_pruning.on_hand,
        path_probes=parts.link_pruning.passing_count,
    )


def backup_sets_status(parts: Parts) -> dict[NodeId, BackupSetStatus]:
    views = parts.views
    return {
        node: BackupSetStatus(shadow.topics, tuple(shadow.backups), frozenset(shadow.lacking), views.is_ready(node))
        for node, shadow in views.shadows.items()
    }


def take_status(parts: Parts, own: OwnStatus, dissemination: DisseminationStatus) -> NodeStatus:
    """A node as it is now."""
    requests, store = parts.requests, parts.storage.store
    return NodeStatus(
        own=own,
        me=parts.peer_table.me,
        wanted=frozenset(requests.wanted),
        waiting=frozenset(requests.waiting_for()),
        leaving=requests.departing,
        links=links_status(parts),
        membership=_membership_status(parts),
        repairs=_repairs_status(parts),
        backup_sets=backup_sets_status(parts),
        split_topics=parts.audit.rendezvous.count_split(),
        cut_topics=len(parts.connectivity.cut),
        led_topics=frozenset(parts.audit.labels.led()),
        labels=dict(parts.audit.labels.labels),
        dissemination=dissemination,
        storage=StorageStatus(len(store), store.bytes, store.refused),
    )
