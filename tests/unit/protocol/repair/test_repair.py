"""One repair, step by step."""

from __future__ import annotations

import pytest

from omen.protocol.events import NodeId, Notify, RepairStage, RepairStageEntered, Send, SetTimer, Timer
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    EventId,
    LinkConfirmed,
    LinkProposal,
    Ref,
    RelayedQuery,
    ShadowQuery,
    ShadowReply,
)
from omen.protocol.repair.event_queue import EventQueue, PendingEvent
from omen.protocol.repair.join_check import needed_links
from omen.protocol.repair.outcomes import Finished, NotReady
from omen.protocol.repair.repair import Repairer
from omen.protocol.repair.shadow_set import Loss, to_bits
from omen.protocol.repair.timers import RepairTimer, UnreachedTimer
from omen.protocol.repair.views import Shadow, Views
from unit.protocol.contexts import make_context, ref, sent

LOST = EventId(90, 1, EventKind.LEAVE)
TOPIC = 1


class Coordinating:
    """Node 100, about to repair the loss of node 90, whose neighbours were 7 and 8, but for the backups."""

    def __init__(self, backups: tuple[int, ...] = (), followed: tuple[int, ...] = ()) -> None:
        self.context = make_context(100, (TOPIC,))
        self.queue = EventQueue()
        ring = Ring(self.context)
        self.views = Views(self.context)
        for node in followed:
            self.views.shadows[node] = Shadow()
        self.repairer = Repairer(self.context, ring, self.views, RingLookup(self.context), self.queue)
        former = {node: ref(node) for node in (7, 8) if node not in backups}
        self.loss = Loss(LOST, {TOPIC}, former, {node: ref(node) for node in backups})
        assert self.repairer.begin(LOST, PendingEvent(self.loss)) is None

    def fire(self, stage: RepairStage) -> object:
        assert self.repairer.repair is not None
        return self.repairer.on_timer(RepairTimer(stage, LOST, self.repairer.repair.attempt))

    def reply(self, me: Ref, former: bool = True, links: tuple[NodeId, ...] = ()) -> object:
        assert self.repairer.repair is not None
        bits = to_bits((TOPIC,), (TOPIC,))
        attempt = self.repairer.repair.attempt
        named = tuple((other, bits) for other in links)
        return self.repairer.on_reply(ShadowReply(LOST, attempt, me, 1, bits, b"\0", 1, named, former, False))

    def answer(self, links: dict[NodeId, tuple[NodeId, ...]]) -> object:
        """Both former neighbours answer, in turn, with these links; what came of it."""
        outcomes = [self.reply(ref(node), links=links[node]) for node in (7, 8)]
        return outcomes[-1]

    def stages(self) -> list[RepairStage]:
        """The stages entered since the last time."""
        notified = [output.notification for output in self.context.out.take() if isinstance(output, Notify)]
        return [entered.stage for entered in notified if isinstance(entered, RepairStageEntered)]


def timers(coordinating: Coordinating) -> list[Timer]:
    return [output.timer for output in coordinating.context.out.take() if isinstance(output, SetTimer)]


def confirm(coordinating: Coordinating, node: NodeId, other: NodeId) -> object:
    assert coordinating.repairer.repair is not None
    return coordinating.repairer.on_confirmed(node, LinkConfirmed(LOST, coordinating.repairer.repair.attempt, other, 1))


def test_a_repair_waits_gathers_asks_links_and_finishes() -> None:
    coordinating = Coordinating()
    assert coordinating.stages() == [RepairStage.WAITING, RepairStage.GATHERING]
    coordinating.fire(RepairStage.GATHERING)
    assert coordinating.stages() == [RepairStage.ASKING]
    coordinating.reply(ref(7))
    coordinating.reply(ref(8))
    assert coordinating.stages() == [RepairStage.LINKING]
    assert confirm(coordinating, 7, 8) is None
    outcome = confirm(coordinating, 8, 7)
    assert isinstance(outcome, Finished)
    assert outcome.repair.made == [(7, 8)]
    assert coordinating.stages() == [RepairStage.FINISHING]
    assert coordinating.repairer.repair is None


