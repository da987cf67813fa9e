"""Message validation: what is dropped, and under which name it is counted."""

from __future__ import annotations

import pickle
import random

import msgspec
import pytest

from omen.maintain.choosing import choose_links
from omen.protocol import validation
from omen.protocol.audit.audit import AuditPeriodTimer
from omen.protocol.audit.labels import LabelSpreadTimer
from omen.protocol.config import Config
from omen.protocol.events import Received, Send, TimerFired
from omen.protocol.membership.failure_detector import HeartbeatTimer
from omen.protocol.membership.gossip import RoundTimer
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
    Digest,
    DigestOffer,
    EventId,
    Leaving,
    LinkConfirmed,
    LinkOpen,
    LinkProposal,
    LinkSeen,
    LossReport,
    Message,
    RepairRequest,
    ShadowReply,
    Status,
    encode,
)
from omen.protocol.node import OmenNode
from omen.protocol.repair.shadow_member import WAITING_AT_MOST
from unit.protocol.contexts import describe, ref

ME, OTHER, THIRD = 10, 20, 30


def described(node: int, incarnation: int = 1) -> Descriptor:
    return describe(node, (1,), incarnation)


@pytest.fixture
def node() -> OmenNode:
    core = OmenNode(ref(ME), (1, 2), Config(detector=True, audit=True), random.Random(1), choose_links)
    core.preset([described(OTHER, 2), described(THIRD)], [(ref(OTHER, 2), ())], [])
    core.start(0)
    return core


def refusal(node: OmenNode, sender: int, message: object) -> str | None:
    before = node.status().refused
    node.handle(Received(sender, message), 1)
    changed = [reason for reason, count in node.status().refused.items() if count != before.get(reason, 0)]
    return changed[0] if changed else None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", validation.MALFORMED),
        (b"\xc0", validation.MALFORMED),
        (encode(LinkSeen()) + b"x", validation.MALFORMED),
        (msgspec.msgpack.encode([250]), validation.UNKNOWN),
        (msgspec.msgpack.encode([13, -1]), validation.MALFORMED),
        (msgspec.msgpack.encode([13, 2**40]), validation.MALFORMED),
        (msgspec.msgpack.encode([13, "1"]), validation.MALFORMED),
        (encode(LossReport(EventId(1, 1, "vanish"), ref(THIRD), ())), validation.MALFORMED),  # type: ignore[arg-type]
    ],
)
def test_bytes_that_hold_no_message_are_counted_and_dropped(node: OmenNode, data: bytes, reason: str) -> None:
    assert refusal(node, OTHER, data) == reason


def test_a_message_larger_than_any_is_not_even_read(node: OmenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "LARGEST", 5)
    assert refusal(node, OTHER, encode(Leaving(ref(OTHER, 2), False))) == validation.OVERSIZED


@pytest.mark.parametrize("thing", [None, 7, "x", object(), EventId(1, 1, EventKind.LEAVE)])
def test_what_is_no_message_is_unknown(node: OmenNode, thing: object) -> None:
    assert refusal(node, OTHER, thing) == validation.UNKNOWN


@pytest.mark.parametrize(
    "message",
    [
        Leaving(ref(THIRD), False),
        Status(described(THIRD).digest, (), ()),
        LinkOpen(described(THIRD), ()),
        DigestOffer((), (), False),
        RepairRequest(EventId(OTHER, 2, EventKind.AUDIT), described(OTHER, 2), (1,), ()),
        RepairRequest(EventId(THIRD, 1, EventKind.LEAVE), described(OTHER, 2), (), (1,)),
        LossReport(EventId(THIRD, 1, EventKind.JOIN), ref(OTHER, 2), (1,)),
        LossReport(EventId(OTHER, 2, EventKind.LEAVE), ref(OTHER, 2), (1,)),
    ],
)
def test_a_message_that_is_not_what_its_sender_can_say_is_dropped(node: OmenNode, message: Message) -> None:
    assert refusal(node, OTHER, message) == validation.FALSE
    assert refusal(node, OTHER, encode(message)) == validation.FALSE


def test_what_a_former_incarnation_has_said_comes_too_late(node: OmenNode) -> None:
    assert refusal(node, OTHER, LinkOpen(described(OTHER, 1), ())) == validation.STALE
    assert refusal(node, OTHER, Leaving(ref(OTHER, 1), False)) == validation.STALE
    assert node.status().neighbours() == [OTHER]


def test_an_answer_that_was_not_asked_for_is_dropped(node: OmenNode) -> None:
    event = EventId(THIRD, 1, EventKind.LEAVE)
    answer = ShadowReply(event, 1, ref(OTHER, 2), 1, b"\x01", b"", 1, (), True, False)
    assert refusal(node, OTHER, answer) == validation.STALE
    assert refusal(node, OTHER, LinkConfirmed(event, 1, THIRD, 1)) == validation.STALE


def test_made_up_losses_are_taken_up_to_a_number(node: OmenNode) -> None:
    for made_up in range(1000, 1000 + validation.PENDING_AT_MOST + 50):
        node.handle(Received(OTHER, LossReport(EventId(made_up, 1, EventKind.LEAVE), ref(OTHER, 2), (1,))), 1)
    assert len(node.status().repairs.pending) <= validation.PENDING_AT_MOST
    assert node.status().refused[validation.TOO_MANY] > 0


def test_a_link_that_is_proposed_again_costs_its_sender_nothing(node: OmenNode) -> None:
    """A coordinator asks again for what is under way: over a slow link more often than it has budget."""
    event = EventId(40, 1, EventKind.JOIN)
    for attempt in range(2 * validation.FORWARDS_AT_ONCE):
        assert refusal(node, OTHER, LinkProposal(ref(OTHER, 2), event, attempt, ref(40))) is None
    refused = [
        refusal(node, OTHER, LinkProposal(ref(OTHER, 2), event, 1, ref(node_id)))
        for node_id in range(50, 50 + 2 * validation.FORWARDS_AT_ONCE)
    ]
    assert refused.count(validation.TOO_MANY) > validation.FORWARDS_AT_ONCE // 2


def test_proposals_of_a_link_that_is_never_made_are_kept_up_to_a_number(node: OmenNode) -> None:
    """Who opens a link and never ends that may propose it for any event there is."""
    low = 5
    for number in range(700):
        if number % 50 == 0:
            node.handle(Received(low, LinkOpen(described(low), ())), number)
        event = EventId(1000 + number, 1, EventKind.LEAVE)
        node.handle(Received(low, LinkProposal(ref(low), event, 1, ref(low))), number)
    assert 0 < node.sizes().proposals <= WAITING_AT_MOST
    assert node.status().refused[validation.TOO_MANY] > 0


def test_a_whole_message_comes_through_as_bytes_too(node: OmenNode) -> None:
    outputs = node.handle(Received(OTHER, encode(DigestOffer((Digest(ref(OTHER, 2), 1, 1),), (), False))), 1)
    assert not node.status().refused
    assert any(isinstance(output, Send) and isinstance(output.message, DigestOffer) for output in outputs)


def test_a_node_can_be_saved_and_goes_on_as_if_nothing_had_been(node: OmenNode) -> None:
    again: OmenNode = pickle.loads(pickle.dumps(node))
    for timer in (RoundTimer(), LabelSpreadTimer(), AuditPeriodTimer(), HeartbeatTimer()):
        assert again.handle(TimerFired(timer), 5_000_000) == node.handle(TimerFired(timer), 5_000_000)
