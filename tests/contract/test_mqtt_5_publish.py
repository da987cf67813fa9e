"""MQTT 5: PUBLISH and its acknowledgements (sections 3.3 to 3.7)."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import (
    PingReqPacket,
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    RetainHandling,
)
from tests.contract.mqtt_5_table import TABLE, pair, published
from tests.contract.mqtt_table import Check, Wire, framed, text

from omen.net.mqtt.topics import is_valid_filter, matches

holds = TABLE.holds


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


@pytest.mark.parametrize("check", TABLE.checks_of(__name__), ids=lambda check: check.__name__)
def test_a_statement_of_mqtt_5_holds(check: Check) -> None:
    check()
