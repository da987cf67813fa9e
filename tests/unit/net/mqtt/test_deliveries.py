"""What comes to clients: retained messages, wildcards, shares, limits."""

from __future__ import annotations

from mqtt5 import (
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PublishPacket,
    RetainHandling,
    SubAckPacket,
    UnsubAckPacket,
    UnsubscribePacket,
)
from tests.unit.net.mqtt.doors import Harness, Stored, payloads

from omen.net.mqtt.deliveries import REMOVED_S, RETAINED_AT_ONCE
from omen.net.mqtt.outputs import (
    DoorLimits,
    Retained,
)
from omen.net.mqtt.session import ApplicationMessage, SessionLimits


def test_retained_messages_come_with_a_subscription_and_go_with_an_empty_one() -> None:
    world = Harness()
    world.connect(1)
    world.publish(1, "a/b", b"old", qos=1, retain=True)
    world.publish(1, "a/b", b"kept", qos=1, retain=True)
    world.connect(2)
    assert payloads(world.subscribe(2, "a/#", qos=1)) == [(b"kept", 1, True)]
    handling = RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS
    assert payloads(world.subscribe(2, "a/#", qos=1, retain_handling=handling)) == []
    assert payloads(world.subscribe(2, "a/b", qos=1, retain_handling=handling)) == [(b"kept", 1, True)]
    assert payloads(world.subscribe(2, "a/+", retain_handling=RetainHandling.SEND_NEVER)) == []
    world.publish(1, "a/b", b"", qos=1, retain=True)
    world.connect(3)
    assert payloads(world.subscribe(3, "a/b", qos=1)) == []
    assert not world.door.retain(Retained((1, "n"), ApplicationMessage("a/b", b"late", retain=True)))


def test_options_of_a_subscription() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "own", no_local=True)
    world.subscribe(1, "flag", retain_as_published=True, identifier=11)
    world.subscribe(1, "plain", retain_as_published=False)
    assert world.publish(1, "own") == []
    (flagged,) = world.publish(1, "flag", retain=True)
    assert flagged.retain
    assert flagged.subscription_ids == [11]
    assert payloads(world.publish(1, "plain", retain=True)) == [(b"x", 0, False)]


def test_an_expired_message_is_not_delivered_and_what_is_left_of_its_time_is_told() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, "me", session_expiry_interval=100)
    world.subscribe(2, "a", qos=1)
    world.door.lost(2, world.now)
    world.settle()
    world.publish(1, "a", b"short", qos=1, message_expiry_interval=5)
    world.publish(1, "a", b"long", qos=1, message_expiry_interval=50)
    world.now += 20
    world.door.open(3, world.now)
    world.send(3, ConnectPacket("me", session_expiry_interval=100))
    _, got = world.take(3)
    assert (got.payload, got.message_expiry_interval) == (b"long", 30)


def test_wildcards_follow_the_directory() -> None:
    world = Harness()
    world.connect(1)
    world.subscribe(1, "a/+")
    world.door.learn_topics(["a/b", "c", "$x"], fresh=True)
    world.settle()
    assert world.carried == {"a/b"}
    world.connect(2)
    world.subscribe(2, "#")
    assert world.carried == {"a/b", "c"}
    world.send(2, UnsubscribePacket(3, ["#", "no"]))
    (answer,) = world.take(2)
    assert isinstance(answer, UnsubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [0, 17]
    assert world.carried == {"a/b"}


def test_wildcards_match_no_more_than_the_limit() -> None:
    world = Harness(DoorLimits(wildcard_matches=2))
    world.connect(1)
    world.subscribe(1, "#")
    world.door.learn_topics(["a", "b", "c"], fresh=False)
    world.settle()
    assert len(world.carried) == 2
    assert world.door.wishes.beyond == 1


def test_a_client_that_does_not_read_misses_qos_0_and_keeps_qos_1() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2)
    world.subscribe(2, "a", qos=1)
    world.door.pause(2, True, world.now)
    world.publish(1, "a", b"lost")
    world.publish(1, "a", b"kept", qos=1)
    assert world.take(2) == []
    world.door.pause(2, False, world.now)
    world.settle()
    assert payloads(world.take(2)) == [(b"kept", 1, False)]


