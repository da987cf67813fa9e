"""Message validation: what does not make sense is counted and dropped here, before any part of the node sees it.

Types and bounds of every field are checked where bytes become messages (`messages.decode`, compiled). What is left is
what no type can say: that a message speaks for its sender, that an event is of a kind there is, that its incarnation
is not a former one, that it answers something that was asked. Questions may come twice, for their answers may have
been lost: all of them can be answered again without harm. An answer that is not waited for is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from omen.protocol.budgets import SenderBudget
from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId, Offence
from omen.protocol.membership.connections import Incarnations
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    DescriptorRequest,
    Descriptors,
    DigestOffer,
    EventId,
    FailureNotice,
    IndirectPing,
    Leaving,
    LinkConfirmed,
    LinkedLossQuery,
    LinkedLossReply,
    LinkOk,
    LinkOpen,
    LinkProposal,
    Locate,
    LossReport,
    Message,
    NearbyChanged,
    NearbyQuery,
    NearbyReply,
    PieceQuery,
    PieceReply,
    PieceReport,
    PieceReportAck,
    Ping,
    PruneHint,
    Ref,
    Refutation,
    RelayedQuery,
    RepairRequest,
    RingWalk,
    ShadowReply,
    Status,
    decode,
)
from omen.protocol.messages.records import RecordAck, RecordOffer, RecordPut, RecordQuery, RecordReply, RecordWant
from omen.protocol.repair.coordinator import Coordinator
from omen.protocol.repair.event_queue import PENDING_WEIGHT_AT_MOST
from omen.protocol.repair.shadow_member import ShadowMember

LARGEST = 16 << 20
PENDING_AT_MOST = 256
MALFORMED, UNKNOWN, OVERSIZED, FALSE, STALE, TOO_MANY = (
    "malformed",
    "unknown",
    "oversized",
    "false",
    "stale",
    "too many",
)
REQUESTS = frozenset({EventKind.JOIN, EventKind.LEAVE, EventKind.ADD, EventKind.DROP})
LOSSES = frozenset({EventKind.LEAVE, EventKind.DROP})

SPEAKERS: dict[type, Callable[[Any], Ref]] = {
    DigestOffer: lambda message: message.digests[0].ref,
    DescriptorRequest: lambda message: message.asker,
    Locate: lambda message: message.asker,
    Status: lambda message: message.digest.ref,
    LinkOpen: lambda message: message.descriptor.digest.ref,
    LinkOk: lambda message: message.descriptor.digest.ref,
    ShadowReply: lambda message: message.me,
    LinkedLossQuery: lambda message: message.asker,
    LinkProposal: lambda message: message.asker,
    Leaving: lambda message: message.ref,
    PruneHint: lambda message: message.asker,
    FailureNotice: lambda message: message.me,
    Refutation: lambda message: message.me,
    PieceReport: lambda message: message.me,
    PieceReportAck: lambda message: message.me,
    PieceReply: lambda message: message.me,
    PieceQuery: lambda message: message.asker,
    NearbyQuery: lambda message: message.asker,
    NearbyReply: lambda message: message.me,
    NearbyChanged: lambda message: message.me,
    RecordPut: lambda message: message.me,
    RecordAck: lambda message: message.me,
    RecordQuery: lambda message: message.asker,
    RecordReply: lambda message: message.me,
    RecordOffer: lambda message: message.me,
    RecordWant: lambda message: message.me,
    Ping: lambda message: message.asker,
    IndirectPing: lambda message: message.asker,
}
"""Messages that are never passed on: they speak for their sender."""
RELAYED_BEFORE = frozenset({Ping, IndirectPing})
"""Nodes of version 0.1.0 probe in the name of others: that is refused, and no offence."""
FORWARDED: dict[type, Callable[[Any], int]] = {
    RingWalk: lambda _: 1,
    LossReport: lambda _: 1,
    RepairRequest: lambda _: 1,
    IndirectPing: lambda _: 1,
    LinkProposal: lambda _: 1,
    RelayedQuery: lambda message: 1 + len(message.to),
}
"""What makes this node speak to others for the sender, and to how many: paid from the sender's budget. Probes of paths
have one of their own (see `path_probes`)."""
FORWARDS_PER_S, FORWARDS_AT_ONCE = 64, 512


class MessageValidator:
    """Looks at every message that comes in."""

    def __init__(
        self,
        context: NodeContext,
        coordinator: Coordinator,
        kinds: Iterable[type],
        incarnations: Incarnations,
        shadow_member: ShadowMember,
    ) -> None:
        self._peer_table = context.peer_table
        self._coordinator = coordinator
        self._kinds = frozenset(kinds)
        self._incarnations = incarnations
        self._shadow_member = shadow_member
        self._clock = context.clock
        self._forwards = SenderBudget(FORWARDS_PER_S, FORWARDS_AT_ONCE)
        self.offence: Offence | None = None

    def check(self, sender: NodeId, message: Any) -> tuple[Any, str | None]:
        """The message, bytes turned into one, and what is wrong with it if anything is.

        `offence`: afterwards, whether that is the fault of the sender itself. A relay may not know better.
        """
        self.offence = None
        if type(message) is bytes:
            message, complaint = read_message(message, decode)
            if complaint is not None:
                self.offence = None if complaint == UNKNOWN else Offence.MALFORMED
                return None, complaint
        kind = type(message)
        if kind not in self._kinds:
            return None, UNKNOWN
        if sender == self._peer_table.id:
            return None, FALSE
        speaker, check, price = RULES.get(kind, NO_RULES)
        if speaker is not None:
            if type(message) is DigestOffer and not message.digests:
                return None, FALSE
            ref = speaker(message)
            if ref.id != sender:
                self.offence = None if kind in RELAYED_BEFORE else Offence.FALSE_SENDER
                return None, FALSE
            known = self._peer_table.known.get(sender)
            if known is not None and ref.incarnation < known.digest.ref.incarnation:
                return None, STALE
        complaint = None if check is None else check(self, message)
        if price is not None and complaint is None and not self._pays(sender, message, price):
            complaint, self.offence = TOO_MANY, Offence.OVER_BUDGET
        return message, complaint

    def _pays(self, sender: NodeId, message: Any, price: Callable[[Any], int]) -> bool:
        """A link that is proposed again while it is made, or is there, costs nothing more."""
        if type(message) is LinkProposal and self._shadow_member.is_repeated(message):
            return True
        return self._forwards.take(sender, self._clock.now, price(message))

    def check_answer(self, message: ShadowReply) -> str | None:
        repair = self._coordinator.repair
        if repair is None or repair.event != message.event or repair.attempt != message.attempt:
            return STALE
        fields = (message.mine, message.unsettled, *(bits for _, bits in message.links))
        asked = len(repair.asked)
        return FALSE if any(int.from_bytes(bits, "little") >> asked for bits in fields) else None

    def check_confirmed(self, message: LinkConfirmed) -> str | None:
        repair = self._coordinator.repair
        return STALE if repair is None or repair.event != message.event else None

    def check_arrive(self, message: RepairRequest) -> str | None:
        event, ref = message.event, message.descriptor.digest.ref
        if event.kind not in REQUESTS or (event.node, event.incarnation) != (ref.id, ref.incarnation):
            return FALSE
        if event.node == self._peer_table.id:
            return FALSE
        if self._is_past(ref):
            return STALE
        weight = len(message.added) + len(message.dropped) + len(message.descriptor.neighbours)
        return self._room(event, weight)

    def check_report(self, message: LossReport) -> str | None:
        if message.event.kind != EventKind.LEAVE or message.reporter.id == message.event.node:
            return FALSE
        return self._room(message.event, len(message.topics) + 2)

    def check_inquire(self, message: LinkedLossQuery) -> str | None:
        if message.event.kind not in LOSSES or message.lost.kind not in LOSSES:
            return FALSE
        return self._room(message.lost, len(message.topics) + len(message.neighbours))

    def check_inherit(self, message: LinkedLossReply) -> str | None:
        repair = self._coordinator.repair
        return STALE if repair is None or repair.event != message.event else None

    def check_walk(self, message: RingWalk) -> str | None:
        return FALSE if message.event.kind not in REQUESTS else None

    def check_details(self, message: Descriptors) -> str | None:
        return None if message.descriptors else FALSE

    def check_propose(self, message: LinkProposal) -> str | None:
        return STALE if self._is_past(message.other) else None

    def _is_past(self, ref: Ref) -> bool:
        """Whether a later incarnation of the node is known."""
        known = self._incarnations.latest(ref.id)
        return known is not None and ref.incarnation < known.incarnation

    def _room(self, event: EventId, weight: int) -> str | None:
        """`weight`: how many topics and nodes the message adds to what is kept of the event."""
        queue = self._coordinator.event_queue
        is_full = len(queue.pending) >= PENDING_AT_MOST and event not in queue.pending
        return TOO_MANY if is_full or queue.weight() + weight > PENDING_WEIGHT_AT_MOST else None


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


CHECKS: dict[type, Callable[[MessageValidator, Any], str | None]] = {
    ShadowReply: MessageValidator.check_answer,
    LinkConfirmed: MessageValidator.check_confirmed,
    RepairRequest: MessageValidator.check_arrive,
    LossReport: MessageValidator.check_report,
    LinkedLossQuery: MessageValidator.check_inquire,
    LinkedLossReply: MessageValidator.check_inherit,
    RingWalk: MessageValidator.check_walk,
    Descriptors: MessageValidator.check_details,
    LinkProposal: MessageValidator.check_propose,
}
Rules = tuple[
    Callable[[Any], Ref] | None, Callable[[MessageValidator, Any], str | None] | None, Callable[[Any], int] | None
]
NO_RULES: Rules = (None, None, None)
RULES: dict[type, Rules] = {
    kind: (SPEAKERS.get(kind), CHECKS.get(kind), FORWARDED.get(kind)) for kind in {*SPEAKERS, *CHECKS, *FORWARDED}
}
"""One look-up for each message. Not kept in a validator: nodes are pickled, and these are not."""
