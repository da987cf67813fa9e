"""What a node tells peers that are known here otherwise than they know themselves."""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import SECOND
from omen.protocol.membership.connections import Incarnations
from omen.protocol.membership.lost_peers import LostPeers
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import Digest, DigestOffer, EventId, RepairRequest
from omen.protocol.repair.links import Links
from unit.protocol.contexts import describe, make_context, ref, sent

ME, PEER = 1, 7


def make_lost_peers(context: NodeContext, known_as: int) -> LostPeers:
    """The part of a node that knows the peer by this incarnation."""
    ring = Ring(context)
    ring.consider(ref(PEER, known_as))
    return LostPeers(context, Incarnations(context, ring, Links(context)), ring, {})


def request(incarnation: int) -> RepairRequest:
    return RepairRequest(EventId(PEER, incarnation, EventKind.JOIN), describe(PEER, (3,), incarnation), (), (), 3)


def test_a_node_that_is_known_by_a_later_incarnation_is_told_of_it_once_in_a_while() -> None:
    context = make_context(ME)
    lost_peers = make_lost_peers(context, known_as=127)
    lost_peers.on_stale_request(request(1))
    told = DigestOffer((context.peer_table.me.digest, Digest(ref(PEER, 127), 0, 0)), (), reply=True)
    assert sent(context.out) == [(PEER, told)]
    lost_peers.on_stale_request(request(1))
    assert sent(context.out) == []
    context.clock.now += context.config.standby_timeout + SECOND
    lost_peers.on_stale_request(request(1))
    assert sent(context.out) == [(PEER, told)]


def test_a_request_of_the_incarnation_known_here_is_answered_by_its_coordinator_alone() -> None:
    context = make_context(ME)
    make_lost_peers(context, known_as=2).on_stale_request(request(2))
    assert sent(context.out) == []