def test_a_packet_larger_than_the_client_takes_is_left_out() -> None:
    world = Harness()
    world.connect(1)
    world.connect(2, max_packet_size=60)
    world.subscribe(2, "a", qos=1)
    world.publish(1, "a", b"x" * 100, qos=1)
    world.publish(1, "a", b"small", qos=1)
    assert payloads(world.take(2)) == [(b"small", 1, False)]


def shared(members: int = 3) -> Harness:
    world = Harness()
    for number in range(1, members + 1):
        world.connect(number)
        assert isinstance(world.subscribe(number, "$share/g/a/b", qos=1)[0], SubAckPacket)
    world.connect(9)
    return world


def test_of_a_shared_subscription_one_member_gets_each_message() -> None:
    world = shared()
    world.publish(9, "a/b")
    for _ in range(60):
        world.publish(9, "a/b", qos=1)
    counts = [sum(isinstance(packet, PublishPacket) for packet in world.take(number)) for number in (1, 2, 3)]
    assert sum(counts) == 61 and min(counts) > 5
    assert world.carried == {"a/b"}


def test_members_that_are_not_connected_get_messages_only_where_none_is() -> None:
    world = Harness()
    world.connect(1, "away", session_expiry_interval=100)
    world.subscribe(1, "$share/g/a", qos=1)
    world.send(1, DisconnectPacket())
    world.connect(2)
    world.subscribe(2, "$share/g/a", qos=1)
    world.connect(9)
    for _ in range(10):
        world.publish(9, "a", qos=1)
    assert len(world.take(2)) == 10 and world.door.sessions["away"].queued == 0
    world.door.lost(2, world.now)
    world.publish(9, "a", qos=1)
    assert world.door.sessions["away"].queued == 1


def test_shared_and_own_subscriptions_of_a_client_are_apart_and_shared_ones_bring_nothing_retained() -> None:
    world = Harness()
    world.connect(1)
    world.publish(1, "a", b"kept", retain=True)
    assert len(world.subscribe(1, "$share/g/a", qos=0)) == 1
    assert payloads(world.subscribe(1, "a", qos=0)[1:]) == [(b"kept", 0, True)]
    assert payloads(world.publish(1, "a")) == [(b"x", 0, False), (b"x", 0, False)]
    world.send(1, UnsubscribePacket(3, ["$share/g/a"]))
    world.take(1)
    assert payloads(world.publish(1, "a")) == [(b"x", 0, False)]
    assert len(world.door.groups) == 0


def test_a_shared_subscription_with_no_local_is_a_protocol_error() -> None:
    world = Harness()
    world.connect(1)
    assert world.subscribe(1, "$share/g/a", no_local=True)[-1].reason_code == DisconnectReasonCode.PROTOCOL_ERROR


def test_of_a_shared_subscription_one_member_gets_what_two_nodes_published() -> None:
    world = shared()
    for number in range(20):
        message = ApplicationMessage("a/b", b"%d" % number, qos=2, mark=f"door/{number}")
        for publisher in (1, 2):
            world.door.deliver(message, world.now, ("a/b", publisher, 1), number + 1)
    world.settle()
    assert sum(len(payloads(packets)) for packets in world.got.values()) == 20


def flooded() -> Harness:
    """A client that takes one message at a time, and whose queue is half full."""
    world = Harness(DoorLimits(session=SessionLimits(queue_messages=20)))
    world.connect(1, receive_max=1)
    world.subscribe(1, "a", qos=1)
    world.connect(9)
    for _ in range(12):
        world.publish(9, "a", qos=1)
    return world


def test_who_publishes_for_a_client_that_reads_waits_until_its_queue_is_emptier() -> None:
    world = flooded()
    assert world.door.is_busy("a", world.now) and world.door.busy_topics(world.now) == ["a"]
    assert not world.door.is_busy("b", world.now)
    while world.door.sessions["c1"].queued > 5:
        assert world.door.is_busy("a", world.now)
        (packet,) = [one for one in world.take(1) if isinstance(one, PublishPacket)]
        world.now += 0.1
        world.send(1, PubAckPacket(packet.packet_id))
    assert not world.door.is_busy("a", world.now) and world.door.busy_topics(world.now) == []


def test_for_a_client_that_does_not_read_nobody_waits_and_it_is_disconnected_when_its_queue_is_full() -> None:
    world = flooded()
    world.now += 3
    assert not world.door.is_busy("a", world.now)
    for _ in range(10):
        world.publish(9, "a", qos=1)
    assert 1 in world.closed


