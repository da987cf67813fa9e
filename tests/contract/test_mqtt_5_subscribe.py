"""MQTT 5: SUBSCRIBE to DISCONNECT (sections 3.8 to 3.15)."""

from __future__ import annotations

import pytest
from mqtt5 import (
    DisconnectPacket,
    DisconnectReasonCode,
    PingReqPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
)
from tests.contract.mqtt_5_table import TABLE, pair, published
from tests.contract.mqtt_table import Check, Wire, framed, text

holds = TABLE.holds


@holds("3.8.3-2", "3.10.3-2", "3.8.3-5", "3.3.2-14")
def requests_that_say_nothing_or_too_much_close_the_connection() -> None:
    for data in (
        framed(0x82, b"\0\1\0"),
        framed(0xA2, b"\0\1\0"),
        framed(0x82, b"\0\1\0" + text("a") + b"\xc0" + text("b") + b"\0"),
        framed(0x30, text("a") + b"\x06\x08" + text("r/+")),
    ):
        assert Wire().is_closed_by(data), data


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


@pytest.mark.parametrize("check", TABLE.checks_of(__name__), ids=lambda check: check.__name__)
def test_a_statement_of_mqtt_5_holds(check: Check) -> None:
    check()
