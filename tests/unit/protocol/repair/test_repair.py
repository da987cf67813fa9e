"""One repair, step by step."""

from __future__ import annotations

import pytest

from omen.protocol.events import NodeId, Notify, RepairStage, RepairStageEntered
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, LinkConfirmed, LinkProposal, Ref, ShadowQuery, ShadowReply
from omen.protocol.repair.event_queue import EventQueue, PendingEvent
from omen.protocol.repair.repair import Finished, Repairer, RepairTimer
from omen.protocol.repair.shadow_set import Loss, to_bits
from omen.protocol.repair.views import Views
from unit.protocol.contexts import make_context, ref, sent

LOST = EventId(90, 1, EventKind.LEAVE)
TOPIC = 1


class Coordinating:
    """Node 100, about to repair the loss of node 90, whose neighbours were 7 and 8, but for the backups."""

    def __init__(self, backups: tuple[int, ...] = ()) -> None:
        self.context = make_context(100, (TOPIC,))
        queue = EventQueue()
        ring = Ring(self.context)
        self.repairer = Repairer(self.context, ring, Views(self.context), RingLookup(self.context), queue)
        former = {node: ref(node) for node in (7, 8) if node not in backups}
        self.loss = Loss(LOST, {TOPIC}, former, {node: ref(node) for node in backups})
        assert self.repairer.begin(LOST, PendingEvent(self.loss)) is None

    def fire(self, stage: RepairStage) -> object:
        assert self.repairer.repair is not None
        return self.repairer.on_timer(RepairTimer(stage, LOST, self.repairer.repair.attempt))

    def reply(self, me: Ref, former: bool = True) -> object:
        assert self.repairer.repair is not None
        bits = to_bits((TOPIC,), (TOPIC,))
        attempt = self.repairer.repair.attempt
        return self.repairer.on_reply(ShadowReply(LOST, attempt, me, 1, bits, b"\0", 1, (), former, False))

    def stages(self) -> list[RepairStage]:
        """The stages entered since the last time."""
        notified = [output.notification for output in self.context.out.take() if isinstance(output, Notify)]
        return [entered.stage for entered in notified if isinstance(entered, RepairStageEntered)]


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
