"""MQTT 5: what strings and packets look like (sections 1 and 2)."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import (
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
)
from tests.contract.mqtt_5_table import TABLE, connect, pair, published
from tests.contract.mqtt_table import Check, Wire, framed, text

holds = TABLE.holds


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


@pytest.mark.parametrize("check", TABLE.checks_of(__name__), ids=lambda check: check.__name__)
def test_a_statement_of_mqtt_5_holds(check: Check) -> None:
    check()
