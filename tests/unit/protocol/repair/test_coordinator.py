"""What a coordinator does with events beside the one that it repairs."""

from __future__ import annotations

from omen.protocol.events import RepairStage
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, LinkedLossQuery
from omen.protocol.repair.coordinator import Coordinator, StandbyTimer
from omen.protocol.repair.timers import RepairTimer
from omen.protocol.repair.views import Shadow, Views
from unit.protocol.contexts import make_context, ref

LOST, OTHER = EventId(90, 1, EventKind.LEAVE), EventId(95, 1, EventKind.LEAVE)


def test_what_is_known_of_an_event_under_repair_is_not_forgotten_when_its_standby_time_ends() -> None:
    """World 41000009 beyond L: a coordinator was asked of the loss that it was about to repair, by another one."""
    context = make_context(100, (1,))
    ring, views = Ring(context), Views(context)
    coordinator = Coordinator(context, ring, views, RingLookup(context))
    views.shadows[LOST.node] = Shadow()  # not ready: the repair waits
    coordinator.event_queue.get(LOST)
    coordinator.handle_churn_event(LOST)
    assert coordinator.repair is not None
    assert coordinator.repair.stage == RepairStage.WAITING
    coordinator.on_linked_loss_query(96, LinkedLossQuery(ref(96), OTHER, LOST, (), ()))
    assert LOST in coordinator.event_queue.standby

    coordinator.on_standby_timer(StandbyTimer(LOST))
    assert LOST in coordinator.event_queue.pending
    coordinator.handle_churn_event(OTHER)
    coordinator.on_repair_timer(RepairTimer(RepairStage.WAITING, LOST, coordinator.repair.attempt))
    assert LOST in coordinator.event_queue.pending, "it goes behind the other one, and is not forgotten"
