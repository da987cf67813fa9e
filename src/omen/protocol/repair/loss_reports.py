"""Former neighbours of a lost node report its loss to its successor, until they hear that it is repaired."""

from __future__ import annotations

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Timer, TimerHandlers, Topic
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import LookupPurpose, RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, LossReport, LossReportAck, Ref
from omen.protocol.repair.coordinator import Coordinator

FORMER_AT_MOST = 128


class LossReportTimer(Timer, frozen=True):
    """A loss is to be reported again, unless its repair is known to be done."""

    event: EventId


class LossReportLookup(LookupPurpose, frozen=True):
    """Who follows the lost node?"""

    event: EventId


class OpenReport(msgspec.Struct):
    """A loss this node has to report; `topics` are those it shared with the lost node."""

    topics: tuple[Topic, ...]
    successors: list[Ref]


class LossReports:
    """Keeps the open reports, and which lost nodes were neighbours lately."""

    def __init__(self, context: NodeContext, ring: Ring, ring_lookup: RingLookup, coordinator: Coordinator) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._ring = ring
        self._ring_lookup = ring_lookup
        self._coordinator = coordinator
        self.open: dict[EventId, OpenReport] = {}
        self._former: dict[NodeId, int] = {}

    def handlers(self) -> Handlers:
        return {LossReportAck: self.on_ack}

    def timers(self) -> TimerHandlers:
        return {LossReportTimer: self.on_timer}

    def on_neighbour_lost(self, ref: Ref, topics: tuple[Topic, ...], successors: tuple[Ref, ...]) -> None:
        """A neighbour has failed; `successors` are those it named itself."""
        self._remember_former(ref.id, ref.incarnation)
        if self._config.remedies.former_neighbours_report:
            event = EventId(ref.id, ref.incarnation, EventKind.LEAVE)
            self.open[event] = OpenReport(topics, list(successors))
            self.report(event)

    def was_linked(self, ref: Ref) -> bool:
        """Whether this lost node was a neighbour."""
        return self._former.get(ref.id, -1) >= ref.incarnation

    def close(self, event: EventId) -> bool:
        """The loss is repaired; whether it was still open here."""
        return self.open.pop(event, None) is not None

    def unrepaired(self) -> list[Ref]:
        """The lost neighbours whose loss is not known to be repaired."""
        return [Ref(event.node, event.incarnation, "") for event in self.open]

    def on_located(self, event: EventId, successor: Ref | None) -> None:
        """The lookup has found the successor of the lost node."""
        report = self.open.get(event)
        if report is not None and successor is not None:
            report.successors = [successor]
            self.report(event)

    def _remember_former(self, node: NodeId, incarnation: int) -> None:
        if len(self._former) >= FORMER_AT_MOST:
            del self._former[next(iter(self._former))]
        self._former[node] = incarnation

    def on_timer(self, timer: LossReportTimer) -> None:
        self.report(timer.event)

    def report(self, event: EventId) -> None:
        """Report to the lost node's present successor; go on down its list, then look the successor up."""
        report = self.open.get(event)
        if report is None:
            return
        message = LossReport(event, self._peer_table.ref, report.topics)
        if self._ring.is_coordinator(event.node) or not self._ring.members:
            self._coordinator.on_report(self._peer_table.id, message)
            return
        while report.successors and self._peer_table.is_declared_failed(report.successors[0]):
            report.successors.pop(0)
        if report.successors:
            first = report.successors.pop(0)
            if first.id == self._peer_table.id:
                self._coordinator.on_report(self._peer_table.id, message)
            else:
                self._out.send(first, message)
            self._out.set_timer(LossReportTimer(event), self._config.answer_timeout)
        else:
            self._ring_lookup.find(event.node, LossReportLookup(event), self._ring.members.values())
            self._out.set_timer(LossReportTimer(event), self._config.answer_timeout * self._config.attempts)

    def on_ack(self, _: NodeId, message: LossReportAck) -> None:
        """Heard: wait for the news that it is handled, and report again if it does not come."""
        if message.event in self.open:
            self._out.set_timer(LossReportTimer(message.event), self._config.standby_timeout)