def test_what_was_in_flight_is_sent_again_as_far_as_the_client_can_have_it() -> None:
    """MQTT-3.3.4-9 holds on a new connection too."""
    world = Harness()
    world.connect(1, "me", session_expiry_interval=60)
    world.subscribe(1, "a", qos=1)
    world.connect(9)
    for payload in (b"1", b"2", b"3"):
        world.publish(9, "a", payload, qos=1)
    world.door.lost(1, world.now)
    world.door.open(2, world.now)
    world.send(2, ConnectPacket("me", clean_start=False, session_expiry_interval=60, receive_max=1))
    for payload in (b"1", b"2", b"3"):
        (sent,) = [packet for packet in world.take(2) if isinstance(packet, PublishPacket)]
        assert sent.payload == payload and sent.duplicate
        world.send(2, PubAckPacket(sent.packet_id))
    assert world.take(2) == []


def test_what_was_in_flight_and_is_too_large_for_the_new_connection_is_left_out() -> None:
    world = Harness()
    world.connect(1, "me", session_expiry_interval=60)
    world.subscribe(1, "a", qos=1)
    world.connect(9)
    for payload in (b"x" * 500, b"y" * 500, b"small"):
        world.publish(9, "a", payload, qos=1)
    world.door.lost(1, world.now)
    world.door.open(2, world.now)
    world.send(2, ConnectPacket("me", clean_start=False, session_expiry_interval=60, max_packet_size=100))
    assert payloads(world.take(2)) == [(b"small", 1, False)]


def test_a_message_with_qos_2_that_is_too_large_does_not_hold_up_the_next() -> None:
    world = Stored()
    world.connect(1, "me", session_expiry_interval=60, receive_max=1, max_packet_size=100)
    world.subscribe(1, "a", qos=2)
    for payload in (b"x" * 500, b"small"):
        world.door.deliver(ApplicationMessage("a", payload, qos=2), world.now)
    world.settle()
    assert payloads(world.take(1)) == [(b"small", 2, False)]


def many_retained(qos: int, payload: bytes = b"x") -> Harness:
    world = Harness(DoorLimits(session=SessionLimits(queue_messages=5, inflight=2)))
    for number in range(20):
        message = ApplicationMessage(f"r/{number:02}", payload, qos=qos, retain=True)
        world.door.retain(Retained((1, "n"), message))
    world.connect(1)
    return world


def test_more_retained_messages_than_a_queue_has_room_for_come_as_the_client_takes_them() -> None:
    world, topics = many_retained(1), list[str]()
    sent = world.subscribe(1, "r/#", qos=1)
    while found := [packet for packet in sent if isinstance(packet, PublishPacket)]:
        topics += [packet.topic for packet in found]
        for packet in found:
            world.send(1, PubAckPacket(packet.packet_id))
        sent = world.take(1)
    assert topics == [f"r/{number:02}" for number in range(20)] and not world.closed


def test_retained_messages_with_qos_0_do_not_come_all_at_once() -> None:
    world = many_retained(0, bytes(RETAINED_AT_ONCE // 4))
    got = len(payloads(world.subscribe(1, "r/#", qos=0)))
    assert got == 4
    assert payloads(world.subscribe(1, "r/#", qos=0)) == [], "nor by subscribing again and again"
    for _ in range(4):
        world.door.tick(world.now)
        world.settle()
        got += len(payloads(world.take(1)))
    assert got == 20


def test_retained_messages_that_are_over_make_room() -> None:
    world = Harness(DoorLimits(retained_bytes=1000))
    for number in range(4):
        message = ApplicationMessage(f"r/{number}", bytes(100), retain=True, expires_at=2000.0)
        assert world.door.retain(Retained((1000, "n"), message))
    late = Retained((1_000_000, "n"), ApplicationMessage("s", bytes(100), retain=True))
    assert not world.door.retain(late)
    assert not world.door.retain(Retained((1000, "n"), ApplicationMessage("t" * 200, b"", retain=True)))
    world.door.retain(Retained((1001, "n"), ApplicationMessage("r/0", b"", retain=True)))
    world.door.tick(2001.0)
    assert list(world.door.retained) == ["r/0"] and world.door.retain(late)
    world.door.tick(REMOVED_S + 2100.0)
    assert list(world.door.retained) == ["s"] and world.door.retained_bytes == late.message.size
