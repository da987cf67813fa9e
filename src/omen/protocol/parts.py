"""The parts of one incarnation of a node, made in the order in which they rely on each other."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from omen.protocol.audit.audit import Audit
from omen.protocol.connectivity.connectivity import Connectivity
from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, TimerHandlers
from omen.protocol.membership.connections import Connections, Incarnations, OwnDescriptor
from omen.protocol.membership.failure_detector import FailureDetector
from omen.protocol.membership.gossip import Gossip
from omen.protocol.membership.join_leave import JoinLeave
from omen.protocol.membership.lost_peers import LostPeer, LostPeers
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import PeerTable, Registry
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.membership.ring_merge import RingMerge
from omen.protocol.repair.coordinator import Coordinator
from omen.protocol.repair.link_pruning import LinkPruning
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports
from omen.protocol.repair.requests import Requests
from omen.protocol.repair.shadow_member import ShadowMember
from omen.protocol.repair.views import Views
from omen.protocol.storage.storage import Storage
from omen.protocol.storage.store import RecordStore


class Parts(msgspec.Struct, frozen=True):
    """What a node consists of, but for its dissemination, which outlasts incarnations."""

    peer_table: PeerTable
    ring: Ring
    links: Links
    views: Views
    peer_sampling: PeerSampling
    gossip: Gossip
    ring_lookup: RingLookup
    ring_merge: RingMerge
    failure_detector: FailureDetector
    lost_peers: LostPeers
    coordinator: Coordinator
    loss_reports: LossReports
    descriptor: OwnDescriptor
    requests: Requests
    join_leave: JoinLeave
    link_pruning: LinkPruning
    shadow_member: ShadowMember
    connections: Connections
    incarnations: Incarnations
    audit: Audit
    connectivity: Connectivity
    storage: Storage

    def handlers(self) -> Handlers:
        """The messages that one part alone handles."""
        return {
            **self.peer_sampling.handlers(),
            **self.gossip.handlers(),
            **self.failure_detector.handlers(),
            **self.join_leave.handlers(),
            **self.links.handlers(),
            **self.coordinator.handlers(),
            **self.loss_reports.handlers(),
            **self.shadow_member.handlers(),
            **self.link_pruning.handlers(),
            **self.audit.handlers(),
            **self.connectivity.handlers(),
            **self.storage.handlers(),
        }

    def timers(self) -> TimerHandlers:
        """The timers that one part alone handles."""
        return {
            **self.failure_detector.timers(),
            **self.join_leave.timers(),
            **self.lost_peers.timers(),
            **self.links.timers(),
            **self.coordinator.timers(),
            **self.loss_reports.timers(),
            **self.requests.timers(),
            **self.link_pruning.timers(),
            **self.audit.timers(),
            **self.connectivity.timers(),
            **self.storage.timers(),
        }


def build_parts(
    context: NodeContext, registry: Registry | None, lost_peers: Mapping[NodeId, LostPeer], store: RecordStore
) -> Parts:
    """All parts of a new incarnation. `lost_peers`: what the one before remembered; `store`: records it kept."""
    ring, links, views = Ring(context), Links(context), Views(context, registry)
    sampling, lookup = PeerSampling(context), RingLookup(context)
    gossip = Gossip(context, ring, views, links, sampling)
    coordinator = Coordinator(context, ring, views, lookup)
    loss_reports = LossReports(context, ring, lookup, coordinator)
    descriptor = OwnDescriptor(context, links, loss_reports)
    requests = Requests(context, ring, links, views, descriptor)
    incarnations = Incarnations(context, ring, links)
    pruning = LinkPruning(context, links, requests)
    allowed = pruning if context.config.redundant_removals else None
    return Parts(
        peer_table=context.peer_table,
        ring=ring,
        links=links,
        views=views,
        peer_sampling=sampling,
        gossip=gossip,
        ring_lookup=lookup,
        ring_merge=RingMerge(context, ring, gossip, requests),
        failure_detector=FailureDetector(context),
        lost_peers=LostPeers(context, incarnations, ring, lost_peers),
        coordinator=coordinator,
        loss_reports=loss_reports,
        descriptor=descriptor,
        requests=requests,
        join_leave=JoinLeave(context, ring, links, lookup, gossip, requests),
        link_pruning=pruning,
        shadow_member=ShadowMember(context, ring, links, loss_reports, requests, allowed),
        connections=Connections(context, ring, links),
        incarnations=incarnations,
        audit=Audit(context, ring, links, lookup),
        connectivity=Connectivity(context, links, requests, pruning),
        storage=Storage(context, ring, lookup, store),
    )
