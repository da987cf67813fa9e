"""The state machine without a socket: connections, sessions, subscriptions, and who may what."""

from __future__ import annotations

import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubCompPacket,
    PubRecPacket,
    PubRelPacket,
    SubAckPacket,
    SubAckReasonCode,
    UnsubscribePacket,
)
from tests.unit.net.mqtt.doors import Harness, payloads

from omen.net.mqtt.outputs import (
    DoorLimits,
    Rights,
)
from omen.net.mqtt.session import SessionLimits


def test_connect_subscribe_publish() -> None:
    world = Harness()
    hello = world.connect(1)
    assert isinstance(hello, ConnAckPacket)
    assert not hello.session_present
    world.connect(2)
    (answer,) = world.subscribe(2, "room/+", qos=1)
    assert isinstance(answer, SubAckPacket)
    assert answer.reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]
    world.subscribe(2, "room/tea", qos=0)
    (ack,) = world.publish(1, "room/tea", qos=1)
    assert isinstance(ack, PubAckPacket)
    # two of its subscriptions match: one copy, with the highest QoS that was granted
    assert payloads(world.take(2)) == [(b"x", 1, False)]


def test_an_assigned_client_id_is_told_and_a_second_connect_is_an_error() -> None:
    world = Harness()
    world.door.open(1, world.now)
    world.send(1, ConnectPacket("", clean_start=True))
    (hello,) = world.take(1)
    assert hello.assigned_client_id
    world.send(1, ConnectPacket("a", clean_start=True))
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR
    assert world.closed == {1}


def test_qos_2_to_a_client_and_again_after_a_break() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, "me", clean_start=False, session_expiry_interval=100)
    world.subscribe(2, "a", qos=2)
    world.publish(1, "a", b"1", qos=2, packet_id=1)
    (first,) = world.take(2)
    world.door.lost(2, world.now)
    world.settle()
    world.publish(1, "a", b"2", qos=2, packet_id=2)  # while it is away
    hello = world.connect(3, "me", clean_start=False, session_expiry_interval=100)
    assert hello.session_present
    assert world.take(3) == []  # all is in the first write
    world.door.lost(3, world.now)
    world.settle()
    world.door.open(4, world.now)
    world.send(4, ConnectPacket("me", clean_start=False, session_expiry_interval=100))
    hello, resent, second = world.take(4)
    assert (resent.payload, resent.duplicate, resent.packet_id) == (b"1", True, first.packet_id)
    assert (second.payload, second.duplicate) == (b"2", True)
    world.send(4, PubRecPacket(resent.packet_id))
    assert isinstance(world.take(4)[0], PubRelPacket)
    world.send(4, PubCompPacket(resent.packet_id))
    assert world.door.sessions["me"].in_flight == 1


def test_receive_maximum_is_kept_and_the_queue_is_bounded() -> None:
    world = Harness(DoorLimits(session=SessionLimits(queue_messages=3)))
    world.connect(1)
    world.connect(2, "me", receive_max=2, session_expiry_interval=50)
    world.subscribe(2, "a", qos=1)
    for number in range(1, 6):
        world.publish(1, "a", b"%d" % number, qos=1, packet_id=number)
    sent = world.take(2)
    assert payloads(sent) == [(b"1", 1, False), (b"2", 1, False)]
    world.send(2, PubAckPacket(sent[0].packet_id))
    assert payloads(world.take(2)) == [(b"3", 1, False)]
    world.publish(1, "a", b"6", qos=1)
    world.publish(1, "a", b"7", qos=1)
    assert world.take(2)[-1].reason_code == DisconnectReasonCode.QUOTA_EXCEEDED
    assert world.door.sessions["me"].dropped == 1


def test_a_client_that_falls_silent_is_closed() -> None:
    world = Harness()
    world.connect(1, keep_alive=10)
    world.now += 14
    world.door.tick(world.now)
    world.settle()
    assert not world.closed
    world.now += 2
    world.door.tick(world.now)
    world.settle()
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.KEEP_ALIVE_TIMEOUT
    assert world.closed == {1}


