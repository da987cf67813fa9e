"""MQTT 5: sessions, qualities of service, topics, shares (sections 4 and 6)."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import (
    ConnAckReasonCode,
    PingReqPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
)
from tests.contract.mqtt_5_table import TABLE, pair, published
from tests.contract.mqtt_table import Check, Wire

from omen.net.mqtt.outputs import Rights
from omen.net.mqtt.topics import is_valid_name, is_valid_share

holds = TABLE.holds


@holds("4.1.0-2")
def a_session_ends_with_its_time() -> None:
    world = Wire()
    world.connect(1, "me", session_expiry_interval=50)
    world.door.lost(1, world.now)
    world.now += 51
    world.door.tick(world.now)
    assert not world.connect(2, "me", clean_start=False).session_present


@holds("4.7.3-3")
def names_end_at_their_longest() -> None:
    assert is_valid_name("a" * 65_535) and not is_valid_name("a" * 65_536)


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


@pytest.mark.parametrize("check", TABLE.checks_of(__name__), ids=lambda check: check.__name__)
def test_a_statement_of_mqtt_5_holds(check: Check) -> None:
    check()
