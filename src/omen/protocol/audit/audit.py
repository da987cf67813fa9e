"""Healing from any state: labels of pieces, reports of their leaders, a rendezvous for each topic. No paper has this.

A repair answers to an event. Where more was lost than could be repaired, a network was cut, or links vanished without
a word, there is no event left to answer to, and a topic stays split. The audit looks for that all the time: see
`labels`, `leader_reports` and `rendezvous`. Guarantee: once nothing more happens, and the ring is one ring, every
topic is connected after a few periods, whatever the state was; measured: within two after links were lost.
"""

from __future__ import annotations

from omen.protocol.audit.labels import LabelSpreadTimer, PieceLabels
from omen.protocol.audit.leader_reports import LeaderReports
from omen.protocol.audit.rendezvous import PieceQueryTimer, Rendezvous, RendezvousTimer
from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, Time, Timer, TimerHandlers
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.overlay import (
    LabelBuckets,
    LabelDigest,
    LabelUpdate,
    PieceQuery,
    PieceReply,
    PieceReport,
    PieceReportAck,
)
from omen.protocol.repair.links import Links

HASTE = 8  # parts of a period: after a merge leaders report this much sooner
SOON = 20  # and for the first time within two of these
SETTLING = 5  # a fifth of a period passes between a change of pieces and the report of it


class AuditPeriodTimer(Timer, frozen=True):
    """The next audit period begins."""


class HasteTimer(Timer, frozen=True):
    """Another ring has come in: leaders report ahead of their period, so many times."""

    times: int


class LeaderReportTimer(Timer, frozen=True):
    """Pieces have had time to settle: their leaders report."""


class Audit:
    """The three parts of the audit, and their timers. Does nothing unless it is switched on."""

    def __init__(self, context: NodeContext, ring: Ring, links: Links, ring_lookup: RingLookup) -> None:
        self._config = context.config
        self._random = context.random
        self._out = context.out
        self._clock = context.clock
        self._settling = False
        self._hurried: Time | None = None
        self.labels = PieceLabels(context, links)
        self.leader_reports = LeaderReports(context, ring, links, self.labels, ring_lookup)
        self.rendezvous = Rendezvous(context, ring)

    def handlers(self) -> Handlers:
        return {
            LabelDigest: self.labels.on_digest,
            LabelBuckets: self.labels.on_buckets,
            LabelUpdate: self.labels.on_update,
            PieceReport: self.rendezvous.on_report,
            PieceReply: self.rendezvous.on_reply,
            PieceReportAck: self.leader_reports.on_ack,
            PieceQuery: self.leader_reports.on_query,
        }

    def timers(self) -> TimerHandlers:
        return {
            LabelSpreadTimer: self._on_spread,
            LeaderReportTimer: self._on_report,
            HasteTimer: self._on_haste,
            RendezvousTimer: self.rendezvous.inquire,
            PieceQueryTimer: self.rendezvous.on_query_timer,
        }

    def start(self) -> None:
        """Begin somewhere in the period, so that the nodes' turns are spread."""
        period = self._config.audit_period
        self._out.set_timer(AuditPeriodTimer(), period // 4 + self._random.randrange(period))
        self.labels.note_change()

    def next_period(self) -> None:
        """A period has begun: what is old expires, and every rendezvous is told again."""
        self._out.set_timer(AuditPeriodTimer(), self._config.audit_period)
        self.rendezvous.expire()
        self.labels.next_period()
        self.leader_reports.next_period()

    def hurry(self) -> None:
        """Two rings have become one: report soon, and once more when it is known who answers for what."""
        now, period = self._clock.now, self._config.audit_period
        if self._hurried is None or now - self._hurried >= period // HASTE:
            self._hurried = now
            self._out.set_timer(HasteTimer(2), period // SOON + self._random.randrange(period // SOON))

    def _on_haste(self, timer: HasteTimer) -> None:
        self.leader_reports.next_period()
        if timer.times > 1:
            self._out.set_timer(HasteTimer(timer.times - 1), self._config.audit_period // HASTE)

    def _on_spread(self, _: LabelSpreadTimer) -> None:
        self.labels.spread()
        self._report_soon()

    def _on_report(self, _: LeaderReportTimer) -> None:
        self._settling = False
        self.leader_reports.report()

    def _report_soon(self) -> None:
        if self.labels.led_changed and not self._settling:
            self._settling = True
            self._out.set_timer(LeaderReportTimer(), self._config.audit_period // SETTLING)