def test_a_connection_on_which_nobody_connects_is_closed() -> None:
    world = Harness()
    world.door.open(1, world.now)
    world.now += 11
    world.door.tick(world.now)
    world.settle()
    assert world.closed == {1}


def test_a_session_ends_when_it_expires_and_its_topics_are_given_up() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    assert world.carried == {"a"}
    world.door.lost(1, world.now)
    world.settle()
    assert world.carried == {"a"}
    world.now += 11
    world.door.tick(world.now)
    world.settle()
    assert world.carried == set()
    assert not world.connect(2, "me", clean_start=False).session_present


def test_a_clean_start_ends_the_former_session() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    world.send(1, DisconnectPacket())
    assert not world.connect(2, "me", clean_start=True).session_present
    assert world.carried == set()


def test_a_client_id_is_taken_over() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=10)
    world.subscribe(1, "a")
    hello = world.connect(2, "me", clean_start=False, session_expiry_interval=10)
    assert hello.session_present
    assert world.take(1)[-1].reason_code == DisconnectReasonCode.SESSION_TAKEN_OVER
    assert world.closed == {1}
    world.connect(3)
    world.publish(3, "a")
    assert payloads(world.take(2)) == [(b"x", 0, False)]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("$omen/#", SubAckReasonCode.TOPIC_FILTER_INVALID),
        ("$share/g", SubAckReasonCode.TOPIC_FILTER_INVALID),
        ("$share//a", SubAckReasonCode.TOPIC_FILTER_INVALID),
    ],
)
def test_filters_that_are_refused(pattern: str, code: SubAckReasonCode) -> None:
    world = Harness()
    world.connect(1)
    (answer,) = world.subscribe(1, pattern)
    assert answer.reason_codes == [code]
    assert world.carried == set()


def test_who_may_what() -> None:
    def authenticate(client: str, user: str | None, password: bytes | None) -> ConnAckReasonCode:
        return ConnAckReasonCode.SUCCESS if password == b"right" else ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD

    rights = Rights(authenticate, lambda user, topic: topic == user, lambda user, pattern: pattern != "secret")
    world = Harness(rights=rights)
    refused = world.connect(1, username="ann", password=b"wrong")
    assert refused.reason_code == ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert world.closed == {1}
    world.connect(2, username="ann", password=b"right")
    (denied,) = world.publish(2, "bob", qos=1)
    assert int(denied.reason_code) == 0x87
    (taken,) = world.publish(2, "ann", qos=1)
    assert int(taken.reason_code) == 0
    (answer,) = world.subscribe(2, "secret")
    assert answer.reason_codes == [SubAckReasonCode.NOT_AUTHORIZED]
    assert len(world.published) == 1


def test_subscriptions_and_connections_of_a_node_are_bounded_and_others_are_unaffected() -> None:
    world = Harness(DoorLimits(all_subscriptions=3, connections=2))
    world.connect(1)
    for pattern in ("a/+", "b/#", "c"):
        assert world.subscribe(1, pattern, qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
    assert world.subscribe(1, "d/+")[0].reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
    assert world.subscribe(1, "c", qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]
    world.connect(2)
    assert world.connect(3).reason_code == ConnAckReasonCode.SERVER_BUSY
    assert world.subscribe(2, "e")[0].reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
    world.send(1, UnsubscribePacket(3, ["a/+"]))
    assert world.subscribe(2, "e", qos=0)[0].reason_codes == [SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]


def test_a_client_that_cannot_be_heard_is_not_silent() -> None:
    """What it published waits, so it is not read from; its PINGREQ is there, but not seen."""
    world = Harness()
    world.connect(1, keep_alive=10)
    world.door.hold(1, True, world.now)
    world.now += 100
    world.door.tick(world.now)
    world.settle()
    assert 1 not in world.closed
    world.door.hold(1, False, world.now)
    for seconds, is_closed in ((14, False), (2, True)):
        world.now += seconds
        world.door.tick(world.now)
        world.settle()
        assert (1 in world.closed) == is_closed
