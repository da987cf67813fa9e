"""Which part of a node hears which message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omen.protocol.events import NodeId
from omen.protocol.messages.overlay import (
    Alive,
    Answer,
    Arrive,
    Ask,
    AskPieces,
    Beat,
    Buckets,
    Check,
    Confirmed,
    Details,
    Found,
    Goodbye,
    Handled,
    Inherit,
    Inquire,
    Knock,
    Labels,
    LinkClose,
    LinkOk,
    LinkOpen,
    LinkSeen,
    Locate,
    Located,
    Offer,
    Pieces,
    PiecesLed,
    PiecesSeen,
    Ping,
    PingFor,
    Pong,
    Probe,
    Propose,
    Relay,
    Report,
    Reported,
    Settled,
    Shuffle,
    ShuffleReply,
    Spare,
    Status,
    Trail,
    Walk,
    Want,
    Yield,
    Yielded,
)
from omen.protocol.messages.publications import Announce, Graft, Prune, Pull

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
        Shuffle: node.sampling.on_shuffle,
        Offer: node.gossip.on_offer,
        Located: node.on_located,
        Status: node.gossip.on_status,
        LinkSeen: node.on_link_seen,
        LinkClose: node.links.on_close,
        Confirmed: repairer.on_confirmed,
        Goodbye: node.membership.on_goodbye,
        Knock: node.membership.on_knock,
        Probe: node.sparing.on_probe,
        Trail: node.sparing.on_trail,
        Yield: node.sparing.on_yield,
        Yielded: node.sparing.on_yielded,
        Settled: node.sparing.on_settled,
        Beat: node.membership.on_beat,
        Check: node.audit.labels.on_check,
        Buckets: node.audit.labels.on_buckets,
        Labels: node.audit.labels.on_labels,
        PiecesSeen: node.audit.reporter.on_seen,
        Announce: node.publishing.on_control,
        Pull: node.publishing.on_control,
        Prune: node.publishing.on_control,
        Graft: node.publishing.on_control,
    }
    without_sender: dict[type, Callable[[Any], object]] = {
        ShuffleReply: node.sampling.on_reply,
        Details: node.on_details,
        Want: node.gossip.on_want,
        Locate: node.membership.on_locate,
        LinkOpen: node.membership.on_link_open,
        LinkOk: node.on_link_ok,
        Report: node.coordinator.on_report,
        Reported: node.reports.on_reported,
        Ask: node.serving.on_ask,
        Answer: repairer.on_answer,
        Inquire: node.coordinator.on_inquire,
        Inherit: repairer.on_inherit,
        Propose: node.serving.on_propose,
        Handled: node.on_handled,
        Arrive: node.membership.on_arrive,
        Walk: node.serving.on_walk,
        Found: repairer.on_found,
        Relay: node.serving.on_relay,
        Spare: node.sparing.on_spare,
        Alive: node.membership.on_alive,
        Ping: node.detector.on_ping,
        PingFor: node.detector.on_ping_for,
        Pong: node.membership.on_pong,
        Pieces: node.audit.rendezvous.on_pieces,
        AskPieces: node.audit.reporter.on_ask,
        PiecesLed: node.audit.rendezvous.on_led,
    }
    return with_sender | {kind: Unaddressed(handle) for kind, handle in without_sender.items()}
