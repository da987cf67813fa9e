"""One repair, step by step: wait, gather, ask the shadow set, run the engine, have the links made (omen Alg. 1)."""

from __future__ import annotations

from typing import Protocol

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import Engine, NodeId, Randomness, Topic
from omen.protocol.membership.peer_table import Book
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import Locator
from omen.protocol.messages.overlay import (
    Answer,
    Ask,
    Confirmed,
    EventId,
    Found,
    Inherit,
    Inquire,
    Knock,
    Ref,
    Relay,
    Walk,
)
from omen.protocol.repair.event_queue import Case, Docket
from omen.protocol.repair.joining import members_for_join
from omen.protocol.repair.shadow_set import ASKING, FINISHING, GATHERING, LINKING, WAITING, Loss, Mending
from omen.protocol.repair.views import Views

JOIN_ROUNDS = 3  # a newcomer with many topics becomes no hub: rounds of asking wider nodes, for each hop
WALKS_AT_MOST = 8


class Owner(Protocol):
    """Whom a repair tells how it ended."""

    def finish(self, mending: Mending) -> None: ...

    def yield_to_another(self, event: EventId) -> None: ...

    def put_off(self, event: EventId) -> None: ...

    def abandon(self, event: EventId) -> None: ...


class Repairer:
    """Runs the one mending under way. Everything it learns about other events goes to the docket."""

    def __init__(
        self,
        book: Book,
        ring: Ring,
        views: Views,
        locator: Locator,
        docket: Docket,
        config: Config,
        randomness: Randomness,
        engine: Engine,
        out: Outbox,
        owner: Owner,
    ) -> None:
        self._book = book
        self._ring = ring
        self._views = views
        self._locator = locator
        self._docket = docket
        self._config = config
        self._random = randomness
        self._engine = engine
        self._out = out
        self._owner = owner
        self.mending: Mending | None = None
        self._asked = 0

    def begin(self, event: EventId, case: Case) -> None:
        centre = case.centre.digest.ref if case.centre is not None else None
        mending = self.mending = Mending(event, centre, set(case.loss.topics))
        if centre is None:
            mending.add_loss(case.loss)
            self._enter(WAITING, mending)
            self._wait_until_ready(mending)
        else:
            self._choose_members(mending, centre.id)
            self._ask(mending)

    def _choose_members(self, mending: Mending, newcomer: NodeId) -> bool:
        """Whom a newcomer may be linked to, without those that are gone; whether there are others than before."""
        before = set(mending.members)
        chosen = members_for_join(self._book, self._config, self._random, newcomer, mending.topics, mending.gone)
        mending.members = chosen | mending.members
        mending.walked = mending.walks >= WALKS_AT_MOST
        return bool(mending.members.keys() - before)

    def on_node_lost(self, node: NodeId, life: int) -> None:
        """A node is gone: a newcomer takes its event with it, a member brings in whoever it leaves behind."""
        mending = self.mending
        if mending is None:
            return
        if mending.centre is not None and mending.centre.id == node and mending.centre.incarnation <= life:
            mending.members, mending.former = {}, set()
            self._finish(mending)
        elif node in mending.members and mending.members[node].incarnation <= life:
            self._go_on(mending, self._lose_member(mending, node))

    def on_timer(self, key: tuple[object, ...]) -> None:
        """`key`: ("mend", stage, event, attempt); of no effect once the repair has moved on."""
        mending = self.mending
        if mending is None or key[1:] != (mending.stage, mending.event, mending.attempt):
            return
        if mending.stage == WAITING:
            self._wait_until_ready(mending)
        elif mending.stage == GATHERING and mending.centre is None:
            self._ask(mending)
        elif mending.stage == GATHERING:
            self._walk_again(mending)
        else:
            self._try_again(mending)

    def take_in(self, loss: Loss) -> None:
        """More is known of a loss that is being mended, or of one linked to it: ask those who were not asked yet."""
        mending = self.mending
        if mending is None:
            return
        widened = loss.event.node not in mending.losses or not loss.topics <= mending.topics
        strangers = [node for node in loss.neighbours if node not in mending.members and node not in mending.losses]
        mending.add_loss(loss)
        if mending.stage in (ASKING, LINKING) and (widened or (strangers and mending.stage == LINKING)):
            self._ask(mending)
        elif mending.stage == ASKING and strangers:
            self._ask_silent(mending)

    def _enter(self, stage: str, mending: Mending) -> None:
        mending.stage = stage
        self._out.notify("step", (mending.event, stage, tuple(sorted(mending.members))))

    def _finish(self, mending: Mending) -> None:
        self._enter(FINISHING, mending)
        self.mending = None
        self._owner.finish(mending)

    def _wait_until_ready(self, mending: Mending) -> None:
        """Alg. 5 line 3: wait until R(v'), or until it is no longer this node's to do."""
        event = mending.event
        if event.kind == "leave" and not self._ring.is_in_pred_range(event.node):
            self.mending = None
            self._owner.yield_to_another(event)
            return
        ready = event.kind != "leave" or event.node not in self._views.shadows or self._views.is_ready(event.node)
        if not ready:
            self._out.set_timer(("mend", WAITING, event, mending.attempt), self._config.gossip_period // 4)
            return
        for ref in self._views.backups_of(event.node):
            if ref.id not in mending.losses:
                mending.members.setdefault(ref.id, ref)
        self._enter(GATHERING, mending)
        self._out.set_timer(("mend", GATHERING, event, mending.attempt), self._config.grace)

    def _start_walk(self, mending: Mending, missing: list[Topic]) -> None:
        self._enter(GATHERING, mending)
        mending.walks += 1
        mending.walked = mending.walks >= WALKS_AT_MOST
        skip = tuple(sorted({*mending.gone, *mending.members}))
        walk = Walk(mending.event, self._book.ref, tuple(missing), (), skip)
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
        self._asked += 1  # never the same twice: whoever answers counts its links as told of by that number
        mending.attempt = self._asked
        mending.tries = mending.widened = 0
        mending.answers, mending.outer, mending.unheard = {}, {}, set()
        mending.open_links = {}
        mending.confirmed_by = set()
        case = self._docket.cases.get(mending.event)
        if case is not None and mending.centre is None:
            for node, ref in case.reporters.items():
                if node not in mending.losses:
                    mending.members[node] = ref
        while dead := [node for node in sorted(mending.members) if self._book.is_dead(mending.members[node])]:
            self._lose_member(mending, dead[0])
        mending.asked = tuple(sorted(mending.topics))
        self._enter(ASKING, mending)
        self._ask_silent(mending)

    def _ask_silent(self, mending: Mending) -> None:
        ask = self._question(mending)
        for node in mending.silent():
            self._out.send(mending.members[node], ask)
        self._set_try_timer(mending)
        self._proceed(mending)

    def _question(self, mending: Mending) -> Ask:
        return mending.question(self._book.ref, self._book.is_dead)

    def _widen(self, mending: Mending) -> bool:
        """Have nodes around asked too: after a loss where pieces seem apart that may meet further off, for a join those
        that have most of the newcomer's topics; whether there are any.

        A member passes the question on, since only neighbours have each other's address. Who does not answer at once is
        done without: all a repair loses by that is sight.
        """
        hops = self._config.halo_hops - 1
        if mending.widened >= (hops if mending.centre is None else JOIN_ROUNDS * hops) or mending.walks:
            return False
        mending.widened += 1
        strangers = mending.strangers()
        ask = self._question(mending)
        for node, others in strangers.items():
            by = mending.members[node] if node in mending.members else mending.outer[node].me
            self._out.send(by, Relay(ask, tuple(others)))
            mending.unheard.update(others)
        self._set_try_timer(mending)
        return bool(strangers)

    def _set_try_timer(self, mending: Mending) -> None:
        self._out.set_timer(("mend", mending.stage, mending.event, mending.attempt), self._config.answer_timeout)

    def on_answer(self, message: Answer) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or message.attempt != mending.attempt:
            return
        node = message.me.id
        if node in mending.members:
            if message.me.incarnation > mending.members[node].incarnation:
                mending.members[node] = message.me  # its neighbours would refuse a link to the life that has ended
            if message.former:
                mending.former.add(node)
            if message.leaving:
                self._go_on(mending, self._lose_member(mending, node))
                return
            mending.answers[node] = message
            self._proceed(mending)
        elif node in mending.unheard:
            mending.unheard.discard(node)
            if (message.former or mending.centre is not None) and not message.leaving:
                mending.members[node] = message.me
                mending.answers[node] = message
                if message.former:
                    mending.former.add(node)
            elif not message.leaving:
                mending.outer[node] = message
            self._proceed(mending)

    def _proceed(self, mending: Mending) -> None:
        if mending.stage != ASKING or mending.silent() or mending.inquiries or mending.unheard:
            return
        if self._widen(mending):
            return
        missing = mending.uncovered()
        if missing and not mending.walked and self._ring.successors:
            self._start_walk(mending, missing)
        elif missing and mending.is_outrun():
            self.mending = None
            self._owner.put_off(mending.event)
        else:
            self._link(mending)

    def _go_on(self, mending: Mending, grown: bool) -> None:
        """Members were lost: ask anew where others came in for them or links to them were planned, else go on."""
        cut_off = [pair for pair in mending.open_links if not mending.has_both(pair)]
        redo = mending.stage == LINKING and (grown or cut_off) and self._config.remedies.redo_unconfirmed
        if redo or (mending.stage == ASKING and grown):
            self._ask(mending)
        else:
            self._proceed(mending)

    def _lose_member(self, mending: Mending, node: NodeId) -> bool:
        """A member is gone. One that was linked to the loss brings its own former neighbours in; whether it did."""
        ref = mending.members.pop(node)
        mending.answers.pop(node, None)
        mending.gone.add(node)
        was_neighbour = node in mending.former
        mending.former.discard(node)
        if mending.centre is not None:
            return self._choose_members(mending, mending.centre.id)
        if not was_neighbour:
            return False
        if not self._config.remedies.linked_losses_as_one or node in mending.losses:
            return False
        mending.losses[node] = Loss(EventId(ref.id, ref.incarnation, "leave"), known=False)
        return self._inherit(mending, node)

    def _inherit(self, mending: Mending, node: NodeId) -> bool:
        """Bring a linked loss in, from here where it is this node's to mend, else ask whose it is; whether done."""
        linked = mending.losses[node].event
        case = self._docket.cases.get(linked)
        if self._ring.is_coordinator(node) or (case is not None and case.inquirers):
            mending.inquiries.discard(node)
            mending.add_loss(self._docket.case(linked).loss)
            return True
        mending.inquiries.add(node)
        self._locator.search(node, ("linked", mending.event, linked), self._ring.members.values())
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
            Inquire(self._book.ref, mending.event, linked, tuple(loss.neighbours.values()), tuple(sorted(loss.topics))),
        )

    def on_inherit(self, message: Inherit) -> None:
        mending = self.mending
        if mending is None or mending.event != message.event or message.lost.node not in mending.inquiries:
            return
        mending.inquiries.discard(message.lost.node)
        if not message.lead:
            self.mending = None
            self._owner.yield_to_another(message.event)
            return
        neighbours = {ref.id: ref for ref in message.neighbours}
        mending.add_loss(Loss(message.lost, set(message.topics), neighbours))
        self._ask(mending)

    def _try_again(self, mending: Mending) -> None:
        """Somebody was silent: ask again, and after a few times count it as lost."""
        mending.tries += 1
        mending.unheard = set()
        if mending.stage == ASKING:
            if mending.tries >= self._config.attempts:
                mending.tries = 0
                grown = [self._inherit(mending, node) for node in sorted(mending.inquiries)]
                grown += [self._pass_over(mending, node) for node in mending.silent()]
                self._set_try_timer(mending)
                self._go_on(mending, any(grown))
            else:
                self._ask_silent(mending)
        elif mending.tries >= self._config.attempts:
            if mending.is_centre_silent():
                self.mending = None
                self._owner.abandon(mending.event)
            elif self._config.remedies.redo_unconfirmed:
                self._ask(mending)
            else:
                self._finish(mending)
        else:
            self._propose(mending)

    def _pass_over(self, mending: Mending, node: NodeId) -> bool:
        """A member that does not answer counts as lost; a former neighbour that was only slow has to join again."""
        if mending.centre is None and node in mending.former:
            ref = mending.members[node]
            self._out.send(ref, Knock(self._book.ref, ref.incarnation, final=True))
        return self._lose_member(mending, node)

    def _link(self, mending: Mending) -> None:
        self._enter(LINKING, mending)
        mending.tries = 0
        rho = self._config.mend_rho if mending.centre is None else self._config.rho
        pairs = mending.plan(self._engine, rho, self._config.halo_hops > 0)
        mending.open_links = {pair: set() for pair in pairs}
        mending.made.extend(pairs)
        self._propose(mending)

    def _propose(self, mending: Mending) -> None:
        for ref, proposal in mending.proposals(self._book.ref):
            self._out.send(ref, proposal)
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
        answer = mending.answers.get(sender)
        if answer is not None and answer.topics_version != message.topics_version:
            self._ask(mending)
            return
        ends.add(sender)
        mending.confirmed_by.add(sender)
        if len(ends) == 2:
            del mending.open_links[pair]
        if mending.stage == LINKING and not mending.open_links:
            self._finish(mending)
