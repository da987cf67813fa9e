"""What a repair waits for: answers, a second refusal, who coordinates a linked loss."""

from __future__ import annotations

from omen.protocol.events import NodeId, RepairStage, Timer
from omen.protocol.membership.ring_lookup import LookupPurpose
from omen.protocol.messages.overlay import EventId


class RepairTimer(Timer, frozen=True):
    """Those asked have had their time to answer. Of no effect once the repair has moved on."""

    stage: RepairStage
    event: EventId
    attempt: int


class UnreachedTimer(Timer, frozen=True):
    """A member that refused a connection is asked once more."""

    event: EventId
    attempt: int
    node: NodeId


class LinkedLossLookup(LookupPurpose, frozen=True):
    """Who coordinates the repair of a loss that is linked to the one repaired here?"""

    event: EventId
    linked: EventId
