"""What clients publish, and when it is acknowledged."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import (
    ConnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
)
from tests.unit.net.mqtt.doors import Harness, Stored, payloads

from omen.net.mqtt.codec import V3, V5
from omen.net.mqtt.outputs import DoorLimits, Publish


def test_qos_1_waits_for_other_nodes() -> None:
    world = Harness()
    world.grants = False
    world.connect(1)
    assert world.publish(1, "a", qos=1) == []
    world.door.acknowledged(world.tokens[0], world.now)
    world.settle()
    assert isinstance(world.take(1)[0], PubAckPacket)


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize(
    ("version", "reason", "is_answered"),
    [
        (V5, PubAckReasonCode.QUOTA_EXCEEDED, True),
        (V5, PubAckReasonCode.UNSPECIFIED_ERROR, False),
        (V3, PubAckReasonCode.QUOTA_EXCEEDED, False),
    ],
)
def test_a_client_hears_of_a_message_that_could_not_be_published(
    version: int, reason: PubAckReasonCode, is_answered: bool, qos: int
) -> None:
    world = Harness()
    world.grants = False
    world.connect(1)
    world.publish(1, "a", qos=qos)
    world.door.clients[1].version = version
    world.door.refused(world.tokens[0], reason, world.now)
    world.settle()
    if is_answered:
        (answer,) = world.take(1)
        assert isinstance(answer, PubAckPacket | PubRecPacket) and int(answer.reason_code) == int(reason)
        world.publish(1, "a", qos=qos)
        assert len(world.published) == 2, "its number is free again"
    assert (1 in world.closed) != is_answered  # so that it sends the message again


def test_qos_2_is_published_once_however_often_it_is_sent() -> None:
    world = Harness()
    world.connect(1)
    (received,) = world.publish(1, "a", qos=2, packet_id=7)
    assert isinstance(received, PubRecPacket)
    (again,) = world.publish(1, "a", qos=2, packet_id=7, duplicate=True)
    assert isinstance(again, PubRecPacket)
    assert len(world.published) == 1
    world.send(1, PubRelPacket(7))
    assert isinstance(world.take(1)[0], PubCompPacket)
    world.publish(1, "a", qos=2, packet_id=7)
    assert len(world.published) == 2


def test_qos_2_that_is_sent_again_on_another_connection_is_acknowledged_there() -> None:
    world = Harness()
    world.grants = False
    world.connect(1, "me", session_expiry_interval=60)
    world.publish(1, "a", qos=2, packet_id=7)
    world.door.lost(1, world.now)
    world.connect(2, "me", clean_start=False, session_expiry_interval=60)
    assert world.publish(2, "a", qos=2, packet_id=7, duplicate=True) == []
    world.door.acknowledged(world.tokens[0], world.now)
    world.settle()
    assert [type(packet) for packet in world.take(2)] == [PubRecPacket]
    assert len(world.published) == 1


def test_properties_go_through() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a")
    (got,) = world.publish(
        1,
        "a",
        content_type="text/plain",
        response_topic="r",
        correlation_data=b"\x00\x01",
        payload_format_indicator=1,
        user_properties=[("k", "1"), ("k", "2")],
        message_expiry_interval=30,
    )
    assert (got.content_type, got.response_topic, got.correlation_data) == ("text/plain", "r", b"\x00\x01")
    assert got.user_properties == [("k", "1"), ("k", "2")]
    assert (got.payload_format_indicator, got.message_expiry_interval) == (1, 30)


def test_topic_aliases() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a")
    assert payloads(world.publish(1, "a", b"1", topic_alias=4)) == [(b"1", 0, False)]
    assert payloads(world.publish(1, "", b"2", topic_alias=4)) == [(b"2", 0, False)]
    assert world.publish(1, "", b"3", topic_alias=5)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    world.connect(2)
    last = world.publish(2, "a", topic_alias=10_000)[-1]
    assert last.reason_code == DisconnectReasonCode.TOPIC_ALIAS_INVALID


@pytest.mark.parametrize("topic", ["$SYS/x", "$omen/mqtt/topics", "a" * 300])
def test_names_that_cannot_be_published_on(topic: str) -> None:
    world = Harness()
    world.connect(1)
    assert world.publish(1, topic)[-1].reason_code == DisconnectReasonCode.TOPIC_NAME_INVALID
    assert world.published == []


def test_more_than_the_receive_maximum_is_an_error() -> None:
    world = Harness(DoorLimits(receive_max=2))
    world.grants = False
    world.connect(1)
    for number in (1, 2):
        assert world.publish(1, "a", qos=1, packet_id=number) == []
    assert world.publish(1, "a", qos=1, packet_id=3)[-1].reason_code == DisconnectReasonCode.RECEIVE_MAX_EXCEEDED


@pytest.mark.parametrize("more", [{"duplicate": True}, {"subscription_ids": [3]}])
def test_a_client_that_breaks_the_rules_of_publish_is_disconnected(more: dict[str, Any]) -> None:
    world = Harness()
    world.connect(1)
    assert world.publish(1, "a", **more)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    assert world.published == []


def test_which_retained_message_is_the_last_is_decided_when_they_come() -> None:
    """Those with QoS 2 are stored first, and each waits for the one before it: they are published out of order."""
    world = Stored()
    world.holds = True
    world.connect(1, session_expiry_interval=60)
    world.store()
    sent = []
    for number, qos in enumerate((1, 2, 1, 2, 0), 1):
        packet = PublishPacket("a", b"%d" % number, qos=QoS(qos), packet_id=number if qos else None, retain=True)
        world.door.receive(1, packet, V5, world.now + number * 1e-5)
        sent += [one for one in world.door.take() if isinstance(one, Publish)]
    while (world.door.begin_save("c1", world.now)) is not None:
        world.door.saved("c1")
    sent += [one for one in world.door.take() if isinstance(one, Publish)]
    assert [one.message.payload for one in sent] != [b"1", b"2", b"3", b"4", b"5"]
    by_time = sorted(sent, key=lambda one: round(one.at * 1000))
    assert [one.message.payload for one in by_time] == [b"1", b"2", b"3", b"4", b"5"]
    assert len({round(one.at * 1000) for one in sent}) == 5


@pytest.mark.parametrize("is_there", [True, False])
def test_a_message_with_qos_2_that_its_client_is_to_send_again_keeps_its_mark(is_there: bool) -> None:
    """Who has had it already would get it twice."""
    world = Stored()
    world.grants = False
    world.connect(1, "me", session_expiry_interval=60)
    world.publish(1, "a", qos=2)
    if not is_there:
        world.door.lost(1, world.now)
    reason = PubAckReasonCode.UNSPECIFIED_ERROR if is_there else PubAckReasonCode.QUOTA_EXCEEDED
    world.door.refused(world.tokens[0], reason, world.now)
    world.settle()
    world.door.open(2, world.now)
    world.send(2, ConnectPacket("me", clean_start=False, session_expiry_interval=60))
    world.publish(2, "a", qos=2, duplicate=True)
    first, second = world.published
    assert first.mark and first.mark == second.mark
