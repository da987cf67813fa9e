"""A peer that fails, leaves or is back: what the parts of a node are told of it."""

from __future__ import annotations

from tests.unit.protocol.contexts import describe, make_context, ref

from omen.protocol import events
from omen.protocol.context import Outbox
from omen.protocol.events import Notify
from omen.protocol.membership.conduct import Conduct
from omen.protocol.membership.refusals import Refusals
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.messages.overlay import Leaving
from omen.protocol.parts import Parts, build_parts
from omen.protocol.peer_losses import PeerLosses
from omen.protocol.storage.store import RecordStore

ME, PEER, OTHER = 10, 5, 7


def build(detector: bool = False) -> tuple[PeerLosses, Parts, Outbox]:
    """A node that knows one peer and has a link to it."""
    context = make_context(ME, (1, 2), detector=detector)
    parts = build_parts(context, None, {}, RecordStore(context.config.storage_bytes))
    parts.peer_table.learn(describe(PEER, (2, 3)))
    parts.ring.consider(ref(PEER))
    parts.links.preset(ref(PEER), ())
    return PeerLosses(context, parts, Refusals(context.config), Conduct(context.config)), parts, context.out


def news(out: Outbox) -> list[events.Notification]:
    """What was said of peers; the repairs that follow are not looked at here."""
    told = [output.notification for output in out.take() if isinstance(output, Notify)]
    return [one for one in told if isinstance(one, events.PeerDeclaredFailed | events.PeerLeft)]


def test_a_lost_peer_is_off_the_ring_and_its_link_is_reported() -> None:
    losses, parts, out = build()
    losses.lose(PEER, 1)
    assert PEER not in parts.ring.members
    assert PEER not in parts.links.links
    assert parts.peer_table.is_declared_failed(ref(PEER))
    assert list(parts.loss_reports.open) == [EventId(PEER, 1, EventKind.LEAVE)]
    assert news(out) == [events.PeerDeclaredFailed(ref(PEER), ME, False)]


def test_the_loss_of_a_former_incarnation_leaves_the_link_to_the_present_one() -> None:
    losses, parts, out = build()
    parts.ring.consider(ref(PEER, 2))
    parts.links.preset(ref(PEER, 2), ())
    losses.lose(PEER, 1)
    assert parts.links.links[PEER].ref.incarnation == 2
    assert PEER in parts.ring.members
    assert news(out) == []


def test_news_of_a_later_incarnation_is_news_of_a_loss() -> None:
    losses, parts, _ = build()
    losses.hear_of_incarnation(PEER, 1)
    assert PEER in parts.links.links
    losses.hear_of_incarnation(PEER, 2)
    assert PEER not in parts.links.links


def test_a_loss_told_twice_is_one_loss() -> None:
    losses, _, out = build()
    losses.on_told((ref(PEER),), OTHER)
    losses.on_told((ref(PEER),), OTHER)
    assert news(out) == [events.PeerDeclaredFailed(ref(PEER), OTHER, False)]


def test_a_peer_that_says_goodbye_is_not_declared_failed() -> None:
    losses, parts, out = build()
    losses.on_leaving(PEER, Leaving(ref(PEER), handled=True))
    assert news(out) == [events.PeerLeft(ref(PEER), True)]
    assert PEER not in parts.links.links
    assert not parts.loss_reports.open


def test_a_lost_connection_is_a_reason_to_probe_where_there_is_a_failure_detector() -> None:
    losses, parts, _ = build(detector=True)
    parts.failure_detector.watch({PEER: ref(PEER)}, 0)
    losses.on_connection_lost(PEER, 1)
    assert PEER in parts.links.links
    losses, parts, _ = build(detector=False)
    losses.on_connection_lost(PEER, 1)
    assert PEER not in parts.links.links


def test_a_peer_that_is_there_after_all_has_no_tombstone() -> None:
    losses, parts, _ = build()
    losses.lose(PEER, 1)
    losses.take_back(ref(PEER))
    assert not parts.peer_table.tombstones
    assert not parts.lost_peers.remembered
