"""Who mends what, when, and who takes over (omen Algs. 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from omen.protocol.backups import build_backups
from omen.protocol.book import Book
from omen.protocol.config import Config
from omen.protocol.events import Engine, NodeId, Randomness, Time, Topic
from omen.protocol.locate import Locator
from omen.protocol.mending import ASKING, GATHERING, LINKING, WAITING, Loss, Mending
from omen.protocol.messages import (
    Answer,
    Arrive,
    Ask,
    Confirmed,
    Descriptor,
    EventId,
    Found,
    Handled,
    Inherit,
    Inquire,
    Propose,
    Ref,
    Report,
    Reported,
    Walk,
)
from omen.protocol.outbox import Outbox
from omen.protocol.ring import Ring
from omen.protocol.views import Views

HANDLED_AT_MOST = 256
WALKS_AT_MOST = 8


@dataclass(slots=True)
class Standby:
    """An event someone else should handle; `coordinator` is who, as far as known."""

    event: EventId
    coordinator: NodeId


@dataclass(slots=True)
class Case:
    """Everything gathered about an event, whoever ends up handling it."""

    loss: Loss
    centre: Descriptor | None = None
    reporters: dict[NodeId, Ref] = field(default_factory=dict)
    inquirers: dict[NodeId, Ref] = field(default_factory=dict)
    client: Ref | None = None


class Coordinator:
    """Keeps `exe_q` and `standby` (Alg. 5), the cases behind them, and the one mending under way."""

    def __init__(
        self,
        book: Book,
        ring: Ring,
        views: Views,
        locator: Locator,
        config: Config,
        randomness: Randomness,
        engine: Engine,
        out: Outbox,
    ) -> None:
        self._book = book
        self._ring = ring
        self._views = views
        self._locator = locator
        self._config = config
        self._random = randomness
        self._engine = engine
        self._out = out
        self.exe_q: list[EventId] = []
        self.standby: dict[EventId, Standby] = {}
        self.cases: dict[EventId, Case] = {}
        self.mending: Mending | None = None
        self.handled: dict[EventId, frozenset[NodeId]] = {}

    def pinned(self) -> list[NodeId]:
        """Lost nodes whose backups must be kept until their event is handled."""
        return [case.loss.event.node for case in self.cases.values() if case.loss.event.kind == "leave"]

    def on_loss(self, descriptor: Descriptor, backups: list[Ref]) -> None:
        """v.handleChurnEvent for a node that went, with all this node kept for it."""
        ref = descriptor.digest.ref
        event = EventId(ref.id, ref.incarnation, "leave")
        case = self._case(event)
        case.loss.topics.update(descriptor.topics)
        case.loss.neighbours.update({other.id: other for other in descriptor.neighbours})
        case.loss.backups.update({other.id: other for other in backups})
        self.handle_churn_event(event)

    def on_node_lost(self, node: NodeId) -> None:
        """Whatever this node is, or was to do, for any event: take it into account (Alg. 5 lines 2-4)."""
        for event in [event for event, waiting in self.standby.items() if waiting.coordinator == node]:
            if self._ring.is_coordinator(event.node) or event.kind != "leave":
                self._enqueue(event)
            else:
                self._stand_by(event)
        mending = self.mending
        if mending is not None and mending.centre is not None and mending.centre.id == node:
            self.mending = None
            self._collect(mending.event, frozenset())
            self.process_exe_q()
        elif mending is not None and node in mending.members:
            self._go_on(mending, self._lose_member(mending, node))

    def handle_churn_event(self, event: EventId) -> None:
        """Alg. 5: queue it where this node is the coordinator, else stand by."""
        if event in self.handled:
            return
        if self._ring.is_coordinator(event.node):
            self._enqueue(event)
        else:
            self._stand_by(event)

    def on_arrive(self, sender: NodeId, message: Arrive) -> None:
        """A live node asks: link me (join, add), or mend the topics I gave up (drop), or the gap I leave (leave)."""
        event = message.event
        ref = message.descriptor.digest.ref
        if event in self.handled:
            self._out.send(ref, Handled(event))
            return
        case = self._case(event)
        case.client = ref
        if event.kind in ("join", "add"):
            case.centre = message.descriptor
            case.loss.topics.update(message.added)
        else:
            case.loss.topics.update(message.dropped)
            case.loss.neighbours.update({other.id: other for other in message.descriptor.neighbours})
            case.loss.backups.update({other.id: other for other in self._views.backups_of(event.node)})
        self._enqueue(event)

    def on_report(self, message: Report) -> None:
        """A former neighbour of a lost node names itself: pass it on, or take it in."""
        event = message.event
        nearest = self._ring.nearest_successor_of(event.node)
        if nearest != self._book.id:
            self._out.send(self._ring.members[nearest], message)
            return
        self._out.send(message.reporter, Reported(event))
        mended = self.handled.get(event)
        if mended is not None:
            if message.reporter.id in mended:
                self._out.send(message.reporter, Handled(event))
                return
            del self.handled[event]
        case = self._case(event)
        case.reporters[message.reporter.id] = message.reporter
        case.loss.topics.update(message.topics)
        case.loss.neighbours[message.reporter.id] = message.reporter
        mending = self.mending
        if mending is not None and event.node in mending.losses:
            if message.reporter.id not in mending.answers:
                mending.add_loss(Loss(event, set(message.topics), {message.reporter.id: message.reporter}))
                if mending.stage in (ASKING, LINKING):
                    self._ask(mending)
        elif event.node not in self._ring.members:
            self._enqueue(event)
        else:
            self._stand_by(event)

    def on_handled(self, event: EventId) -> None:
        """v.gcChurnEvent: somebody did it."""
        case = self.cases.get(event)
        self._collect(event, frozenset() if case is None else frozenset(case.loss.neighbours))
        if case is not None:
            for ref in case.inquirers.values():
                self._out.send(ref, Handled(event))
        mending = self.mending
        if mending is not None and mending.event == event:
            self.mending = None
            self.process_exe_q()

    def on_timer(self, key: tuple[object, ...]) -> None:
        if key[1] == "standby":
            event = key[2]
            if isinstance(event, EventId) and event in self.standby:
                del self.standby[event]
                if event.kind != "leave" or self._ring.is_in_pred_range(event.node):
                    self._enqueue(event)
                else:
                    self.cases.pop(event, None)
            return
        mending = self.mending
        if mending is None or key[2] != mending.event or key[3] != mending.attempt or key[1] != mending.stage:
            return
        if mending.stage == WAITING:
            self._wait_until_ready(mending)
        elif mending.stage == GATHERING and mending.centre is None:
            self._ask(mending)
        elif mending.stage == GATHERING:
            self._walk_again(mending)
        else:
            self._try_again(mending)

    def process_exe_q(self) -> None:
        """Take the event waiting longest, unless one is under way."""
        while self.mending is None and self.exe_q:
            event = self.exe_q.pop(0)
            case = self.cases.get(event)
            if case is None or event in self.handled:
                continue
            self._begin(event, case)

    def _case(self, event: EventId) -> Case:
        return self.cases.setdefault(event, Case(Loss(event)))

    def _enqueue(self, event: EventId) -> None:
        self.standby.pop(event, None)
        if event not in self.exe_q and (self.mending is None or self.mending.event != event):
            self.exe_q.append(event)
        self.process_exe_q()

    def _stand_by(self, event: EventId) -> None:
        self.standby[event] = Standby(event, self._ring.nearest_successor_of(event.node))
        self._out.set_timer(("mend", "standby", event), self._config.standby_timeout)

    def _begin(self, event: EventId, case: Case) -> None:
        centre = case.centre.digest.ref if case.centre is not None else None
        mending = self.mending = Mending(event, centre, set(case.loss.topics))
        if centre is None:
            mending.add_loss(case.loss)
            self._wait_until_ready(mending)
        else:
            self._choose_members(mending)

    def _wait_until_ready(self, mending: Mending) -> None:
        """Alg. 5 line 3: wait until R(v'), or until it is no longer this node's to do."""
        event = mending.event
        if event.kind == "leave" and not self._ring.is_in_pred_range(event.node):
            self.mending = None
            self._stand_by(event)
            self.process_exe_q()
            return
        ready = event.kind != "leave" or event.node not in self._views.shadows or self._views.is_ready(event.node)
        if not ready:
            mending.stage = WAITING
            self._out.set_timer(("mend", WAITING, event, mending.attempt), self._config.gossip_period // 4)
            return
        for ref in self._views.backups_of(event.node):
            if ref.id not in mending.losses:
                mending.members.setdefault(ref.id, ref)
        mending.stage = GATHERING
        self._out.set_timer(("mend", GATHERING, event, mending.attempt), self._config.grace)

    def _choose_members(self, mending: Mending) -> None:
        """For a join: a backup set over everybody known here, and a walk round the circle for what it does not cover."""
        assert mending.centre is not None
        me = self._book
        candidates = {node: topics for node, topics in me.topic_sets.items() if node != mending.centre.id}
        candidates[me.id] = frozenset(me.me.topics)
        weights = {node: self._degree(node) for node in candidates}
        coverage = max(1, self._config.coverage)
        chosen = build_backups(mending.topics, candidates, weights, coverage, self._config.backups, self._random)
        for node in chosen:
            descriptor = me.get(node)
            if descriptor is not None:
                mending.members[node] = descriptor.digest.ref
        self._ask(mending)

    def _degree(self, node: NodeId) -> int:
        known = self._book.get(node)
        return len(known.neighbours) if known is not None else 0

    def _start_walk(self, mending: Mending, missing: list[Topic]) -> None:
        mending.stage = GATHERING
        mending.walks += 1
        mending.walked = mending.walks >= WALKS_AT_MOST
        walk = Walk(mending.event, self._book.ref, tuple(missing), (), tuple(sorted(mending.gone)))
        self._out.send(self._ring.members[self._ring.get_succs()[-1]], walk)
        patience = self._config.answer_timeout * 20 * mending.walks
        self._out.set_timer(("mend", GATHERING, mending.event, mending.attempt), patience)

    def _walk_again(self, mending: Mending) -> None:
        """The walker did not come back: send another, a few times."""
        if mending.walked:
            self._link(mending)
        else:
            self._start_walk(mending, mending.uncovered())

    def on_found(self, message: Found) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or mending.stage != GATHERING:
            return
        if not message.descriptors:
            mending.walked = True
        for descriptor in message.descriptors:
            ref = descriptor.digest.ref
            if mending.centre is not None and ref.id != mending.centre.id and not self._book.is_dead(ref):
                mending.members[ref.id] = ref
        self._ask(mending)

    def _ask(self, mending: Mending) -> None:
        """Ask the shadow set what it and its neighbours have of the topics concerned."""
        mending.stage = ASKING
        mending.attempt += 1
        mending.tries = 0
        mending.answers = {}
        mending.open_links = {}
        case = self.cases.get(mending.event)
        if case is not None and mending.centre is None:
            for node, ref in case.reporters.items():
                if node not in mending.losses:
                    mending.members[node] = ref
        while dead := [node for node in sorted(mending.members) if self._book.is_dead(mending.members[node])]:
            self._lose_member(mending, dead[0])
        mending.asked = tuple(sorted(mending.topics))
        self._ask_silent(mending)

    def _ask_silent(self, mending: Mending) -> None:
        lost = tuple(
            Ref(loss.event.node, loss.event.incarnation, "")
            for loss in mending.losses.values()
            if loss.event.kind == "leave" and self._is_gone(loss.event)
        )
        for node in mending.silent():
            self._out.send(mending.members[node], Ask(self._book.ref, mending.event, mending.attempt, mending.asked, lost))
        self._set_try_timer(mending)
        self._proceed(mending)

    def _is_gone(self, event: EventId) -> bool:
        buried = self._book.tombstones.get(event.node)
        return buried is not None and buried[0] >= event.incarnation

    def _set_try_timer(self, mending: Mending) -> None:
        self._out.set_timer(("mend", mending.stage, mending.event, mending.attempt), self._config.answer_timeout)

    def on_answer(self, message: Answer) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or message.attempt != mending.attempt:
            return
        if message.me.id in mending.members:
            mending.answers[message.me.id] = message
            if message.former:
                mending.former.add(message.me.id)
            self._proceed(mending)

    def _proceed(self, mending: Mending) -> None:
        if mending.stage != ASKING or mending.silent() or mending.inquiries:
            return
        missing = mending.uncovered()
        if missing and not mending.walked and self._ring.successors:
            self._start_walk(mending, missing)
        else:
            self._link(mending)

    def _go_on(self, mending: Mending, grown: bool) -> None:
        """Members were lost: ask everybody anew where others came in for them, else go on with those left."""
        if grown and mending.stage in (ASKING, LINKING):
            self._ask(mending)
        else:
            self._proceed(mending)

    def _lose_member(self, mending: Mending, node: NodeId) -> bool:
        """A member is gone. One that was a neighbour of the loss brings its own former neighbours in; whether it did."""
        ref = mending.members.pop(node)
        mending.answers.pop(node, None)
        mending.gone.add(node)
        was_neighbour = node in mending.former
        mending.former.discard(node)
        if mending.centre is not None or not was_neighbour:
            return False
        if not self._config.remedies.linked_losses_as_one or node in mending.losses:
            return False
        linked = EventId(ref.id, ref.incarnation, "leave")
        case = self.cases.get(linked)
        mending.losses[node] = Loss(linked)
        if case is not None and self._ring.is_coordinator(node):
            mending.add_loss(case.loss)
            return True
        mending.inquiries.add(node)
        known = [self._ring.members[member] for member in self._ring.members]
        self._locator.search(node, ("linked", mending.event, linked), known)
        return False

    def on_located(self, purpose: tuple[object, ...], successor: Ref | None) -> None:
        """The coordinator of a linked loss was found: ask it for the former neighbours, or do without."""
        mending = self.mending
        _, event, linked = purpose
        assert isinstance(linked, EventId)
        if mending is None or mending.event != event or linked.node not in mending.inquiries:
            return
        if successor is None:
            mending.inquiries.discard(linked.node)
            self._proceed(mending)
            return
        loss = mending.losses[mending.event.node]
        self._out.send(
            successor,
            Inquire(
                self._book.ref, mending.event, linked, tuple(loss.neighbours.values()), tuple(sorted(loss.topics))
            ),
        )

    def on_inquire(self, message: Inquire) -> None:
        """Another coordinator's loss was linked to one that is ours: the lower event leads, the other waits."""
        sender, linked, other = message.asker, message.lost, message.event
        known = linked in self.cases or linked in self.handled
        case = self._case(linked)
        descriptor = self._book.known.get(linked.node)
        if descriptor is not None:
            case.loss.topics.update(descriptor.topics)
            case.loss.neighbours.update({ref.id: ref for ref in descriptor.neighbours})
        ours_leads = linked < other and linked not in self.handled
        if ours_leads:
            case.inquirers[sender.id] = sender
            foreign = self._case(other)
            foreign.loss.topics.update(message.topics)
            foreign.loss.neighbours.update({ref.id: ref for ref in message.neighbours})
            foreign.inquirers[sender.id] = sender
            mending = self.mending
            if mending is not None and linked.node in mending.losses:
                mending.add_loss(foreign.loss)
                self._ask(mending)
            elif linked not in self.standby:
                self._enqueue(linked)
        else:
            self._stand_by(linked)
        reply = Inherit(
            other,
            linked,
            known,
            not ours_leads,
            tuple(case.loss.neighbours.values()),
            tuple(sorted(case.loss.topics)),
        )
        self._out.send(sender, reply)

    def on_inherit(self, message: Inherit) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or message.lost.node not in mending.inquiries:
            return
        mending.inquiries.discard(message.lost.node)
        if not message.lead:
            self.mending = None
            self._stand_by(message.event)
            self.process_exe_q()
            return
        neighbours = {ref.id: ref for ref in message.neighbours}
        mending.add_loss(Loss(message.lost, set(message.topics), neighbours))
        self._ask(mending)

    def _try_again(self, mending: Mending) -> None:
        """Somebody was silent: ask again, and after a few times count it as lost."""
        mending.tries += 1
        if mending.stage == ASKING:
            if mending.tries >= self._config.attempts:
                mending.inquiries.clear()
                mending.tries = 0
                grown = [self._lose_member(mending, node) for node in mending.silent()]
                self._set_try_timer(mending)
                self._go_on(mending, any(grown))
            else:
                self._ask_silent(mending)
        elif mending.tries >= self._config.attempts:
            if self._config.remedies.redo_unconfirmed:
                self._ask(mending)
            else:
                self._finish(mending)
        else:
            self._propose(mending)

    def _link(self, mending: Mending) -> None:
        mending.stage = LINKING
        mending.tries = 0
        pairs = mending.plan(self._engine, self._config.rho, self._config.halo_hops > 0)
        mending.open_links = {pair: set() for pair in pairs}
        mending.made.extend(pairs)
        self._propose(mending)

    def _propose(self, mending: Mending) -> None:
        refs = dict(mending.members)
        if mending.centre is not None:
            refs[mending.centre.id] = mending.centre
        for (one, other), confirmed in sorted(mending.open_links.items()):
            for end, far in ((one, other), (other, one)):
                if end not in confirmed:
                    self._out.send(refs[end], Propose(self._book.ref, mending.event, mending.attempt, refs[far]))
        if mending.open_links and self._config.remedies.redo_unconfirmed:
            self._set_try_timer(mending)
        else:
            self._finish(mending)

    def on_confirmed(self, sender: NodeId, message: Confirmed) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or message.attempt != mending.attempt:
            return
        pair = (min(sender, message.other), max(sender, message.other))
        ends = mending.open_links.get(pair)
        if ends is None:
            return
        ends.add(sender)
        if len(ends) == 2:
            del mending.open_links[pair]
        if mending.stage == LINKING and not mending.open_links:
            self._finish(mending)

    def _finish(self, mending: Mending) -> None:
        """Alg. 5 line 6: tell the successor range of each node concerned, and whoever waits for the news."""
        self.mending = None
        events = {mending.event, *(loss.event for loss in mending.losses.values())}
        for event in sorted(events):
            case = self.cases.get(event)
            told = {node: self._ring.members[node] for node in self._ring.succ_range(event.node) if node != self._book.id}
            if case is not None:
                told.update(case.inquirers)
                if case.client is not None:
                    told[case.client.id] = case.client
            told.update({node: mending.members[node] for node in mending.former if node in mending.members})
            for node in sorted(told):
                self._out.send(told[node], Handled(event))
            self._collect(event, frozenset(mending.answers))
        self._out.notify("handled", (mending.event, tuple(mending.made), len(mending.members), tuple(sorted(events))))
        self.process_exe_q()

    def _collect(self, event: EventId, mended: frozenset[NodeId]) -> None:
        self.standby.pop(event, None)
        self.cases.pop(event, None)
        if event in self.exe_q:
            self.exe_q.remove(event)
        if len(self.handled) >= HANDLED_AT_MOST:
            del self.handled[next(iter(self.handled))]
        self.handled[event] = mended
