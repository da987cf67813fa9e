"""The door of a node: what does not make sense is counted and dropped here, before any part of the node sees it.

Types and bounds of every field are checked where bytes become messages (`messages.decode`, compiled). What is left is
what no type can say: that a message speaks for its sender, that an event is of a kind there is, that its life is not a
former one, that it answers something that was asked. Questions may come twice, for their answers may have been
lost: all of them can be answered again without harm. An answer that nobody waits for is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from omen.protocol.events import NodeId
from omen.protocol.membership.join_leave import Membership
from omen.protocol.membership.peer_table import Book
from omen.protocol.messages.overlay import (
    Alive,
    Answer,
    Arrive,
    AskPieces,
    Confirmed,
    Details,
    EventId,
    Goodbye,
    Inherit,
    Inquire,
    Knock,
    LinkOk,
    LinkOpen,
    Locate,
    Message,
    Offer,
    Pieces,
    PiecesLed,
    PiecesSeen,
    Propose,
    Ref,
    Report,
    Spare,
    Status,
    Walk,
    Want,
    decode,
)
from omen.protocol.repair.coordinator import Coordinator

LARGEST = 16 << 20
CASES_AT_MOST = 256
MALFORMED, UNKNOWN, OVERSIZED, FALSE, STALE, TOO_MANY = (
    "malformed",
    "unknown",
    "oversized",
    "false",
    "stale",
    "too many",
)
REQUESTS = frozenset({"join", "leave", "add", "drop"})
LOSSES = frozenset({"leave", "drop"})

SPEAKERS: dict[type, Callable[[Any], Ref]] = {
    Offer: lambda message: message.digests[0].ref,
    Want: lambda message: message.asker,
    Locate: lambda message: message.asker,
    Status: lambda message: message.digest.ref,
    LinkOpen: lambda message: message.descriptor.digest.ref,
    LinkOk: lambda message: message.descriptor.digest.ref,
    Answer: lambda message: message.me,
    Inquire: lambda message: message.asker,
    Propose: lambda message: message.asker,
    Goodbye: lambda message: message.ref,
    Spare: lambda message: message.asker,
    Knock: lambda message: message.me,
    Alive: lambda message: message.me,
    Pieces: lambda message: message.me,
    PiecesSeen: lambda message: message.me,
    PiecesLed: lambda message: message.me,
    AskPieces: lambda message: message.asker,
}
"""Messages that nobody passes on: they speak for whoever sent them."""


class Door:
    """Looks at everything that comes in."""

    def __init__(self, book: Book, membership: Membership, coordinator: Coordinator, kinds: Container[type]) -> None:
        self._kinds = kinds
        self._book = book
        self._membership = membership
        self._coordinator = coordinator

    def take_in(self, sender: NodeId, message: Any) -> tuple[Any, str | None]:
        """The message, bytes turned into one, and what is wrong with it if anything is."""
        if type(message) is bytes:
            message, complaint = read_message(message, decode)
            if complaint is not None:
                return None, complaint
        kind = type(message)
        if kind not in self._kinds:
            return None, UNKNOWN
        if sender == self._book.id:
            return None, FALSE
        speaker = SPEAKERS.get(kind)
        if speaker is not None:
            if kind is Offer and not message.digests:
                return None, FALSE
            ref = speaker(message)
            if ref.id != sender:
                return None, FALSE
            known = self._book.known.get(sender)
            if known is not None and ref.incarnation < known.digest.ref.incarnation:
                return None, STALE
        check = CHECKS.get(kind)
        return message, None if check is None else check(self, message)

    def check_answer(self, message: Answer) -> str | None:
        mending = self._coordinator.repairer.mending
        if mending is None or mending.event != message.event or mending.attempt != message.attempt:
            return STALE
        fields = (message.mine, message.unsettled, *(bits for _, bits in message.links))
        asked = len(mending.asked)
        return FALSE if any(int.from_bytes(bits, "little") >> asked for bits in fields) else None

    def check_confirmed(self, message: Confirmed) -> str | None:
        mending = self._coordinator.repairer.mending
        return STALE if mending is None or mending.event != message.event else None

    def check_arrive(self, message: Arrive) -> str | None:
        event, ref = message.event, message.descriptor.digest.ref
        if event.kind not in REQUESTS or (event.node, event.incarnation) != (ref.id, ref.incarnation):
            return FALSE
        if event.node == self._book.id:
            return FALSE
        if self._is_past(ref):
            return STALE
        return self._room(event)

    def check_report(self, message: Report) -> str | None:
        if message.event.kind != "leave" or message.reporter.id == message.event.node:
            return FALSE
        return self._room(message.event)

    def check_inquire(self, message: Inquire) -> str | None:
        if message.event.kind not in LOSSES or message.lost.kind not in LOSSES:
            return FALSE
        return self._room(message.lost)

    def check_inherit(self, message: Inherit) -> str | None:
        mending = self._coordinator.repairer.mending
        return STALE if mending is None or mending.event != message.event else None

    def check_walk(self, message: Walk) -> str | None:
        return FALSE if message.event.kind not in REQUESTS else None

    def check_details(self, message: Details) -> str | None:
        return None if message.descriptors else FALSE

    def check_propose(self, message: Propose) -> str | None:
        return STALE if self._is_past(message.other) else None

    def _is_past(self, ref: Ref) -> bool:
        """Whether a later life of the node is known."""
        known = self._membership.known_ref(ref.id)
        return known is not None and ref.incarnation < known.incarnation

    def _room(self, event: EventId) -> str | None:
        cases = self._coordinator.docket.cases
        return TOO_MANY if len(cases) >= CASES_AT_MOST and event not in cases else None


def read_message(data: bytes, decode: Callable[[bytes], Message]) -> tuple[Message | None, str | None]:
    """The message in these bytes, or what is wrong with them."""
    if len(data) > LARGEST:
        return None, OVERSIZED
    try:
        return decode(data), None
    except msgspec.ValidationError as error:
        return None, UNKNOWN if "Invalid value" in str(error) and "`$[0]`" in str(error) else MALFORMED
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, MALFORMED


CHECKS: dict[type, Callable[[Door, Any], str | None]] = {
    Answer: Door.check_answer,
    Confirmed: Door.check_confirmed,
    Arrive: Door.check_arrive,
    Report: Door.check_report,
    Inquire: Door.check_inquire,
    Inherit: Door.check_inherit,
    Walk: Door.check_walk,
    Details: Door.check_details,
    Propose: Door.check_propose,
}
