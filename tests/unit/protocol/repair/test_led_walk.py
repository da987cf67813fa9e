"""A walk round the ring that its origin leads, and the walks that nodes pass on."""

from __future__ import annotations

from typing import cast

import msgspec

from omen.protocol.events import NodeId, RepairStage, SetTimer
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, RingWalk, RingWalkReply
from omen.protocol.repair.event_queue import EventQueue, PendingEvent
from omen.protocol.repair.led_walk import STEP_REPEATS, LedWalk
from omen.protocol.repair.repair import WALKS_AT_MOST, Repairer
from omen.protocol.repair.shadow_set import Loss
from omen.protocol.repair.timers import RepairTimer
from omen.protocol.repair.views import Views
from unit.protocol.contexts import describe, make_context, ref, sent

JOIN = EventId(90, 1, EventKind.JOIN)
TOPIC, OTHER = 1, 2


class Linking:
    """Node 100 links a newcomer, with L = 1: nobody in sight has its topics, so a walk begins at 110."""

    def __init__(self) -> None:
        self.context = make_context(100, resilience=1)
        ring = Ring(self.context)
        for node in (110, 120):
            ring.consider(ref(node))
        self.repairer = Repairer(self.context, ring, Views(self.context), RingLookup(self.context), EventQueue())
        pending = PendingEvent(Loss(JOIN, {TOPIC, OTHER}), describe(90, (TOPIC, OTHER)))
        assert self.repairer.begin(JOIN, pending) is None

    def walks(self) -> list[tuple[NodeId, RingWalk]]:
        return [(to, cast(RingWalk, message)) for to, message in sent(self.context.out) if type(message) is RingWalk]

    def wait(self) -> None:
        assert self.repairer.repair is not None
        self.repairer.on_timer(RepairTimer(RepairStage.GATHERING, JOIN, self.repairer.repair.attempt))

    def lead(self) -> RingWalk:
        """The first walk does not come back; the first step of the next."""
        self.walks()
        self.wait()
        ((to, step),) = self.walks()
        assert to == 110
        return step


def test_the_first_walk_is_passed_on_and_those_after_it_are_led() -> None:
    linking = Linking()
    ((to, walk),) = linking.walks()
    assert (to, walk.led) == (110, False)
    assert linking.lead().led


def test_a_step_that_is_not_answered_is_taken_again_and_then_the_walk_begins_anew() -> None:
    linking = Linking()
    step = linking.lead()
    for _ in range(STEP_REPEATS):
        linking.wait()
        assert linking.walks() == [(110, step)]
    linking.wait()
    ((to, walk),) = linking.walks()
    assert to == 110 and walk.number > step.number


def test_an_answer_leads_to_the_next_step_with_the_topics_left() -> None:
    linking = Linking()
    number = linking.lead().number
    linking.repairer.on_walk_reply(110, RingWalkReply(JOIN, (describe(105),), number, (OTHER,), ref(130)))
    ((to, step),) = linking.walks()
    assert (to, step.topics, step.number) == (130, (OTHER,), number)
    linking.repairer.on_walk_reply(130, RingWalkReply(JOIN, (), number))
    assert linking.repairer.repair is not None and linking.repairer.repair.stage == RepairStage.ASKING
    assert 105 in linking.repairer.repair.members


def test_an_answer_that_comes_twice_or_from_elsewhere_takes_no_step() -> None:
    linking = Linking()
    number = linking.lead().number
    answer = RingWalkReply(JOIN, (), number, (OTHER,), ref(130))
    linking.repairer.on_walk_reply(7, answer)
    linking.repairer.on_walk_reply(110, msgspec.structs.replace(answer, number=number - 1))
    assert linking.walks() == []
    linking.repairer.on_walk_reply(110, answer)
    assert len(linking.walks()) == 1
    linking.repairer.on_walk_reply(110, answer)
    assert linking.walks() == []


def test_where_an_older_node_passes_a_led_walk_on_its_end_counts_with_what_was_found_before() -> None:
    linking = Linking()
    number = linking.lead().number
    linking.repairer.on_walk_reply(110, RingWalkReply(JOIN, (describe(105),), number, (OTHER,), ref(130)))
    linking.repairer.on_walk_reply(150, RingWalkReply(JOIN, (describe(140),)))
    assert linking.repairer.repair is not None and linking.repairer.repair.stage == RepairStage.ASKING
    assert {105, 140} <= linking.repairer.repair.members.keys()


def test_the_loss_of_the_node_a_step_waits_for_begins_the_walk_anew() -> None:
    linking = Linking()
    number = linking.lead().number
    linking.repairer.on_node_lost(110, 1)
    ((_, walk),) = linking.walks()
    assert walk.led and walk.number > number


def test_a_walk_ends_where_its_hops_do() -> None:
    led = LedWalk(1, ref(110), (TOPIC,), (), hops=1)
    assert led.advance(RingWalkReply(JOIN, (), 1, (TOPIC,), ref(120)))
    assert not led.advance(RingWalkReply(JOIN, (), 1, (TOPIC,), ref(130)))


def test_a_lost_node_that_a_walk_names_is_passed_over_by_the_next() -> None:
    linking = Linking()
    ((_, walk),) = linking.walks()
    linking.context.peer_table.declare_failed(105, 1, 0)
    linking.repairer.on_walk_reply(110, RingWalkReply(JOIN, (describe(105),)))
    ((_, again),) = linking.walks()
    assert again.number > walk.number and 105 in again.skip


def test_a_step_to_a_node_that_has_ended_is_not_taken_again_the_walk_begins_anew_and_is_more_patient() -> None:
    """Live, the node before it had not noticed: steps were repeated for 63 s, and a newcomer waits 30 s."""
    linking = Linking()
    linking.lead()
    for number in range(2, WALKS_AT_MOST):
        linking.repairer.on_unreached(110, "")
        linking.wait()
        (timer,) = (one for one in linking.context.out.take() if isinstance(one, SetTimer))
        assert timer.delay == linking.context.config.answer_timeout << number - 1
        assert linking.repairer.repair is not None and linking.repairer.repair.led is not None
        assert linking.repairer.repair.walks == number + 1