def test_the_shadow_set_is_asked_and_both_ends_of_a_link_are_told() -> None:
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    queries = sent(coordinating.context.out)
    assert [(to, type(message)) for to, message in queries] == [(7, ShadowQuery), (8, ShadowQuery)]
    coordinating.reply(ref(7))
    coordinating.reply(ref(8))
    proposals = sent(coordinating.context.out)
    assert [(to, message.other.id) for to, message in proposals if isinstance(message, LinkProposal)] == [
        (7, 8),
        (8, 7),
    ]


def test_events_queued_do_not_wait_for_a_loss_whose_backups_are_not_ready() -> None:
    coordinating = Coordinating(followed=(90,))
    assert coordinating.stages() == [RepairStage.WAITING]
    assert coordinating.fire(RepairStage.WAITING) is None, "no other waits"
    coordinating.queue.exe_q.append(EventId(80, 1, EventKind.LEAVE))
    assert coordinating.fire(RepairStage.WAITING) == NotReady(LOST)
    assert coordinating.repairer.repair is None


@pytest.mark.parametrize("stage", list(RepairStage))
def test_a_timer_of_another_stage_changes_nothing(stage: RepairStage) -> None:
    coordinating = Coordinating()
    coordinating.stages()
    if stage is not RepairStage.GATHERING:
        assert coordinating.fire(stage) is None
        assert coordinating.stages() == []


def test_a_backup_that_answers_in_its_next_incarnation_is_counted_on_in_that_one() -> None:
    """Others refuse the one that has ended, so a link planned for it would be asked for without end."""
    coordinating = Coordinating(backups=(7,))
    coordinating.fire(RepairStage.GATHERING)
    coordinating.reply(ref(7, incarnation=2), former=False)
    repair = coordinating.repairer.repair
    assert repair is not None
    assert repair.members[7] == ref(7, incarnation=2)
    coordinating.reply(ref(8))
    assert repair.members[8] == ref(8)


def test_a_former_neighbour_that_answers_in_its_next_incarnation_is_a_linked_loss() -> None:
    """The incarnation that was linked to the lost node is lost too: its own former neighbours stand for it."""
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    repair = coordinating.repairer.repair
    assert repair is not None
    coordinating.reply(ref(7, incarnation=2), former=False)
    assert 7 not in repair.members
    assert repair.losses[7].event == EventId(7, 1, EventKind.LEAVE)
    assert not repair.losses[7].known


LINKED = {7: (8,), 8: (7,)}
APART: dict[NodeId, tuple[NodeId, ...]] = {7: (), 8: ()}


def test_links_that_hold_pieces_together_are_asked_for_again_before_a_repair_ends() -> None:
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    first = sent(coordinating.context.out)
    assert coordinating.answer(LINKED) is None
    again = sent(coordinating.context.out)
    assert [to for to, _ in again] == [to for to, _ in first] == [7, 8]
    assert {message.attempt for _, message in again if isinstance(message, ShadowQuery)} == {2}
    assert isinstance(coordinating.answer(LINKED), Finished)


def test_a_link_that_went_while_a_repair_counted_on_it_means_another_round() -> None:
    """Until there was a check, this repair ended with 7 and 8 apart."""
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    coordinating.answer(LINKED)
    coordinating.stages()
    assert coordinating.answer(APART) is None
    assert coordinating.stages() == [RepairStage.ASKING]
    assert coordinating.answer(LINKED) is None, "a link that was doubted once is counted on no more"
    assert coordinating.stages() == [RepairStage.LINKING]
    assert confirm(coordinating, 7, 8) is None
    assert isinstance(confirm(coordinating, 8, 7), Finished)


def test_a_node_known_by_the_word_of_others_alone_has_to_say_itself_that_it_is_there() -> None:
    """7 and 8 are joined by 20, which was not asked; it is reached through 7, and without its answer not counted on."""
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    repair = coordinating.repairer.repair
    assert repair is not None
    coordinating.answer({7: (20,), 8: (20,)})
    assert repair.check.witnesses() == [7, 8, 20]
    relayed = [(to, message) for to, message in sent(coordinating.context.out) if isinstance(message, RelayedQuery)]
    assert [(to, message.to) for to, message in relayed] == [(7, (20,))]
    coordinating.answer({7: (20,), 8: (20,)})
    for _ in range(2 * coordinating.context.config.attempts - 1):
        assert repair.stage is RepairStage.CHECKING
        coordinating.fire(RepairStage.CHECKING)
    assert repair.stage is RepairStage.ASKING
    coordinating.answer({7: (20,), 8: (20,)})
    assert repair.planned == [(7, 8)]


