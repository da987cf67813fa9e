"""How a repair ends: all links made, or left to another, put off, behind others, abandoned."""

from __future__ import annotations

import msgspec

from omen.protocol.messages.overlay import EventId
from omen.protocol.repair.shadow_set import Repair


class Finished(msgspec.Struct, frozen=True):
    """All links are made."""

    repair: Repair


class LeftToAnother(msgspec.Struct, frozen=True):
    """The repair is another coordinator's to do."""

    event: EventId


class PutOff(msgspec.Struct, frozen=True):
    """The repair has to wait for another one, for a silent node, or for news of a linked loss: for the longer the more
    often it was put off.
    """

    event: EventId
    times: int = 0


class NotReady(msgspec.Struct, frozen=True):
    """What is kept of the lost node is not ready yet: the events queued go first."""

    event: EventId


class Abandoned(msgspec.Struct, frozen=True):
    """The node that asked for this repair does not answer."""

    event: EventId


Outcome = Finished | LeftToAnother | PutOff | NotReady | Abandoned
"""How a repair ended here; None: it is still under way."""
