"""Which part of a node hears which message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omen.protocol.events import NodeId
from omen.protocol.messages.overlay import (
    DescriptorRequest,
    Descriptors,
    DigestOffer,
    FailureNotice,
    Handled,
    Heartbeat,
    IndirectPing,
    LabelBuckets,
    LabelDigest,
    LabelUpdate,
    Leaving,
    LinkClose,
    LinkConfirmed,
    LinkedLossQuery,
    LinkedLossReply,
    LinkOk,
    LinkOpen,
    LinkProposal,
    LinkSeen,
    Locate,
    Located,
    LossReport,
    LossReportAck,
    PathProbe,
    PathReply,
    PieceQuery,
    PieceReply,
    PieceReport,
    PieceReportAck,
    Ping,
    Pong,
    PruneDone,
    PruneHint,
    PruneReply,
    PruneRequest,
    Refutation,
    RelayedQuery,
    RepairRequest,
    RingWalk,
    RingWalkReply,
    ShadowQuery,
    ShadowReply,
    Shuffle,
    ShuffleReply,
    Status,
)
from omen.protocol.messages.publications import Announce, Graft, Prune, RetransmissionRequest

if TYPE_CHECKING:
    from omen.protocol.node import OmenNode

Handler = Callable[[NodeId, Any], object]


class Unaddressed:
    """A handler that does not ask who sent a message. A class and no closure, so that a node can be saved."""

    def __init__(self, handle: Callable[[Any], object]) -> None:
        self._handle = handle

    def __call__(self, _: NodeId, message: Any) -> None:
        self._handle(message)


def build_handlers(node: OmenNode) -> dict[type, Handler]:
    """Every message a node understands."""
    repairer = node.coordinator.repairer
    with_sender: dict[type, Handler] = {
        Shuffle: node.peer_sampling.on_shuffle,
        DigestOffer: node.gossip.on_offer,
        Located: node.on_located,
        Status: node.gossip.on_status,
        LinkSeen: node.on_link_seen,
        LinkClose: node.links.on_close,
        LinkConfirmed: repairer.on_confirmed,
        Leaving: node.membership.on_goodbye,
        FailureNotice: node.membership.on_knock,
        PathProbe: node.link_pruning.on_probe,
        PathReply: node.link_pruning.on_trail,
        PruneRequest: node.link_pruning.on_yield,
        PruneReply: node.link_pruning.on_yielded,
        PruneDone: node.link_pruning.on_settled,
        Heartbeat: node.membership.on_beat,
        LabelDigest: node.audit.labels.on_check,
        LabelBuckets: node.audit.labels.on_buckets,
        LabelUpdate: node.audit.labels.on_labels,
        PieceReportAck: node.audit.reporter.on_seen,
        Announce: node.publisher.on_control,
        RetransmissionRequest: node.publisher.on_control,
        Prune: node.publisher.on_control,
        Graft: node.publisher.on_control,
    }
    without_sender: dict[type, Callable[[Any], object]] = {
        ShuffleReply: node.peer_sampling.on_reply,
        Descriptors: node.on_details,
        DescriptorRequest: node.gossip.on_want,
        Locate: node.membership.on_locate,
        LinkOpen: node.membership.on_link_open,
        LinkOk: node.on_link_ok,
        LossReport: node.coordinator.on_report,
        LossReportAck: node.loss_reports.on_reported,
        ShadowQuery: node.shadow_member.on_ask,
        ShadowReply: repairer.on_answer,
        LinkedLossQuery: node.coordinator.on_inquire,
        LinkedLossReply: repairer.on_inherit,
        LinkProposal: node.shadow_member.on_propose,
        Handled: node.on_handled,
        RepairRequest: node.membership.on_arrive,
        RingWalk: node.shadow_member.on_walk,
        RingWalkReply: repairer.on_found,
        RelayedQuery: node.shadow_member.on_relay,
        PruneHint: node.link_pruning.on_spare,
        Refutation: node.membership.on_alive,
        Ping: node.detector.on_ping,
        IndirectPing: node.detector.on_ping_for,
        Pong: node.membership.on_pong,
        PieceReport: node.audit.rendezvous.on_pieces,
        PieceQuery: node.audit.reporter.on_ask,
        PieceReply: node.audit.rendezvous.on_led,
    }
    return with_sender | {kind: Unaddressed(handle) for kind, handle in without_sender.items()}
