"""MQTT 5: each normative statement that concerns a server."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    DisconnectPacket,
    DisconnectReasonCode,
    PingReqPacket,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
    QoS,
    RetainHandling,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
    Will,
)
from tests.contract.mqtt_table import Check, Table, Wire, framed, text

from omen.net.mqtt.outputs import DoorLimits, Rights
from omen.net.mqtt.topics import is_valid_filter, is_valid_name, is_valid_share, matches

SECTIONS = {
    "1.5.4": (1, 3), "1.5.5": (1, 1), "1.5.7": (1, 1), "2.1.3": (1, 1), "2.2.1": (2, 6), "2.2.2": (1, 1),
    "3.1.0": (1, 2), "3.1.2": (1, 30), "3.1.3": (1, 12), "3.1.4": (1, 6), "3.2.0": (1, 2), "3.2.2": (1, 22),
    "3.3.1": (1, 13), "3.3.2": (1, 20), "3.3.4": (1, 10), "3.4.2": (1, 3), "3.5.2": (1, 3), "3.6.1": (1, 1),
    "3.6.2": (1, 3), "3.7.2": (1, 3), "3.8.1": (1, 1), "3.8.3": (1, 5), "3.8.4": (1, 8), "3.9.2": (1, 2),
    "3.9.3": (1, 2), "3.10.1": (1, 1), "3.10.3": (1, 2), "3.10.4": (1, 6), "3.11.2": (1, 2), "3.11.3": (1, 2),
    "3.12.4": (1, 1), "3.14.0": (1, 1), "3.14.1": (1, 1), "3.14.2": (1, 4), "3.14.4": (1, 3), "3.15.1": (1, 1),
    "3.15.2": (1, 3), "4.1.0": (1, 2), "4.2.0": (1, 1), "4.3.1": (1, 1), "4.3.2": (1, 5), "4.3.3": (1, 13),
    "4.4.0": (1, 2), "4.5.0": (1, 2), "4.6.0": (1, 6), "4.7.0": (1, 1), "4.7.1": (1, 2), "4.7.2": (1, 1),
    "4.7.3": (1, 4), "4.8.2": (1, 6), "4.9.0": (1, 3), "4.12.0": (1, 7), "4.12.1": (1, 2), "4.13.1": (1, 1),
    "4.13.2": (1, 1), "6.0.0": (1, 4),
}  # fmt: skip
TABLE = Table(SECTIONS)
TABLE.of_clients = (
    "2.2.1-3", "3.1.2-16", "3.1.2-17", "3.1.2-18", "3.1.2-19", "3.1.2-20", "3.1.2-21", "3.1.2-30", "3.2.2-4",
    "3.2.2-5", "3.2.2-11", "3.2.2-14", "3.2.2-15", "3.2.2-17", "3.2.2-18", "3.2.2-21", "3.3.2-8", "3.3.2-9",
    "3.3.2-10", "3.3.4-7", "3.3.4-8", "4.5.0-2", "4.6.0-1", "4.6.0-2", "4.6.0-3", "4.6.0-4", "4.12.0-3", "4.12.0-7",
    "4.12.1-1", "6.0.0-3",
)  # fmt: skip
AUTH = "no enhanced authentication: a CONNECT that asks for it is refused (4.12.0-1), so AUTH is never exchanged"
NO_STRING = "no packet is given a reason string or user properties of the server's own"
ALL_QOS = "QoS 2 is supported: there is no maximum to be told or kept"
TABLE.not_supported = {
    **dict.fromkeys(("3.15.1-1", "3.15.2-1", "3.15.2-2", "3.15.2-3"), AUTH),
    **dict.fromkeys(("4.12.0-2", "4.12.0-4", "4.12.0-5", "4.12.1-2"), AUTH),
    **dict.fromkeys(("3.2.2-9", "3.2.2-10", "3.2.2-12"), ALL_QOS),
    "3.2.2-13": "retained messages are supported",
    "3.3.4-5": "one copy is sent for overlapping subscriptions, shared ones apart (3.3.4-4)",
    **dict.fromkeys(("3.2.2-19", "3.2.2-20", "3.4.2-2", "3.4.2-3", "3.5.2-2", "3.5.2-3"), NO_STRING),
    **dict.fromkeys(("3.6.2-2", "3.6.2-3", "3.7.2-2", "3.7.2-3", "3.9.2-1", "3.9.2-2"), NO_STRING),
    **dict.fromkeys(("3.11.2-1", "3.11.2-2", "3.14.2-3", "3.14.2-4"), NO_STRING),
}  # fmt: skip
holds = TABLE.holds


def connect(flags: int, *fields: bytes, version: int = 5, name: str = "MQTT") -> bytes:
    return framed(0x10, text(name) + bytes((version, flags, 0, 60, 0)) + b"".join(fields))


def published(packets: list[Any]) -> list[bytes]:
    return [packet.payload for packet in packets if isinstance(packet, PublishPacket)]


def pair(qos: int = 2, **options: Any) -> Wire:
    """A subscriber, 1, and a publisher, 2."""
    world = Wire()
    world.connect(1, "sub", session_expiry_interval=100)
    world.subscribe(1, "a", qos=qos, **options)
    world.connect(2, "pub")
    return world


TEXTS = (
    "1.5.4-1",
    "1.5.7-1",
    "3.1.3-4",
    "3.1.3-11",
    "3.1.3-12",
    "3.8.3-1",
    "3.10.3-1",
    "3.3.2-1",
    "3.3.2-13",
    "3.3.2-19",
)


@holds(*TEXTS)
def strings_are_utf8() -> None:
    for bad in (b"\xed\xa0\x80", b"\xff"):
        for packet in (
            connect(2, text(bad)),
            connect(2 | 4, text("c"), b"\0", text(bad), text("x")),
            connect(2 | 0x80, text("c"), text(bad)),
        ):
            world = Wire()
            world.bytes_in(1, packet)
            assert 1 in world.closed and not world.door.sessions
        user = b"\x26" + text("k") + text(bad)
        for data in (
            framed(0x30, text(bad) + b"\0"),
            framed(0x82, b"\0\1\0" + text(bad) + b"\0"),
            framed(0xA2, b"\0\1\0" + text(bad)),
            framed(0x30, text("a") + bytes((len(user),)) + user),
            framed(0x30, text("a") + bytes((3 + len(bad),)) + b"\x08" + text(bad)),
            framed(0x30, text("a") + bytes((3 + len(bad),)) + b"\x03" + text(bad)),
        ):
            assert Wire().is_closed_by(data), data


@holds("1.5.4-2", "4.7.3-2")
def names_and_filters_have_no_zero() -> None:
    assert Wire().is_closed_by(framed(0x30, text("a\0b") + b"\0"))
    world = Wire()
    world.connect(1)
    (ack,) = world.bytes_in(1, framed(0x82, b"\0\1\0" + text("a\0b") + b"\0"))
    assert ack.reason_codes == [SubAckReasonCode.TOPIC_FILTER_INVALID]
    for data in (b"\x26" + text("k") + text("a\0b"), b"\x08" + text("a\0b"), b"\x03" + text("a\0b")):
        assert Wire().is_closed_by(framed(0x30, text("a") + bytes((len(data),)) + data))
    for packet in (connect(2, text("a\0b")), connect(2 | 0x80, text("c"), text("a\0b"))):
        world = Wire()
        world.bytes_in(1, packet)
        assert 1 in world.closed and not world.door.sessions


@holds("3.8.3-2", "3.10.3-2", "3.8.3-5", "3.3.2-14")
def requests_that_say_nothing_or_too_much_close_the_connection() -> None:
    for data in (
        framed(0x82, b"\0\1\0"),
        framed(0xA2, b"\0\1\0"),
        framed(0x82, b"\0\1\0" + text("a") + b"\xc0" + text("b") + b"\0"),
        framed(0x30, text("a") + b"\x06\x08" + text("r/+")),
    ):
        assert Wire().is_closed_by(data), data


@holds("1.5.4-3", "4.7.3-4")
def nothing_in_a_name_is_stripped_or_normalised() -> None:
    world = pair()
    for name in ("\ufeffa", "A", "a/", "e\u0301", "\u00e9"):
        world.publish(2, name, b"other")
    assert published(world.take(1)) == []
    world.subscribe(1, "\ufeffx")
    world.publish(2, "\ufeffx", b"bom")
    assert published(world.take(1)) == [b"bom"]


@holds("1.5.5-1", "2.2.2-1", "3.2.2-1")
def what_the_server_writes_is_minimal() -> None:
    world = Wire()
    world.door.open(1, world.now)
    world.door.receive(1, mqtt5.ConnectPacket("c"), 5, world.now)
    claim, *_ = world.door.take()
    world.door.claimed(claim.token, None, world.now)  # type: ignore[union-attr]
    data = world.door.take()[0].data  # type: ignore[union-attr]
    assert data[0] == 0x20 and data[1] == len(data) - 2 and data[2] in (0, 1)
    assert PubAckPacket(7).write() in (b"\x40\x02\x00\x07", b"\x40\x04\x00\x07\x00\x00")


@holds("2.1.3-1", "3.6.1-1", "3.8.1-1", "3.10.1-1", "3.14.1-1", "4.13.1-1")
def reserved_bits_close_the_connection() -> None:
    for data in (
        framed(0x60, b"\0\1"),
        framed(0x80, b"\0\1\0" + text("a") + b"\0"),
        framed(0xA0, b"\0\1\0" + text("a")),
        framed(0xE1, b""),
        framed(0xC1, b""),
        framed(0x82, b"\0\1\0" + text("a") + b"\x03"),
    ):
        world = Wire()
        assert world.is_closed_by(data), data


@holds("2.2.1-2", "3.3.1-4", "3.3.1-2")
def a_publish_contradicts_itself() -> None:
    assert Wire().is_closed_by(framed(0x36, text("a") + b"\0\1\0"))
    assert Wire().is_closed_by(framed(0x38, text("a") + b"\0"))
    assert Wire().is_closed_by(framed(0x32, text("a") + b"\0\0\0"))
    world = Wire()
    assert not world.is_closed_by(framed(0x30, text("a") + b"\0" + b"\0\7"))
    assert world.published[0].payload == b"\0\7"


@holds("2.2.1-4", "4.3.2-1", "4.3.3-1", "4.3.2-2", "4.3.3-2", "3.3.1-3")
def messages_to_clients_have_numbers_that_are_free() -> None:
    world = pair()
    for number in range(30):
        world.publish(2, "a", b"x", qos=1 + number % 2, packet_id=number + 1)
        world.send(2, PubRelPacket(number + 1))
    packets = [packet for packet in world.take(1) if isinstance(packet, PublishPacket)]
    assert len({packet.packet_id for packet in packets}) == 30 and 0 not in {packet.packet_id for packet in packets}
    assert not any(packet.duplicate for packet in packets)


@holds("2.2.1-5", "3.3.4-1", "4.3.2-4", "4.3.3-8", "4.3.3-11", "3.4.2-1", "3.5.2-1", "3.7.2-1")
def acknowledgements_have_the_number_of_what_they_acknowledge() -> None:
    world = Wire()
    world.connect(1)
    assert world.publish(1, "a") == []
    (one,) = world.publish(1, "a", qos=1, packet_id=17)
    assert isinstance(one, PubAckPacket) and one.packet_id == 17 and one.reason_code == PubAckReasonCode.SUCCESS
    (two,) = world.publish(1, "a", qos=2, packet_id=18)
    assert isinstance(two, PubRecPacket) and two.packet_id == 18
    world.send(1, PubRelPacket(18))
    (done,) = world.take(1)
    assert isinstance(done, PubCompPacket) and done.packet_id == 18


@holds("2.2.1-6", "3.8.4-1", "3.8.4-2", "3.10.4-4", "3.10.4-5", "3.11.3-1", "3.11.3-2", "3.10.4-6", "3.10.4-1")
def subscriptions_are_acknowledged() -> None:
    world = Wire()
    world.connect(1)
    world.send(1, SubscribePacket(77, [TopicFilter("a"), TopicFilter("b/+")]))
    (ack,) = world.take(1)
    assert isinstance(ack, SubAckPacket) and ack.packet_id == 77
    world.send(1, UnsubscribePacket(78, ["b/c", "b/+"]))
    (gone,) = world.take(1)
    assert isinstance(gone, UnsubAckPacket) and gone.packet_id == 78
    assert gone.reason_codes == [UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED, UnsubAckReasonCode.SUCCESS]


@holds("3.1.0-1")
def the_first_packet_is_connect() -> None:
    world = Wire()
    world.bytes_in(1, PingReqPacket().write())
    assert 1 in world.closed


@holds("3.1.0-2", "3.2.0-2", "4.13.2-1", "3.14.2-1", "3.14.2-2")
def a_second_connect_ends_the_connection() -> None:
    world = Wire()
    world.connect(1)
    (bye,) = world.bytes_in(1, mqtt5.ConnectPacket("c1").write())
    assert bye.reason_code == DisconnectReasonCode.PROTOCOL_ERROR and bye.session_expiry_interval is None
    assert 1 in world.closed


@holds("3.1.2-1", "3.1.2-2", "3.2.2-6", "3.2.2-7", "3.2.2-8")
def other_protocols_are_refused() -> None:
    for packet in (connect(2, text("c"), name="MQTX"), connect(2, text("c"), version=6)):
        world = Wire()
        world.door.open(1, world.now)
        world.bytes_in(1, packet)
        assert 1 in world.closed and not world.door.sessions


@holds("3.1.2-3", "3.1.2-9", "3.1.2-11", "3.1.2-12", "3.1.2-13", "3.1.3-1", "3.1.3-3", "3.1.4-1", "3.14.0-1")
def a_connect_that_contradicts_itself_is_refused() -> None:
    will = (b"\0", text("w"), text("gone"))
    for packet in (
        connect(3, text("c")),
        connect(2 | 8, text("c")),
        connect(2 | 0x20, text("c")),
        connect(2 | 4, text("c")),
        connect(2 | 4 | 0x18, text("c"), *will),
        connect(2),
        connect(2 | 0x80, text("c")),
    ):
        world = Wire()
        answers = world.bytes_in(1, packet)
        assert 1 in world.closed and not world.door.sessions, packet
        assert not any(isinstance(answer, DisconnectPacket) for answer in answers)
    for qos in (0, 1, 2):
        world = Wire()
        assert (
            world.bytes_in(1, connect(2 | 4 | qos << 3, text("c"), *will))[0].reason_code == ConnAckReasonCode.SUCCESS
        )


@holds("3.1.2-4", "3.1.2-5", "3.1.2-6", "3.2.2-2", "3.2.2-3", "3.1.2-23", "3.1.4-4", "3.1.4-5", "3.1.3-2", "4.1.0-1")
def sessions_begin_go_on_and_end() -> None:
    world = Wire()
    assert not world.connect(1, "me", session_expiry_interval=50, clean_start=False).session_present
    world.subscribe(1, "a", qos=1)
    world.door.lost(1, world.now)
    world.connect(2)
    world.publish(2, "a", b"kept", qos=1)
    world.door.open(3, world.now)
    world.send(3, mqtt5.ConnectPacket("me", clean_start=False, session_expiry_interval=50))
    hello, message = world.take(3)
    assert hello.session_present and message.payload == b"kept"
    world.door.lost(3, world.now)
    assert not world.connect(4, "me", clean_start=True).session_present
    world.publish(2, "a", b"not wanted", qos=1)
    assert world.take(4) == []


@holds("4.1.0-2")
def a_session_ends_with_its_time() -> None:
    world = Wire()
    world.connect(1, "me", session_expiry_interval=50)
    world.door.lost(1, world.now)
    world.now += 51
    world.door.tick(world.now)
    assert not world.connect(2, "me", clean_start=False).session_present


@holds("3.1.2-7", "3.1.2-8", "3.1.2-10", "3.1.3-9", "3.1.2-14", "3.1.2-15", "3.1.3-10", "3.14.4-3")
def wills_are_published_in_their_time() -> None:
    properties = [("b", "1"), ("a", "2"), ("b", "3")]
    for retain in (False, True):
        world = Wire()
        world.connect(1, will=Will("w", payload=b"x", retain=retain, user_properties=properties))
        world.door.lost(1, world.now)
        world.settle()
        (will,) = world.published
        assert will.retain == retain and list(will.user_properties) == properties
    world = Wire()
    world.connect(1, will=Will("w", payload=b"x"))
    world.send(1, DisconnectPacket())
    world.door.tick(world.now + 100)
    world.settle()
    assert world.published == []
    world.connect(2, "late", will=Will("w", payload=b"x", will_delay_interval=10), session_expiry_interval=60)
    world.door.lost(2, world.now)
    world.settle()
    world.connect(3, "late", clean_start=False, session_expiry_interval=60)
    world.now += 20
    world.door.tick(world.now)
    world.settle()
    assert world.published == []


@holds("3.1.2-22", "3.2.2-22")
def a_silent_client_is_disconnected() -> None:
    world = Wire()
    world.connect(1, keep_alive=10, will=Will("w", payload=b"x"))
    world.connect(2, keep_alive=0)
    world.door.tick(world.now + 14)
    world.settle()
    assert world.closed == set()
    world.door.tick(world.now + 16)
    world.settle()
    assert world.closed == {1} and len(world.published) == 1


@holds("3.1.2-24", "3.1.2-25")
def packets_that_are_too_large_for_a_client_are_left_out() -> None:
    world = Wire()
    world.connect(1, max_packet_size=60, receive_max=1)
    world.subscribe(1, "a", qos=1)
    world.connect(2)
    world.publish(2, "a", bytes(100), qos=1)
    world.publish(2, "a", b"small", qos=1)
    assert published(world.take(1)) == [b"small"]


@holds("3.1.2-26", "3.1.2-27", "3.3.2-11", "3.1.2-28", "3.1.2-29", "4.12.0-6")
def nothing_is_sent_that_was_not_asked_for() -> None:
    world = pair()
    hello = world.connect(3)
    told = {name: getattr(hello, name) for name in dir(hello) if name[0] != "_" and not callable(getattr(hello, name))}
    assert not any(
        "auth" in name or "response" in name or "reason_str" in name for name, value in told.items() if value
    )
    world.publish(2, "a")
    (packet,) = world.take(1)
    assert packet.topic_alias is None
    (ack,) = world.publish(2, "a", qos=1)
    assert ack.write() == PubAckPacket(5).write()


@holds("3.1.3-5")
def simple_client_ids_are_allowed() -> None:
    world = Wire()
    assert world.connect(1, "0123456789abcdefghijABC").reason_code == ConnAckReasonCode.SUCCESS
    assert world.connect(2, "Z").reason_code == ConnAckReasonCode.SUCCESS


@holds("3.1.3-6", "3.1.3-7", "3.2.2-16")
def a_client_without_an_id_gets_one() -> None:
    world = Wire()
    given = set()
    for number in (1, 2):
        (hello,) = world.bytes_in(number, mqtt5.ConnectPacket("").write())
        given.add(hello.assigned_client_id)
    assert len(given) == 2 and given == set(world.door.sessions)


@holds("3.1.3-8", "3.1.4-2", "3.1.4-6")
def a_refused_client_is_not_listened_to() -> None:
    no = Rights(lambda *_: ConnAckReasonCode.NOT_AUTHORIZED, lambda *_: True, lambda *_: True)
    world = Wire(rights=no)
    answers = world.bytes_in(1, mqtt5.ConnectPacket("c").write() + PublishPacket("a", b"x").write())
    assert [answer.reason_code for answer in answers] == [ConnAckReasonCode.NOT_AUTHORIZED]
    assert 1 in world.closed and world.published == []


@holds("3.1.4-3")
def a_client_id_is_taken_over() -> None:
    world = Wire()
    world.connect(1, "me")
    world.connect(2, "me")
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.SESSION_TAKEN_OVER and 1 in world.closed


@holds("3.2.0-1")
def connack_comes_first() -> None:
    world = Wire()
    data = mqtt5.ConnectPacket("c").write() + SubscribePacket(1, [TopicFilter("a")]).write() + PingReqPacket().write()
    assert isinstance(world.bytes_in(1, data)[0], ConnAckPacket)


@holds("3.3.1-1", "4.4.0-1", "4.3.2-3", "4.3.3-3", "4.3.3-5", "4.3.3-6", "4.3.3-4", "3.6.2-1")
def what_is_not_acknowledged_is_sent_again_on_a_new_connection_alone() -> None:
    world = pair()
    world.publish(2, "a", b"one", qos=1)
    world.publish(2, "a", b"two", qos=2, packet_id=6)
    world.publish(2, "a", b"three", qos=2, packet_id=7)
    first = world.take(1)
    world.send(1, PubRecPacket(first[2].packet_id))
    (release,) = world.take(1)
    assert release.packet_id == first[2].packet_id
    world.now += 1000
    world.door.tick(world.now)
    world.settle()
    assert world.take(1) == []
    world.door.lost(1, world.now)
    world.connect(3, "sub", clean_start=False, session_expiry_interval=100)
    again = world.take(3) or []
    sent = [(type(packet), packet.packet_id) for packet in again]
    assert sent == [
        (PublishPacket, first[0].packet_id),
        (PublishPacket, first[1].packet_id),
        (PubRelPacket, first[2].packet_id),
    ]
    assert all(packet.duplicate for packet in again[:2])


@holds("3.3.1-5", "3.3.1-6", "3.3.1-7", "3.3.1-8", "3.3.1-9", "3.3.1-10", "3.3.1-11", "3.8.4-4")
def retained_messages_are_kept_replaced_and_removed() -> None:
    world = Wire()
    world.connect(2)
    world.publish(2, "a", b"old", retain=True)
    world.publish(2, "a", b"new", retain=True)
    world.publish(2, "a", b"passing")
    world.connect(1)
    (_, kept) = world.subscribe(1, "a")
    assert kept.payload == b"new" and kept.retain
    assert published(world.subscribe(1, "a")) == [b"new"]
    assert published(world.subscribe(1, "a", retain_handling=RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)) == []
    assert published(world.subscribe(1, "+", retain_handling=RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)) == [
        b"new"
    ]
    assert published(world.subscribe(1, "#", retain_handling=RetainHandling.SEND_NEVER)) == []
    world.publish(2, "a", b"", retain=True)
    world.connect(3)
    assert published(world.subscribe(3, "a")) == []


@holds("3.3.1-12", "3.3.1-13")
def retain_as_published() -> None:
    for as_published in (False, True):
        world = pair(retain_as_published=as_published)
        for retain in (False, True):
            world.publish(2, "a", b"x", retain=retain)
            assert world.take(1)[0].retain == (retain and as_published)


@holds("3.3.2-2", "4.7.0-1", "4.7.3-1")
def names_have_no_wildcards_and_are_not_empty() -> None:
    for name in ("a/+", "#", ""):
        assert Wire().is_closed_by(framed(0x30, text(name) + b"\0"))


@holds("3.3.2-3", "4.7.1-1", "4.7.1-2", "4.7.2-1")
def filters_match_names() -> None:
    for pattern, name, fits in (
        ("a/#", "a", True), ("a/#", "a/b/c", True), ("+/b", "a/b", True), ("+", "a/b", False), ("a/+", "a", False),
        ("#", "$SYS/x", False), ("+/x", "$SYS/x", False), ("$SYS/#", "$SYS/x", True), ("a/+", "a/", True),
    ):  # fmt: skip
        assert matches(pattern, name) == fits, (pattern, name)
    for pattern in ("a#", "#/a", "a/#/b", "a+", "+a/b"):
        assert not is_valid_filter(pattern)


@holds("4.7.3-3")
def names_end_at_their_longest() -> None:
    assert is_valid_name("a" * 65_535) and not is_valid_name("a" * 65_536)


@holds("3.3.2-4", "3.3.2-15", "3.3.2-16", "3.3.2-17", "3.3.2-18", "3.3.2-20")
def properties_go_through_unaltered() -> None:
    world = pair()
    properties: dict[str, Any] = {
        "payload_format_indicator": 1, "response_topic": "r", "correlation_data": b"\0\1",
        "user_properties": [("k", "1"), ("k", "0"), ("a", "")], "content_type": "text/x",
    }  # fmt: skip
    world.publish(2, "a", b"x", **properties)
    (packet,) = world.take(1)
    assert {name: getattr(packet, name) for name in properties} == properties


@holds("3.3.2-5", "3.3.2-6", "4.3.3-7", "4.3.3-13")
def messages_expire_before_they_are_sent_and_not_after() -> None:
    world = pair()
    world.publish(2, "a", b"sent", qos=2, message_expiry_interval=5)
    world.door.lost(1, world.now)
    world.publish(2, "a", b"waits", qos=1, packet_id=8, message_expiry_interval=5)
    world.publish(2, "a", b"waits longer", qos=1, packet_id=9, message_expiry_interval=50)
    world.now += 20
    world.connect(3, "sub", clean_start=False, session_expiry_interval=100)
    packets = [packet for packet in world.take(3) if isinstance(packet, PublishPacket)]
    assert [packet.payload for packet in packets] == [b"sent", b"waits longer"]
    assert packets[1].message_expiry_interval == 30
    world.send(3, PubRecPacket(packets[0].packet_id))
    assert isinstance(world.take(3)[0], PubRelPacket)


@holds("3.3.2-7", "3.3.2-12")
def topic_aliases_belong_to_a_connection() -> None:
    world = Wire()
    most = world.connect(1, "me").topic_alias_max
    for alias in (1, most):
        world.publish(1, "a", b"x", topic_alias=alias)
        world.publish(1, "", b"y", topic_alias=alias)
    assert [(message.topic, message.payload) for message in world.published] == [("a", b"x"), ("a", b"y")] * 2
    world.connect(2, "me", clean_start=False)
    world.publish(2, "", b"z", topic_alias=1)
    assert 2 in world.closed


@holds("3.3.4-2", "3.3.4-3", "3.3.4-4", "3.8.4-8", "3.8.4-7")
def overlapping_subscriptions_get_one_copy_with_the_highest_qos() -> None:
    world = Wire()
    world.connect(1)
    for identifier, (pattern, qos) in enumerate((("a/b", 1), ("a/+", 2), ("#", 0)), 1):
        (ack,) = world.subscribe(1, pattern, qos=qos, identifier=identifier)
        assert int(ack.reason_codes[0]) == qos
    world.connect(2)
    for sent, got in ((2, 2), (1, 1), (0, 0)):
        world.publish(2, "a/b", b"x", qos=sent, packet_id=sent + 4 if sent else None)
        (packet,) = world.take(1)
        assert int(packet.qos) == got and sorted(packet.subscription_ids) == [1, 2, 3]


@holds("3.3.4-6")
def clients_send_no_subscription_identifiers() -> None:
    assert Wire().is_closed_by(PublishPacket("a", b"x", subscription_ids=[1]).write())


@holds("3.3.4-9", "3.3.4-10", "4.9.0-1", "4.9.0-2", "4.9.0-3")
def receive_maximum() -> None:
    world = Wire()
    world.connect(1, receive_max=3)
    world.subscribe(1, "a", qos=1)
    world.connect(2)
    for number in range(5):
        world.publish(2, "a", b"%d" % number, qos=1)
    first = world.take(1)
    assert published(first) == [b"0", b"1", b"2"]
    world.send(1, PingReqPacket())
    assert len(world.take(1)) == 1
    world.send(1, PubAckPacket(first[0].packet_id))
    assert published(world.take(1)) == [b"3"]


@holds("3.8.3-3")
def no_local() -> None:
    world = Wire()
    world.connect(1)
    world.subscribe(1, "a", no_local=True)
    assert published(world.publish(1, "a")) == []


@holds("3.8.3-4")
def no_local_of_a_share_is_an_error() -> None:
    world = Wire()
    world.connect(1)
    assert world.subscribe(1, "$share/g/a", no_local=True)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR


@holds("3.8.4-3")
def a_subscription_is_replaced() -> None:
    world = pair(qos=2)
    world.subscribe(1, "a", qos=0)
    world.publish(2, "a", b"x", qos=1)
    (packet,) = world.take(1)
    assert int(packet.qos) == 0


@holds("3.8.4-5", "3.8.4-6", "3.9.3-1", "3.9.3-2")
def several_filters_have_one_answer_in_their_order() -> None:
    world = Wire()
    world.connect(1)
    world.send(
        1,
        SubscribePacket(
            5, [TopicFilter("a", max_qos=QoS(1)), TopicFilter("$omen/x"), TopicFilter("b", max_qos=QoS(0))]
        ),
    )
    (ack,) = world.take(1)
    assert ack.reason_codes == [
        SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE,
        SubAckReasonCode.TOPIC_FILTER_INVALID,
        SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE,
    ]


@holds("3.10.4-2", "3.10.4-3")
def after_unsubscribe_nothing_new_is_begun_and_what_was_is_ended() -> None:
    world = pair()
    world.publish(2, "a", b"begun", qos=2)
    (packet,) = world.take(1)
    world.send(1, UnsubscribePacket(3, ["a"]))
    world.publish(2, "a", b"new", qos=1)
    world.send(1, PubRecPacket(packet.packet_id))
    assert [type(one) for one in world.take(1)] == [UnsubAckPacket, PubRelPacket]


@holds("3.12.4-1")
def pings_are_answered() -> None:
    world = Wire()
    world.connect(1)
    assert len(world.bytes_in(1, PingReqPacket().write())) == 1


@holds("3.14.4-1", "3.14.4-2")
def after_a_disconnect_nothing_follows() -> None:
    world = pair()
    world.send(1, DisconnectPacket())
    world.publish(2, "a")
    assert 1 in world.closed and world.take(1) == []


@holds("4.2.0-1", "4.6.0-5", "4.6.0-6", "4.5.0-1")
def messages_keep_their_order_and_wait_for_those_who_are_away() -> None:
    world = pair(qos=1)
    world.door.lost(1, world.now)
    for number in range(20):
        world.publish(2, "a", b"%d" % number, qos=1)
    world.connect(3, "sub", clean_start=False, session_expiry_interval=100)
    assert published(world.take(3)) == [b"%d" % number for number in range(20)]


@holds("4.3.1-1")
def qos_0_is_sent_once() -> None:
    world = pair(qos=0)
    world.publish(2, "a", b"x", qos=1)
    (packet,) = world.take(1)
    assert not packet.duplicate and packet.packet_id is None


@holds("4.3.2-5", "4.3.3-12", "4.3.3-9", "4.3.3-10")
def numbers_of_clients_are_new_again_when_they_are_done() -> None:
    rights = Rights(lambda *_: ConnAckReasonCode.SUCCESS, lambda _, topic: topic != "no", lambda *_: True)
    world = Wire(rights=rights)
    world.connect(1)
    for _ in range(2):
        world.publish(1, "a", b"one", qos=1, packet_id=4, duplicate=True)
    assert len(world.published) == 2
    for _ in range(3):
        assert isinstance(world.publish(1, "a", b"two", qos=2, packet_id=4)[0], PubRecPacket)
    assert len(world.published) == 3
    world.send(1, PubRelPacket(4))
    world.take(1)
    world.publish(1, "a", b"two", qos=2, packet_id=4)
    assert len(world.published) == 4
    world.send(1, PubRelPacket(4))
    world.take(1)
    assert world.publish(1, "no", qos=2, packet_id=5)[0].reason_code == PubRecReasonCode.NOT_AUTHORIZED
    world.publish(1, "a", qos=2, packet_id=5)
    assert len(world.published) == 5


@holds("4.4.0-2", "4.8.2-6")
def what_a_client_refuses_is_done() -> None:
    world = Wire()
    world.connect(1, "one", session_expiry_interval=10)
    world.subscribe(1, "$share/g/a", qos=2)
    world.connect(2, "two")
    world.publish(2, "a", qos=2)
    (packet,) = world.take(1)
    world.subscribe(2, "$share/g/a", qos=2)
    world.send(1, PubRecPacket(packet.packet_id, reason_code=PubRecReasonCode.UNSPECIFIED_ERROR))
    assert world.take(1) == [] and published(world.take(2)) == []
    world.door.lost(1, world.now)
    world.connect(3, "one", clean_start=False)
    assert world.take(3) == []


@holds("4.8.2-1", "4.8.2-2")
def shares_have_a_name_and_a_filter() -> None:
    assert is_valid_share("$share/g/a/#") and is_valid_share("$share/g//a")
    assert not any(
        map(is_valid_share, ("$share/g", "$share//a", "$share/+/a", "$share/g#/a", "$share/g/", "share/g/a"))
    )


@holds("4.8.2-3", "4.8.2-4", "4.8.2-5")
def a_message_of_a_share_stays_with_the_client_it_was_sent_to() -> None:
    world = Wire()
    world.connect(1, "one", session_expiry_interval=10)
    world.subscribe(1, "$share/g/a", qos=1)
    world.connect(2)
    world.publish(2, "a", b"x", qos=2)
    (packet,) = world.take(1)
    assert int(packet.qos) == 1
    world.subscribe(2, "$share/g/a", qos=1)
    world.door.lost(1, world.now)
    assert published(world.take(2)) == []
    world.connect(3, "one", clean_start=False, session_expiry_interval=10)
    assert published(world.take(3)) == [b"x"]
    world.door.lost(3, world.now)
    world.now += 11
    world.door.tick(world.now)
    world.settle()
    assert published(world.take(2)) == []


@holds("4.12.0-1")
def authentication_methods_are_refused() -> None:
    world = Wire()
    hello = world.connect(1, authentication_method="SCRAM")
    assert hello.reason_code == ConnAckReasonCode.BAD_AUTHENTICATION_METHOD and 1 in world.closed


@holds("6.0.0-1", "6.0.0-2", "6.0.0-4")
def websocket_frames_are_binary_in_any_pieces() -> None:
    """See tests/network/test_mqtt.py for the sockets themselves; pieces of packets are put together by the codec."""
    world = Wire()
    data = mqtt5.ConnectPacket("c").write() + PingReqPacket().write()
    answers = [answer for byte in data for answer in world.bytes_in(1, bytes((byte,)))]
    assert len(answers) == 2


@pytest.mark.parametrize(("ids", "check"), TABLE.checks, ids=[check.__name__ for _, check in TABLE.checks])
def test_a_statement_of_mqtt_5_holds(ids: tuple[str, ...], check: Check) -> None:
    check()


def test_every_statement_of_mqtt_5_is_held_or_of_clients_or_not_supported_with_a_reason() -> None:
    missing, twice, unknown = TABLE.account()
    assert (missing, twice, unknown) == ([], [], [])
    assert all(TABLE.not_supported.values())


def test_limits_are_told() -> None:
    hello = Wire(limits=DoorLimits(receive_max=7, topic_aliases=5, packet_bytes=5000)).connect(1)
    assert (hello.receive_max, hello.topic_alias_max, hello.max_packet_size) == (7, 5, 5000)
