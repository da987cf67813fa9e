"""One repair, step by step: wait, gather, ask the shadow set, run the engine, have links made, check (omen Alg. 1)."""

from __future__ import annotations

from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, RepairStage, RepairStageEntered
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import WALK_STEPS_AT_MOST, EventKind
from omen.protocol.messages.overlay import (
    EventId,
    FailureNotice,
    LinkConfirmed,
    LinkedLossQuery,
    LinkedLossReply,
    Ref,
    RelayedQuery,
    RingWalk,
    RingWalkReply,
    ShadowQuery,
    ShadowReply,
)
from omen.protocol.repair.backups import members_for_join
from omen.protocol.repair.event_queue import EventQueue, PendingEvent
from omen.protocol.repair.led_walk import LedWalk
from omen.protocol.repair.outcomes import Abandoned, Finished, LeftToAnother, NotReady, Outcome, PutOff
from omen.protocol.repair.proposals import Proposals
from omen.protocol.repair.shadow_set import Loss, Repair
from omen.protocol.repair.timers import LinkedLossLookup, RepairTimer, UnreachedTimer
from omen.protocol.repair.views import Views

WAITING, GATHERING, ASKING, LINKING, CHECKING, FINISHING = RepairStage
JOIN_ROUNDS = 3  # a newcomer with many topics becomes no hub: rounds of asking wider nodes, for each hop
ASKED = (ASKING, CHECKING)
WALKS_AT_MOST = 8
PUT_OFF_AT_MOST = 6


