"""MQTT 5: CONNECT and CONNACK (sections 3.1 and 3.2)."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    DisconnectPacket,
    DisconnectReasonCode,
    PingReqPacket,
    PubAckPacket,
    PublishPacket,
    SubscribePacket,
    TopicFilter,
    Will,
)
from tests.contract.mqtt_5_table import TABLE, connect, pair, published
from tests.contract.mqtt_table import Check, Wire, text

from omen.net.mqtt.outputs import Rights

holds = TABLE.holds


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


@pytest.mark.parametrize("check", TABLE.checks_of(__name__), ids=lambda check: check.__name__)
def test_a_statement_of_mqtt_5_holds(check: Check) -> None:
    check()
