"""Which node repairs what, when, and which takes over (omen Algs. 5 and 6)."""

from __future__ import annotations

from typing import assert_never

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, RepairFinished, RepairOutcome, RepairStopped, Timer, TimerHandlers
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import FORWARDS_AT_MOST, EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
    EventId,
    FailureNotice,
    Handled,
    LinkConfirmed,
    LinkedLossQuery,
    LinkedLossReply,
    LossReport,
    LossReportAck,
    PruneHint,
    Ref,
    RepairRequest,
    RingWalkReply,
    ShadowReply,
)
from omen.protocol.repair.event_queue import EventQueue, PendingEvent
from omen.protocol.repair.outcomes import Abandoned, Finished, LeftToAnother, NotReady, Outcome, PutOff
from omen.protocol.repair.repair import Repairer
from omen.protocol.repair.shadow_set import Loss, Repair
from omen.protocol.repair.timers import LinkedLossLookup, RepairTimer, UnreachedTimer
from omen.protocol.repair.views import Views


class StandbyTimer(Timer, frozen=True):
    """An event that another node was to handle should be handled by now (omen Alg. 5)."""

    event: EventId


class Coordinator:
    """Decides which events are this node's to handle, repairs them one by one, and tells the nodes that wait."""

    def __init__(self, context: NodeContext, ring: Ring, views: Views, ring_lookup: RingLookup) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._ring = ring
        self._views = views
        self.event_queue = EventQueue()
        self._repairer = Repairer(context, ring, views, ring_lookup, self.event_queue)

    def handlers(self) -> Handlers:
        return {
            LossReport: self.on_report,
            LinkedLossQuery: self.on_linked_loss_query,
            LinkedLossReply: self.on_linked_loss_reply,
            ShadowReply: self.on_shadow_reply,
            RingWalkReply: self.on_walk_reply,
            LinkConfirmed: self.on_confirmed,
        }

    def timers(self) -> TimerHandlers:
        return {
            RepairTimer: self.on_repair_timer,
            UnreachedTimer: self._repairer.on_unreached_timer,
            StandbyTimer: self.on_standby_timer,
        }

    @property
    def repair(self) -> Repair | None:
        """The repair that this node coordinates now."""
        return self._repairer.repair

    def note_handled(self, event: EventId) -> None:
        """A node says itself that its loss is repaired."""
        self.event_queue.remember(event, ())

    def forget_handled(self, event: EventId) -> None:
        """The incarnation is there after all: when it ends it is to be repaired anew."""
        self.event_queue.handled.pop(event, None)

    def pinned(self) -> list[NodeId]:
        """Lost nodes whose backups must be kept until their event is handled."""
        return [event.node for event in self.event_queue.pending if event.kind == EventKind.LEAVE]

    def on_loss(self, descriptor: Descriptor, backups: list[Ref]) -> None:
        """A predecessor has failed; this is all that was kept for it."""
        ref = descriptor.digest.ref
        event = EventId(ref.id, ref.incarnation, EventKind.LEAVE)
        if event in self.event_queue.handled:
            return
        loss = self.event_queue.get(event).loss
        loss.topics.update(descriptor.topics)
        loss.neighbours.update({other.id: other for other in descriptor.neighbours})
        loss.backups.update({other.id: other for other in backups})
        self.handle_churn_event(event)

    def handle_churn_event(self, event: EventId) -> None:
        """Alg. 5: queue it where this node is the coordinator, else stand by."""
        if self._ring.is_coordinator(event.node):
            self._enqueue(event)
        else:
            self._stand_by(event)

    def take_over(self, node: NodeId) -> None:
        """What the lost node was to do falls to its successor, and comes before its own loss (Alg. 5 lines 2-4)."""
        for event in [event for event, coordinator in self.event_queue.standby.items() if coordinator == node]:
            self.handle_churn_event(event)

    def on_node_lost(self, node: NodeId, incarnation: int) -> None:
        self._conclude(self._repairer.on_node_lost(node, incarnation))

    def on_unreached(self, node: NodeId, address: str) -> None:
        """Nobody listens where a node was said to be."""
        self._conclude(self._repairer.on_unreached(node, address))

    def on_shadow_reply(self, _: NodeId, message: ShadowReply) -> None:
        self._conclude(self._repairer.on_reply(message))

    def on_walk_reply(self, sender: NodeId, message: RingWalkReply) -> None:
        self._conclude(self._repairer.on_walk_reply(sender, message))

    def on_linked_loss_reply(self, _: NodeId, message: LinkedLossReply) -> None:
        self._conclude(self._repairer.on_linked_loss_reply(message))

    def on_confirmed(self, sender: NodeId, message: LinkConfirmed) -> None:
        self._conclude(self._repairer.on_confirmed(sender, message))

    def on_located(self, purpose: LinkedLossLookup, successor: Ref | None) -> None:
        self._conclude(self._repairer.on_located(purpose, successor))

    def _conclude(self, outcome: Outcome | None) -> None:
        """A repair has gone on, or has ended."""
        match outcome:
            case None:
                pass
            case Finished(repair):
                self._finish(repair)
            case LeftToAnother(event):
                self._out.notify(RepairStopped(event, RepairOutcome.LEFT_TO_ANOTHER))
                self._leave_to_another(event)
            case PutOff(event, times):
                self._out.notify(RepairStopped(event, RepairOutcome.PUT_OFF))
                self._put_off(event, times)
            case NotReady(event):
                self._out.notify(RepairStopped(event, RepairOutcome.PUT_OFF))
                self.event_queue.requeue(event)
                self.process_exe_q()
            case Abandoned(event):
                self._out.notify(RepairStopped(event, RepairOutcome.ABANDONED))
                self._abandon(event)
            case _:
                assert_never(outcome)

    def _pass_on(self, message: RepairRequest, nearest: NodeId) -> None:
        if message.hops > 0:
            hops = min(message.hops, FORWARDS_AT_MOST) - 1
            passed_on = RepairRequest(message.event, message.descriptor, message.added, message.dropped, hops)
            self._out.send(self._ring.members[nearest], passed_on)

    def on_request(self, message: RepairRequest) -> None:
        """A live node asks: link me (join, add), or repair the topics I give up (drop), or the gap I leave (leave).

        Only the nearest successor handles it; a node that knows a nearer one passes it on.
        """
        event = message.event
        nearest = self._ring.nearest_successor_of(event.node)
        if nearest != self._peer_table.id:
            self._pass_on(message, nearest)
            return
        ref = message.descriptor.digest.ref
        if event in self.event_queue.handled:
            self._out.send(ref, Handled(event, tuple(self.event_queue.handled[event].values())))
            return
        pending = self.event_queue.get(event)
        pending.client = ref
        if event.kind in (EventKind.JOIN, EventKind.ADD):
            pending.centre = message.descriptor
            pending.loss.topics.update(message.added)
        else:
            pending.loss.topics.update(message.dropped)
            pending.loss.neighbours.update({other.id: other for other in message.descriptor.neighbours})
            pending.loss.backups.update({other.id: other for other in self._views.backups_of(event.node)})
            repair = self.repair
            if repair is not None and repair.event != event and repair.is_about(event):
                self._conclude(self._repairer.take_in(pending.loss))
                return
        if not self._keeps_pause(event, pending):
            self._enqueue(event)

    def on_report(self, _: NodeId, message: LossReport) -> None:
        """A former neighbour reports a loss: pass the report on, or take it in."""
        event, reporter = message.event, message.reporter
        nearest = self._ring.nearest_successor_of(event.node)
        if nearest != self._peer_table.id:
            if message.hops > 0:
                hops = min(message.hops, FORWARDS_AT_MOST) - 1
                self._out.send(self._ring.members[nearest], LossReport(event, reporter, message.topics, hops))
            return
        self._out.send(reporter, LossReportAck(event))
        repaired = self.event_queue.handled.get(event)
        if repaired is not None:
            if reporter.id in repaired:
                self._out.send(reporter, Handled(event))
                return
            del self.event_queue.handled[event]
        pending = self.event_queue.get(event)
        pending.loss.neighbours.update(repaired or {})
        is_repeated = pending.reporters.get(reporter.id) == reporter
        pending.reporters[reporter.id] = reporter
        pending.loss.topics.update(message.topics)
        pending.loss.neighbours[reporter.id] = reporter
        repair = self.repair
        if repair is not None and repair.is_about(event):
            if reporter.id not in repair.answers:
                self._conclude(self._repairer.take_in(Loss(event, set(message.topics), {reporter.id: reporter})))
        elif self._is_over(event):
            if not (is_repeated and self._keeps_pause(event, pending)):
                self._enqueue(event)
        else:
            # The reporter has given up its link to a node that is there, as far as known here: let that one rejoin.
            member = self._ring.members[event.node]
            self._out.send(member, FailureNotice(self._peer_table.ref, event.incarnation, final=True))
            self._stand_by(event)

    def _keeps_pause(self, event: EventId, pending: PendingEvent) -> bool:
        """What was put off keeps its pause, however often it is asked for."""
        return bool(pending.put_off) and self.event_queue.standby.get(event) == self._peer_table.id

    def _is_over(self, event: EventId) -> bool:
        """Whether the incarnation an event is about has ended, as far as known here."""
        member = self._ring.members.get(event.node)
        return member is None or member.incarnation > event.incarnation

    def on_linked_loss_query(self, _: NodeId, message: LinkedLossQuery) -> None:
        """Another coordinator's loss was linked to one that is ours: the lower event leads, the other waits.

        Of a loss that is known here by the question alone the asker leads: it may have been told more, before this
        node came to be the coordinator.
        """
        sender, linked, other = message.asker, message.lost, message.event
        repaired = self.event_queue.handled.get(linked)
        if repaired is not None:
            self._out.send(sender, LinkedLossReply(other, linked, True, True, tuple(repaired.values()), ()))
            return
        pending = self.event_queue.get(linked)
        descriptor = self._peer_table.known.get(linked.node)
        if descriptor is not None and descriptor.digest.ref.incarnation == linked.incarnation:
            pending.loss.topics.update(descriptor.topics)
            pending.loss.neighbours.update({ref.id: ref for ref in descriptor.neighbours})
        known = pending.client is not None or bool(pending.loss.neighbours)
        ours_leads = known and linked < other
        neighbours, topics = tuple(pending.loss.neighbours.values()), tuple(sorted(pending.loss.topics))
        self._out.send(sender, LinkedLossReply(other, linked, known, not ours_leads, neighbours, topics))
        if ours_leads:
            foreign = self.event_queue.get(other)
            foreign.loss.topics.update(message.topics)
            foreign.loss.neighbours.update({ref.id: ref for ref in message.neighbours})
            foreign.inquirers[sender.id] = sender
            self._stand_by(other)  # so that it is not kept for ever if nothing comes of it
            self._lead(linked, foreign.loss)
        else:
            self._stand_by(linked)

    def _lead(self, linked: EventId, foreign: Loss) -> None:
        """Repair both as one event: now, if ours is under way, else when its turn comes."""
        repair = self.repair
        if repair is not None and linked.node in repair.losses:
            self._conclude(self._repairer.take_in(foreign))
            return
        ours = self.event_queue.get(linked).loss
        ours.neighbours.setdefault(foreign.event.node, Ref(foreign.event.node, foreign.event.incarnation, ""))
        if linked not in self.event_queue.standby:
            self._enqueue(linked)

    def on_handled(self, event: EventId, repaired: tuple[Ref, ...]) -> None:
        """v.gcChurnEvent: it is done; unless it falls to this node and former neighbours were left out."""
        pending = self.event_queue.pending.get(event)
        if pending is not None and self._is_left_over(event, pending, repaired):
            self.event_queue.get(event).loss.neighbours.update({ref.id: ref for ref in repaired})
            repair = self.repair
            if repair is not None and event.node in repair.losses:
                self._conclude(
                    self._repairer.take_in(Loss(event, set(pending.loss.topics), {ref.id: ref for ref in repaired}))
                )
            return
        self.event_queue.collect(event, repaired)
        if pending is not None:
            waiting = pending.inquirers | ({pending.client.id: pending.client} if pending.client is not None else {})
            for ref in waiting.values():
                self._out.send(ref, Handled(event, repaired, heard=ref in repaired))
        repair = self.repair
        if repair is not None and repair.event == event:
            self._repairer.stop()
        self.process_exe_q()

    def on_repair_timer(self, timer: RepairTimer) -> None:
        self._conclude(self._repairer.on_timer(timer))

    def on_standby_timer(self, timer: StandbyTimer) -> None:
        """v.processStandbyL: the event was not heard to be handled in time.

        An event out of range is forgotten, where the paper keeps it: its reporters repeat themselves to whose it is. So
        is one known by a question alone: to say that it is handled would stop those that know more. What is under
        repair here is kept: its repair goes on, or is put off, with what was told of it.
        """
        event = timer.event
        if event in self.event_queue.standby:
            del self.event_queue.standby[event]
            if self.repair is not None and self.repair.event == event:
                return
            pending = self.event_queue.pending.get(event)
            is_told = pending is not None and not pending.is_hearsay
            if event.kind != EventKind.LEAVE or (is_told and self._ring.is_in_pred_range(event.node)):
                self._enqueue(event)
            else:
                self.event_queue.pending.pop(event, None)

    def process_exe_q(self) -> None:
        """Take the event waiting longest, unless one is under way (Alg. 5)."""
        while self.repair is None and self.event_queue.exe_q:
            event = self.event_queue.take()
            pending = self.event_queue.pending.get(event)
            if (
                pending is not None
                and pending.centre is not None
                and self._peer_table.is_declared_failed(pending.centre.digest.ref)
            ):
                del self.event_queue.pending[event]
            elif pending is not None:
                self._conclude(self._repairer.begin(event, pending))
        if self.repair is None:
            for event in [event for event in self.event_queue.pending if event not in self.event_queue.standby]:
                self._stand_by(event)  # what was to be repaired along with another event, and was not

    def _finish(self, repair: Repair) -> None:
        """Alg. 5 line 6: tell the successor range of each node concerned, and all that wait for the news."""
        events = sorted({repair.event, *repair.claimed()})
        repaired = tuple(repair.members[node] for node in sorted(repair.former) if node in repair.answers)
        for event in events:
            pending = self.event_queue.pending.get(event)
            told = {
                node: self._ring.members[node]
                for node in self._ring.succ_range(event.node)
                if node != self._peer_table.id
            }
            if pending is not None:
                told.update(pending.inquirers)
                if pending.client is not None:
                    told[pending.client.id] = pending.client
            if event.kind == EventKind.LEAVE and (pending is None or pending.client is None):
                self._renew_if_there(event)
            waiting = {ref.id: ref for ref in repaired}
            for node in sorted(told):
                self._out.send(told[node], Handled(event, repaired, heard=node in waiting))
            for node in sorted(waiting.keys() - told.keys()):
                self._out.send(waiting[node], Handled(event))
            self.event_queue.collect(event, repaired)
        heard = tuple(ref.id for ref in repaired)
        self._out.notify(RepairFinished(repair.event, tuple(repair.made), len(repair.members), tuple(events), heard))
        for one, other in repair.prunable_pairs(self._config.redundant_removals):
            if one in repair.members:
                self._out.send(repair.members[one], PruneHint(self._peer_table.ref, repair.attempt, other))
        self.process_exe_q()

    def _renew_if_there(self, event: EventId) -> None:
        """A loss was repaired, and the node has been heard from meanwhile: its neighbours have given it up."""
        member = self._ring.members.get(event.node)
        if member is not None and member.incarnation == event.incarnation:
            self._out.send(member, FailureNotice(self._peer_table.ref, event.incarnation, final=True))

    def _leave_to_another(self, event: EventId) -> None:
        """The repair is another coordinator's to do: watch that it gets done."""
        self._stand_by(event)
        self.process_exe_q()

    def _put_off(self, event: EventId, times: int) -> None:
        """The repair has to wait for another's, or for a silent node: let those queued go first, and try again soon.

        Six pauses, each twice the one before, are twice the time in which a loss is reported anew.
        """
        self.event_queue.standby[event] = self._peer_table.id
        pause = self._config.standby_timeout // 64 << times
        self._out.set_timer(StandbyTimer(event), pause if times else self._config.answer_timeout)
        self.process_exe_q()

    def _abandon(self, event: EventId) -> None:
        """The node that asked for this repair does not answer: it asks again, if it is still there."""
        self.event_queue.pending.pop(event, None)
        self.process_exe_q()

    def _is_left_over(self, event: EventId, pending: PendingEvent, repaired: tuple[Ref, ...]) -> bool:
        """Whether another coordinator has handled a loss without some former neighbour, and this node is to make up
        for it.
        """
        if pending.centre is not None or not self._ring.is_coordinator(event.node):
            return False
        heard = {ref.id for ref in repaired}
        return any(
            node not in heard and not self._peer_table.is_declared_failed(ref)
            for node, ref in pending.reporters.items()
        )

    def _enqueue(self, event: EventId) -> None:
        self.event_queue.standby.pop(event, None)
        repair = self.repair
        if event not in self.event_queue.exe_q and (repair is None or repair.event != event):
            self.event_queue.exe_q.append(event)
        self.process_exe_q()

    def _stand_by(self, event: EventId) -> None:
        self.event_queue.standby[event] = self._ring.nearest_successor_of(event.node)
        self._out.set_timer(StandbyTimer(event), self._config.standby_timeout)