def test_a_silent_member_is_asked_twice_per_timeout_and_counts_as_lost_after_as_long_as_ever() -> None:
    """Once per timeout, one living member in sixty counted as lost where a fifth of all messages is lost."""
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    repair = coordinating.repairer.repair
    assert repair is not None
    coordinating.reply(ref(7))
    asked = waited = 0
    while 8 not in repair.gone:
        for output in coordinating.context.out.take():
            if isinstance(output, Send) and isinstance(output.message, ShadowQuery):
                asked += output.to == 8
            elif isinstance(output, SetTimer) and output.timer == RepairTimer(repair.stage, LOST, repair.attempt):
                wait = output.delay
        waited += wait
        coordinating.fire(RepairStage.ASKING)
    config = coordinating.context.config
    assert (asked, waited) == (2 * config.attempts - 1, config.attempts * config.answer_timeout)


def test_what_hangs_loose_is_not_asked_and_new_links_need_no_question() -> None:
    """3 and 5 are to be joined in two topics; in the first by a new link, in the second through 4; 9 joins nothing."""
    old = {(3, 9): 0b11, (3, 4): 0b11, (4, 5): 0b10}
    check = needed_links({3: 0b11, 5: 0b11}, {(3, 5): 0b01}, old)
    assert check.needed == {(3, 4): 0b10, (4, 5): 0b10}
    assert check.witnesses() == check.silent() == [3, 4, 5]
    assert set(check.unconfirmed(True)) == {(3, 4), (4, 5)}


def test_a_member_that_refuses_twice_is_not_waited_for() -> None:
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    coordinating.reply(ref(7))
    coordinating.context.out.take()
    repairer = coordinating.repairer
    assert repairer.repair is not None
    again = UnreachedTimer(LOST, repairer.repair.attempt, 8)
    assert repairer.on_unreached(8, "") is None
    assert timers(coordinating) == [again]
    assert repairer.on_unreached(8, "") is None, "what was under way meanwhile proves no more"
    coordinating.context.out.take()
    repairer.on_unreached_timer(again)
    assert [to for to, message in sent(coordinating.context.out) if isinstance(message, ShadowQuery)] == [8]
    repairer.on_unreached(8, "")
    assert 8 in repairer.repair.gone


def test_a_member_that_answers_the_second_question_stays() -> None:
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    repairer = coordinating.repairer
    assert repairer.repair is not None
    repairer.on_unreached(8, "")
    repairer.on_unreached_timer(UnreachedTimer(LOST, repairer.repair.attempt, 8))
    coordinating.reply(ref(8))
    repairer.on_unreached(8, "")
    assert 8 in repairer.repair.members


def test_an_address_that_is_not_a_members_own_says_nothing_of_it() -> None:
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    repairer = coordinating.repairer
    assert repairer.repair is not None
    coordinating.context.out.take()
    repairer.on_unreached(8, "192.0.2.1:9")
    assert timers(coordinating) == []
    repairer.repair.refused[8] = repairer.repair.attempt
    repairer.on_unreached(8, "192.0.2.1:9")
    assert 8 in repairer.repair.members


def test_a_former_neighbour_that_comes_in_late_has_as_long_to_answer_as_the_others_had() -> None:
    """Another is silent, and on its last try."""
    coordinating = Coordinating()
    coordinating.fire(RepairStage.GATHERING)
    coordinating.reply(ref(7))
    attempts = coordinating.context.config.attempts
    for _ in range(2 * attempts - 2):
        coordinating.fire(RepairStage.ASKING)
    sent(coordinating.context.out)
    coordinating.repairer.take_in(Loss(LOST, {TOPIC}, {9: ref(9)}))
    for _ in range(2 * attempts - 2):
        coordinating.fire(RepairStage.ASKING)
    asked = [to for to, message in sent(coordinating.context.out) if isinstance(message, ShadowQuery)]
    assert asked.count(9) == 2 * attempts - 1