class Repairer:
    """Runs the one repair under way, and returns its outcome. News of other events goes to the event queue."""

    def __init__(
        self, context: NodeContext, ring: Ring, views: Views, ring_lookup: RingLookup, event_queue: EventQueue
    ) -> None:
        self._context = context
        self._peer_table = context.peer_table
        self._config = context.config
        self._out = context.out
        self._ring = ring
        self._views = views
        self._ring_lookup = ring_lookup
        self._event_queue = event_queue
        self._proposals = Proposals(context)
        self.repair: Repair | None = None
        self._asked = 0
        self._walked = 0

    def begin(self, event: EventId, pending: PendingEvent) -> Outcome | None:
        centre = pending.centre.digest.ref if pending.centre is not None else None
        repair = self.repair = Repair(event, centre, pending.loss.topics - pending.linked)
        repair.agreed_by_both = self._config.remedies.links_agreed_by_both
        if pending.centre is not None:
            repair.centre_rules, repair.centre_links = pending.centre.rules, len(pending.centre.neighbours)
        if centre is None:
            repair.add_loss(self._with_oneself(pending.loss))
            self._enter(WAITING, repair)
            return self._wait_until_ready(repair)
        else:
            self._choose_members(repair, centre.id)
            return self._ask(repair)

    def _with_oneself(self, loss: Loss) -> Loss:
        """This node may be a former neighbour too, and its own report under way to another coordinator."""
        me, event = self._peer_table.me, loss.event
        lost = (event.node, event.incarnation)
        if event.kind == EventKind.LEAVE and any((ref.id, ref.incarnation) == lost for ref in me.neighbours):
            loss.neighbours[me.digest.ref.id] = me.digest.ref
            loss.topics |= self._peer_table.topics_of(event.node).intersection(me.topics)
        return loss

    def _choose_members(self, repair: Repair, newcomer: NodeId) -> bool:
        """The nodes a newcomer may be linked to, without those that failed; whether there are others than before."""
        before = set(repair.members)
        chosen = members_for_join(self._context, newcomer, repair.topics, self._still_gone(repair))
        repair.members = chosen | repair.members
        repair.walks_over = repair.walks >= WALKS_AT_MOST
        repair.walked_for.clear()
        return bool(repair.members.keys() - before)

    def _still_gone(self, repair: Repair) -> set[NodeId]:
        """The nodes that were lost while this repair went on, but for those that have begun anew since."""
        return {node for node, former in repair.gone.items() if not self._peer_table.has_begun_anew(node, former)}

    def on_node_lost(self, node: NodeId, incarnation: int) -> Outcome | None:
        """A node has failed: a newcomer takes its event with it, a member brings in the nodes it leaves behind."""
        repair = self.repair
        if repair is None:
            return None
        if repair.centre is not None and repair.centre.id == node and repair.centre.incarnation <= incarnation:
            repair.members, repair.former = {}, set()
            return self._finish(repair)
        elif node in repair.members and repair.members[node].incarnation <= incarnation:
            return self._go_on(repair, self._lose_member(repair, node))
        elif repair.stage == CHECKING and node in repair.check.witnesses():
            return self._doubt_silent(repair, [node])
        elif repair.led is not None and repair.led.at.id == node:
            repair.led = None
            return self._walk_again(repair)
        return None

    def on_timer(self, timer: RepairTimer) -> Outcome | None:
        repair = self.repair
        if repair is None or timer != RepairTimer(repair.stage, repair.event, repair.attempt):
            return None
        if repair.stage == WAITING:
            return self._wait_until_ready(repair, may_yield=True)
        elif repair.stage == GATHERING and repair.centre is None:
            return self._ask(repair)
        elif repair.stage == GATHERING:
            return self._walk_again(repair)
        else:
            return self._try_again(repair)

    def take_in(self, loss: Loss) -> Outcome | None:
        """More is known of a loss that is under repair, or of one linked to it: ask those who were not asked yet."""
        repair = self.repair
        if repair is None:
            return None
        widened = loss.event.node not in repair.losses or not loss.topics <= repair.topics
        strangers = [ref for ref in loss.neighbours.values() if repair.is_stranger(ref)]
        repair.add_loss(loss)
        if (repair.stage in (LINKING, CHECKING) and (widened or strangers)) or (repair.stage == ASKING and widened):
            return self._ask(repair)
        elif repair.stage == ASKING and strangers:
            repair.tries = 0  # they have their time too, however long another has been silent
            return self._ask_silent(repair)
        return None

    def _enter(self, stage: RepairStage, repair: Repair) -> None:
        repair.stage = stage
        self._out.notify(RepairStageEntered(repair.event, stage, tuple(sorted(repair.members))))

    def stop(self) -> None:
        """Another has done it."""
        self.repair = None

    def _finish(self, repair: Repair) -> Outcome:
        """All is done that can be; put off for a silent node that may take a newcomer in, or an unknown linked loss."""
        pending = self._event_queue.pending.get(repair.event)
        waits = self._may_take_in(repair, repair.passed_over, living=True) or repair.is_in_part()
        if waits and pending is not None and pending.put_off < PUT_OFF_AT_MOST:
            pending.put_off += 1
            if repair.centre is not None:
                pending.linked |= repair.topics.difference(repair.unsettled())
                pending.passed_over |= repair.passed_over
            self.repair = None
            return PutOff(repair.event, pending.put_off)
        self._renew_passed_over(repair, pending)
        self._enter(FINISHING, repair)
        self.repair = None
        return Finished(repair)

    def _renew_passed_over(self, repair: Repair, pending: PendingEvent | None) -> None:
        """Who could have taken the newcomer in counts as lost: if it is there, it has to rejoin, and finds it.

        So do those that were declared failed while the join was put off.
        """
        earlier = pending.passed_over if pending is not None else {}
        for ref in self._may_take_in(repair, earlier | repair.passed_over):
            self._out.send(ref, FailureNotice(self._peer_table.ref, ref.incarnation, final=True))

    def _may_take_in(self, repair: Repair, passed_over: dict[NodeId, Ref], living: bool = False) -> list[Ref]:
        """Of these silent nodes (`living`: not known to be lost) those that may have a topic newcomers alone have."""
        table = self._peer_table
        if repair.centre is None or table.is_declared_failed(repair.centre):
            return []
        missing = set(repair.unsettled())
        return [
            ref
            for node, ref in sorted(passed_over.items())
            if not missing.isdisjoint(table.topics_of(node) or missing)
            and not (living and table.is_declared_failed(ref))
        ]

    def _wait_until_ready(self, repair: Repair, may_yield: bool = False) -> Outcome | None:
        """Alg. 5 line 3: wait until R(v'), or until it is no longer this node's to do. Others need not wait."""
        event = repair.event
        if event.kind == EventKind.LEAVE and not self._ring.is_in_pred_range(event.node):
            self.repair = None
            return LeftToAnother(event)
        # What is kept of a node that has begun anew is about its next incarnation: nothing to wait for.
        over = event.kind != EventKind.LEAVE or self._peer_table.has_begun_anew(event.node, event.incarnation)
        ready = over or event.node not in self._views.shadows or self._views.is_ready(event.node)
        if not ready and may_yield and self._event_queue.exe_q:
            self.repair = None
            return NotReady(event)
        if not ready:
            self._out.set_timer(RepairTimer(WAITING, event, repair.attempt), self._config.gossip_period // 4)
            return None
        for ref in self._views.backups_of(event.node):
            if not repair.is_lost(ref):
                repair.members.setdefault(ref.id, ref)
        self._enter(GATHERING, repair)
        self._out.set_timer(RepairTimer(GATHERING, event, repair.attempt), self._config.grace)
        return None

    def _start_walk(self, repair: Repair) -> Outcome | None:
        """Round the ring, for who has the topics that no member settles, but for those that a walk found nobody for."""
        missing = [topic for topic in repair.uncovered() if topic not in repair.walked_for]
        self._enter(GATHERING, repair)
        repair.walks += 1
        repair.walks_over = repair.walks >= WALKS_AT_MOST
        repair.walking = frozenset(missing)
        skip = tuple(sorted(self._still_gone(repair) | repair.members.keys()))
        self._walked += 1
        first = self._ring.next_step(self._peer_table.id, repair.event.node)
        if first is None:  # there is no third node
            repair.walked_for |= repair.walking
            return self._ask(repair)
        if repair.walks > 1:
            repair.led = LedWalk(self._walked, first, tuple(missing), skip, WALK_STEPS_AT_MOST)
            self._take_step(repair, repair.led)
            return None
        walk = RingWalk(repair.event, self._peer_table.ref, tuple(missing), (), skip, WALK_STEPS_AT_MOST, self._walked)
        self._out.send(first, walk)
        self._out.set_timer(RepairTimer(GATHERING, repair.event, repair.attempt), 20 * self._config.answer_timeout)
        return None

    def _take_step(self, repair: Repair, led: LedWalk) -> None:
        self._out.send(led.at, led.step(repair.event, self._peer_table.ref))
        timer = RepairTimer(GATHERING, repair.event, repair.attempt)
        self._out.set_timer(timer, self._config.answer_timeout << max(led.repeats, repair.walks - 2))

    def _walk_again(self, repair: Repair) -> Outcome | None:
        """A walk did not come back, or a step of one that is led was not answered: try again, a few times."""
        if repair.led is not None and repair.led.repeat():
            self._take_step(repair, repair.led)
        elif repair.walks_over or not self._ring.successors:
            return self._link(repair)
        else:
            return self._start_walk(repair)
        return None

    def on_walk_reply(self, sender: NodeId, message: RingWalkReply) -> Outcome | None:
        repair = self.repair
        if repair is None or repair.event != message.event or repair.stage != GATHERING:
            return None
        led, found = repair.led, message.descriptors
        if message.number and (led is None or not led.is_answered_by(sender, message)):
            return None
        if led is not None:
            if message.number and led.advance(message):
                self._take_step(repair, led)
                return None
            found = led.found if message.number else led.found + found  # an older node passes a led walk on
        repair.led = None
        if not found:
            repair.walked_for |= repair.walking
        for ref in (descriptor.digest.ref for descriptor in found):
            ref = self._peer_table.latest(ref)
            if repair.centre is None or ref.id == repair.centre.id:
                continue
            elif self._peer_table.is_declared_failed(ref):
                repair.gone[ref.id] = ref.incarnation  # nor of its loss: the next walk passes it over
            else:
                repair.members[ref.id] = ref
        return self._ask(repair)

    def _ask(self, repair: Repair) -> Outcome | None:
        """Ask the shadow set what it and its neighbours have of the topics concerned."""
        self._asked += 1  # never the same twice: a member knows by this number which links it has told of
        repair.attempt = self._asked
        repair.tries = repair.widened = 0
        repair.answers, repair.outer, repair.unheard = {}, {}, set()
        repair.open_links, repair.confirmed_by = {}, set()
        pending = self._event_queue.pending.get(repair.event)
        if pending is not None and repair.centre is None:
            for node, ref in pending.reporters.items():
                if not repair.is_lost(ref):
                    repair.members[node] = ref
        while dead := [
            node for node in sorted(repair.members) if self._peer_table.is_declared_failed(repair.members[node])
        ]:
            self._lose_member(repair, dead[0])
        repair.asked = tuple(sorted(repair.topics))
        self._enter(ASKING, repair)
        return self._ask_silent(repair)

    def _ask_silent(self, repair: Repair) -> Outcome | None:
        ask = self._question(repair)
        for node in repair.silent():
            self._out.send(repair.members[node], ask)
        self._set_try_timer(repair)
        return self._proceed(repair)

    def _question(self, repair: Repair) -> ShadowQuery:
        return repair.question(self._peer_table.ref, self._peer_table.has_ended)

    def on_unreached(self, node: NodeId, address: str) -> Outcome | None:
        """Nobody listens where a member was asked. It is asked once more soon; if that is refused too, it has ended.

        Not in the paper, whose members are all alive. The views of a coordinator may name a node whose loss others
        repaired, and to wait for its answer is most of what such a repair would take.
        """
        repair = self.repair
        if repair is not None and repair.led is not None:
            repair.led.note_refused(node, address)
        if repair is None or repair.stage != ASKING or repair.address_of_silent(node) != address:
            return None
        if repair.refused.get(node) == repair.attempt:
            lose = self._pass_over if repair.centre is None else self._lose_member  # no newcomer waits for it
            return self._go_on(repair, lose(repair, node))
        self._out.set_timer(UnreachedTimer(repair.event, repair.attempt, node), self._config.refusal_gap)
        return None

    def on_unreached_timer(self, timer: UnreachedTimer) -> None:
        repair = self.repair
        if repair is None or (repair.event, repair.attempt) != (timer.event, timer.attempt) or repair.stage != ASKING:
            return
        if timer.node in repair.silent():
            repair.refused[timer.node] = repair.attempt
            self._out.send(repair.members[timer.node], self._question(repair))

    def _widen(self, repair: Repair) -> bool:
        """Have nodes around asked too: after a loss where pieces seem apart that may meet further off, for a join those
        that have most of the newcomer's topics; whether there are any.

        A member passes the question on, since only neighbours have each other's address. Who does not answer at once is
        done without: all a repair loses by that is sight.
        """
        hops = self._config.halo_hops - 1
        if repair.widened >= (hops if repair.centre is None else JOIN_ROUNDS * hops) or repair.walks:
            return False
        repair.widened += 1
        strangers = repair.strangers()
        ask = self._question(repair)
        for node, others in strangers.items():
            by = repair.members[node] if node in repair.members else repair.outer[node].me
            self._out.send(by, RelayedQuery(ask, tuple(others)))
            repair.unheard.update(others)
        self._set_try_timer(repair)
        return bool(strangers)

    def _set_try_timer(self, repair: Repair) -> None:
        """The first answer may take its time; a member that is silent then is asked again twice as often."""
        again = repair.stage in ASKED and repair.tries > 0 and not repair.unheard
        wait = self._config.answer_timeout // 2 if again else self._config.answer_timeout
        self._out.set_timer(RepairTimer(repair.stage, repair.event, repair.attempt), wait)

    def _most_tries(self, repair: Repair) -> int:
        """Questions to a silent member until it counts as lost: as many as fit into `attempts` timeouts.

        With one in each timeout, where a fifth of all messages is lost one living member in sixty would count as lost,
        rejoin, and so begin further repairs; with two it is one in 1,300. A link takes its ends a round trip of their
        own, and each proposal of it is paid from a budget: these are repeated once in each.
        """
        return 2 * self._config.attempts - 1 if repair.stage in ASKED else self._config.attempts

    def on_reply(self, message: ShadowReply) -> Outcome | None:
        repair = self.repair
        if repair is None or repair.event != message.event or message.attempt != repair.attempt:
            return None
        node = message.me.id
        if repair.stage == CHECKING:
            return self._on_check_reply(repair, message)
        if node in repair.members:
            if message.me.incarnation > repair.members[node].incarnation:
                if repair.centre is None and node in repair.former:
                    return self._go_on(repair, self._lose_member(repair, node))
                repair.members[node] = message.me  # a link to the incarnation that has ended would be refused
            if message.former:
                repair.former.add(node)
            if message.leaving:
                return self._go_on(repair, self._lose_member(repair, node))
            repair.answers[node] = message
            return self._proceed(repair)
        elif node in repair.unheard:
            repair.unheard.discard(node)
            if (message.former or repair.centre is not None) and not message.leaving:
                repair.members[node] = message.me
                repair.answers[node] = message
                if message.former:
                    repair.former.add(node)
            elif not message.leaving:
                repair.outer[node] = message
            return self._proceed(repair)
        return None

    def _proceed(self, repair: Repair) -> Outcome | None:
        if repair.stage != ASKING or repair.silent() or repair.inquiries or repair.unheard:
            return None
        if self._widen(repair):
            return None
        missing = repair.uncovered()
        if missing and not repair.has_walked() and self._ring.successors:
            return self._start_walk(repair)
        elif missing and repair.is_outrun():
            self.repair = None
            return PutOff(repair.event)
        else:
            return self._link(repair)
        return None

    def _go_on(self, repair: Repair, grown: bool) -> Outcome | None:
        """Members were lost: ask anew where others came in for them or links to them were planned, else go on."""
        cut_off = [pair for pair in repair.open_links if not repair.has_both(pair)]
        cut_off += [pair for pair in repair.check.needed if repair.stage == CHECKING and repair.gone.keys() & pair]
        redo = repair.stage in (LINKING, CHECKING) and (grown or cut_off) and self._config.remedies.redo_unconfirmed
        if redo or (repair.stage == ASKING and grown):
            return self._ask(repair)
        else:
            return self._proceed(repair)

    def _lose_member(self, repair: Repair, node: NodeId) -> bool:
        """A member has failed. One that was linked to the loss brings its own former neighbours in; whether it did."""
        ref = repair.members.pop(node)
        repair.answers.pop(node, None)
        repair.gone[node] = ref.incarnation
        was_neighbour = node in repair.former
        repair.former.discard(node)
        if repair.centre is not None:
            return self._choose_members(repair, repair.centre.id)
        if not was_neighbour:
            return False
        if not self._config.remedies.linked_losses_as_one or repair.is_lost(ref) or node == repair.event.node:
            return False
        repair.losses[node] = Loss(EventId(ref.id, ref.incarnation, EventKind.LEAVE), known=False)
        return self._inherit(repair, node)

    def _inherit(self, repair: Repair, node: NodeId) -> bool:
        """Bring a linked loss in, from here where it is this node's to repair, or ask its coordinator; whether done."""
        linked = repair.losses[node].event
        pending = self._event_queue.pending.get(linked)
        if self._ring.is_coordinator(node) or (pending is not None and pending.inquirers):
            repair.inquiries.discard(node)
            repair.add_loss(self._with_oneself(self._event_queue.recall(linked, self._peer_table.known.get(node))))
            return True
        repair.inquiries.add(node)
        self._ring_lookup.find(node, LinkedLossLookup(repair.event, linked), self._ring.members.values())
        return False

    def on_located(self, purpose: LinkedLossLookup, successor: Ref | None) -> Outcome | None:
        """The coordinator of a linked loss was found: ask it for the former neighbours, or do without."""
        repair = self.repair
        event, linked = purpose.event, purpose.linked
        if repair is None or repair.event != event or linked.node not in repair.inquiries:
            return None
        if successor is None:
            repair.inquiries.discard(linked.node)
            return self._proceed(repair)
        loss = repair.losses[repair.event.node]
        self._out.send(
            successor,
            LinkedLossQuery(
                self._peer_table.ref, repair.event, linked, tuple(loss.neighbours.values()), tuple(sorted(loss.topics))
            ),
        )
        return None

    def on_linked_loss_reply(self, message: LinkedLossReply) -> Outcome | None:
        repair = self.repair
        if repair is None or repair.event != message.event or message.lost.node not in repair.inquiries:
            return None
        repair.inquiries.discard(message.lost.node)
        if not message.lead:
            self.repair = None
            return LeftToAnother(message.event)
        told = self._event_queue.recall(message.lost, None)  # here, before that coordinator came in between
        told.topics.update(message.topics)
        told.neighbours.update({ref.id: ref for ref in message.neighbours})
        told.known |= message.known or bool(message.neighbours)  # it may know of the loss by the question alone
        repair.add_loss(self._with_oneself(told))
        return self._ask(repair)

    def _try_again(self, repair: Repair) -> Outcome | None:
        """Members were silent: ask again, and after a few times count them as lost."""
        repair.tries += 1
        repair.unheard = set()
        if repair.stage == ASKING:
            if repair.tries >= self._most_tries(repair):
                repair.tries = 0
                grown = [self._inherit(repair, node) for node in sorted(repair.inquiries)]
                grown += [self._pass_over(repair, node) for node in repair.silent()]
                self._set_try_timer(repair)
                return self._go_on(repair, any(grown))
            else:
                return self._ask_silent(repair)
        elif repair.stage == CHECKING:
            if repair.tries >= self._most_tries(repair):
                return self._doubt_silent(repair, repair.check.silent())
            self._ask_witnesses(repair)
            return None
        elif repair.tries >= self._most_tries(repair):
            if repair.is_centre_silent():
                self.repair = None
                return Abandoned(repair.event)
            elif self._config.remedies.redo_unconfirmed:
                repair.note_in_vain()
                return self._ask(repair)
            else:
                return self._finish(repair)
        else:
            return self._propose(repair)

    def _pass_over(self, repair: Repair, node: NodeId) -> bool:
        """A member that does not answer counts as lost; a former neighbour that was only slow has to join again."""
        if repair.centre is None and node in repair.former:
            ref = repair.members[node]
            self._out.send(ref, FailureNotice(self._peer_table.ref, ref.incarnation, final=True))
        elif repair.centre is not None:
            repair.passed_over[node] = repair.members[node]
        return self._lose_member(repair, node)

    def _link(self, repair: Repair) -> Outcome | None:
        self._enter(LINKING, repair)
        repair.tries = 0
        rho = self._config.repair_rho if repair.centre is None else self._config.rho
        pairs = repair.plan(self._context.engine, rho, self._config.halo_hops > 0, self._config.sigma)
        repair.planned = pairs
        repair.open_links = {pair: set() for pair in sorted(pairs)}
        repair.under_way = set()
        repair.made.extend(pairs)
        return self._propose(repair)

    def _propose(self, repair: Repair) -> Outcome | None:
        self._proposals.send(repair)
        if not repair.open_links or not self._config.remedies.redo_unconfirmed:
            return self._check(repair)
        self._set_try_timer(repair)
        return None

    def on_confirmed(self, sender: NodeId, message: LinkConfirmed) -> Outcome | None:
        repair = self.repair
        if repair is None or repair.event != message.event or message.attempt != repair.attempt:
            return None
        pair = (min(sender, message.other), max(sender, message.other))
        ends = repair.open_links.get(pair)
        if ends is None:
            return None
        answer = repair.answers.get(sender)
        if answer is not None and answer.topics_version != message.topics_version:
            return self._ask(repair)
        ends.add(sender)
        repair.confirmed_by.add(sender)
        if len(ends) == 2:
            del repair.open_links[pair]
            repair.under_way.discard(pair)
        if repair.stage == LINKING and not repair.open_links:
            return self._check(repair)
        if len(ends) == 2 and repair.stage == LINKING:
            if len(repair.under_way) < len(repair.open_links):
                repair.tries = 0  # others wait for their turn, and have their time from then on
            self._proposals.send_more(repair)
        return None

    def _check(self, repair: Repair) -> Outcome | None:
        """All links are made. The old ones that hold pieces together are asked for once more (see `join_check`)."""
        if not self._config.remedies.redo_unconfirmed or not repair.begin_check(self._config.halo_hops > 0).needed:
            return self._finish(repair)
        self._asked += 1
        repair.attempt = self._asked
        repair.tries = 0
        self._enter(CHECKING, repair)
        self._ask_witnesses(repair)
        return None

    def _ask_witnesses(self, repair: Repair) -> None:
        ask = self._question(repair)
        for node in repair.check.silent():
            ref, direct = repair.way_to(node)
            self._out.send(ref, ask if direct else RelayedQuery(ask, (node,)))
        self._set_try_timer(repair)

    def _on_check_reply(self, repair: Repair, message: ShadowReply) -> Outcome | None:
        """A witness has answered. One that is new to this repair in any way means another round."""
        node = message.me.id
        if node not in repair.check.witnesses():
            return None
        if node in repair.members and (message.leaving or message.me.incarnation > repair.members[node].incarnation):
            return self._go_on(repair, self._lose_member(repair, node))
        if message.former and node not in repair.former and not message.leaving:
            repair.members[node] = message.me
            repair.former.add(node)
            return self._ask(repair)
        repair.check.replies[node] = message
        if repair.check.silent():
            return None
        unconfirmed = repair.check.unconfirmed(repair.agreed_by_both)
        if not unconfirmed:
            return self._finish(repair)
        repair.doubt(unconfirmed)
        return self._ask(repair)

    def _doubt_silent(self, repair: Repair, silent: list[NodeId]) -> Outcome | None:
        """Witnesses that do not answer count as lost, as in asking, and no path through them is counted on."""
        repair.doubt([pair for pair in repair.check.needed if not set(silent).isdisjoint(pair)])
        for node in silent:
            if node in repair.members:
                self._pass_over(repair, node)
        return self._ask(repair)
