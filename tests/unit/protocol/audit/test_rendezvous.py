"""The rendezvous of a topic, by itself."""

from __future__ import annotations

from omen.protocol.audit.rendezvous import PERIODS_KEPT, Rendezvous
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import PieceReport
from unit.protocol.contexts import make_context, ref

TOPIC = 1


def test_reports_expire() -> None:
    context = make_context(10, audit=True)
    rendezvous = Rendezvous(context, Ring(context))
    for leader in (98, 99):
        rendezvous.on_report(leader, PieceReport(ref(leader), 5, (TOPIC,)))
    assert rendezvous.count_split() == 1
    context.clock.now = context.config.audit_period * PERIODS_KEPT // 2
    assert rendezvous.count_split() == 0
    rendezvous.expire()
    assert not rendezvous.pieces
    assert not rendezvous.leaders


def test_a_leader_that_reports_in_short_is_kept() -> None:
    context = make_context(10, audit=True)
    rendezvous = Rendezvous(context, Ring(context))
    rendezvous.on_report(99, PieceReport(ref(99), 5, (TOPIC,)))
    context.clock.now = context.config.audit_period
    rendezvous.on_report(99, PieceReport(ref(99), 5, None))
    context.clock.now = context.config.audit_period * PERIODS_KEPT // 2
    rendezvous.expire()
    assert set(rendezvous.pieces) == {99}
