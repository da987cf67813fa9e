"""Sessions and wills that outlive connections and nodes."""

from __future__ import annotations

from mqtt5 import (
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    Will,
)
from tests.unit.net.mqtt.doors import Harness, Stored, payloads

from omen.net.groups import Member
from omen.net.mqtt.keeping import CATCH_UP_S, Recent
from omen.net.mqtt.outputs import Carry
from omen.net.mqtt.session import ApplicationMessage


def test_a_will_is_published_when_the_client_is_lost_and_not_when_it_says_goodbye() -> None:
    world = Harness()
    will = Will("w", payload=b"gone", qos=QoS.AT_LEAST_ONCE)
    world.connect(1, will=will)
    world.send(1, DisconnectPacket())
    assert world.published == []
    world.connect(2, will=will)
    world.send(2, DisconnectPacket(reason_code=DisconnectReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
    world.connect(3, will=will)
    world.door.lost(3, world.now)
    world.settle()
    assert [one.payload for one in world.published] == [b"gone", b"gone"]


def test_a_will_with_a_delay_waits_and_a_client_that_comes_back_takes_it_back() -> None:
    world = Harness()
    will = Will("w", payload=b"gone", will_delay_interval=10)
    for back in (True, False):
        world.connect(1, "me", will=will, session_expiry_interval=60)
        world.door.lost(1, world.now)
        world.settle()
        if back:
            world.connect(2, "me", clean_start=False, session_expiry_interval=60)
            world.send(2, DisconnectPacket())
        world.now += 11
        world.door.tick(world.now)
        world.settle()
    assert len(world.published) == 1


def offline_with_one_message() -> Stored:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    here.send(1, DisconnectPacket())
    here.connect(2)
    here.publish(2, "a", b"owed", qos=1)
    here.door.save_soon()
    here.settle()
    return here


def test_a_session_moves_to_another_node() -> None:
    here = offline_with_one_message()
    here.write(here.door.release("me", here.now) or [])
    here.settle()
    assert here.carried == set()
    there = here.crash()
    hello, owed = there.come(1, "me")
    assert hello.session_present
    assert owed.payload == b"owed"
    assert there.carried == {"a"}


def test_a_session_survives_the_crash_of_its_node_with_its_queue_and_subscriptions() -> None:
    there = offline_with_one_message().crash()
    hello, owed = there.come(1, "me")
    assert hello.session_present and owed.payload == b"owed"
    there.send(1, PubAckPacket(owed.packet_id))
    there.door.save_soon()
    there.settle()
    (hello,) = there.crash().come(1, "me")
    assert hello.session_present, "what the client has acknowledged does not come again"


def test_suback_comes_when_the_subscription_is_stored() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.holds = True
    assert here.subscribe(1, "a") == []
    here.store()
    assert [type(packet) for packet in here.take(1)] == [SubAckPacket]
    assert [one.pattern for one in here.stored("me").head.subscriptions] == ["a"]  # type: ignore[union-attr]


def test_a_message_with_qos_2_comes_once_however_often_nodes_crash() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    here.connect(2)
    here.publish(2, "a", b"once", qos=2)
    (first,) = here.take(1)
    there = here.crash()  # the client has received it, and its PUBREC was lost
    _, again = there.come(1, "me")
    assert again.duplicate and again.packet_id == first.packet_id
    there.send(1, PubRecPacket(first.packet_id))
    assert [type(packet) for packet in there.take(1)] == [PubRelPacket]
    third = there.crash()  # the client was told to release it
    _, release = third.come(1, "me")
    assert isinstance(release, PubRelPacket) and release.packet_id == first.packet_id


def test_a_message_that_came_twice_over_a_crash_is_queued_once_and_one_that_was_missed_is_queued() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=1)
    here.send(1, DisconnectPacket())
    stream = ("a", 7, 1)
    here.door.deliver(ApplicationMessage("a", b"one", qos=1), here.now, stream, 1)
    here.door.save_soon()
    here.settle()
    here.door.deliver(ApplicationMessage("a", b"two", qos=1), here.now, stream, 2)  # not stored before the crash
    there = here.crash()
    there.door.remember(ApplicationMessage("a", b"one", qos=1), stream, 1, there.now)
    there.door.remember(ApplicationMessage("a", b"two", qos=1), stream, 2, there.now)
    _, *owed = there.come(1, "me")
    assert [packet.payload for packet in owed] == [b"one", b"two"]
    there.door.deliver(ApplicationMessage("a", b"two", qos=1), there.now, stream, 2)  # from a window
    there.settle()
    assert there.take(1) == []


def test_a_crashed_node_s_client_has_its_will_published_and_its_session_queues_on() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10, will=Will("w", payload=b"gone"))
    here.subscribe(1, "a", qos=1)
    there = here.crash()
    stored = there.stored("me")
    assert stored is not None
    there.door.adopt(stored, there.now)
    there.settle()
    assert [message.payload for message in there.published] == [b"gone"]
    there.connect(2)
    there.publish(2, "a", b"later", qos=1)
    assert there.door.sessions["me"].queued == 1
    there.now += 11
    there.door.tick(there.now)
    there.settle()
    assert there.door.sessions.keys() == {"c2"} and there.stored("me") is None


def test_a_client_without_a_session_but_with_a_will_leaves_nothing_behind() -> None:
    here = Stored()
    here.connect(1, "me", will=Will("w", payload=b"gone"))
    assert here.stored("me") is not None
    here.send(1, DisconnectPacket())
    assert here.records == {}


def test_only_a_normal_disconnection_keeps_a_will_from_being_published() -> None:
    for reason, wills in ((DisconnectReasonCode.NORMAL_DISCONNECTION, 0), (DisconnectReasonCode.UNSPECIFIED_ERROR, 1)):
        world = Harness()
        world.connect(1, will=Will("w", payload=b"gone"))
        world.send(1, DisconnectPacket(reason_code=reason))
        assert len(world.published) == wills


def test_a_message_with_qos_2_that_two_nodes_published_comes_once() -> None:
    """The first crashes when it has published it, before the client hears of that."""
    reader = Stored()
    reader.connect(1, "reader", session_expiry_interval=10)
    reader.subscribe(1, "a", qos=2)
    here = Stored()
    here.grants = False
    here.connect(2, "me", session_expiry_interval=10)
    assert here.publish(2, "a", b"once", qos=2) == []
    there = here.crash()
    there.come(2, "me")
    (received,) = there.publish(2, "a", b"once", qos=2, duplicate=True)
    assert isinstance(received, PubRecPacket)
    (first,), (second,) = here.published, there.published
    assert first.mark and first.mark == second.mark
    for sequence, message in enumerate((first, second), 1):
        reader.door.deliver(message, reader.now, ("a", sequence, 1), 1)
    reader.settle()
    assert [payload for payload, *_ in payloads(reader.take(1))] == [b"once"]
    moved = reader.crash()
    moved.come(1, "reader")
    moved.door.deliver(second, moved.now, ("a", 2, 1), 1)
    moved.settle()
    assert [payload for payload, *_ in payloads(moved.take(1))] == [], "marks move with the session"


def test_a_message_with_qos_2_is_published_when_its_mark_is_stored() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.holds = True
    here.publish(1, "a", qos=2)
    assert here.published == []
    here.store()
    assert [message.topic for message in here.published] == ["a"]


def test_the_next_message_under_the_same_number_is_another() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    for _ in range(2):
        here.publish(1, "a", b"same", qos=2, packet_id=3)
        here.send(1, PubRelPacket(3))
    first, second = here.published
    assert first.mark != second.mark


def test_what_a_session_missed_comes_whatever_came_first() -> None:
    """The node it moves to has heard of the fifth message, then finds the third and the fourth in a window."""
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=1)
    stream = ("a", 7, 1)
    for sequence in (1, 2):
        here.door.deliver(ApplicationMessage("a", b"%d" % sequence, qos=1), here.now, stream, sequence)
    here.settle()
    for packet in here.take(1):
        here.send(1, PubAckPacket(packet.packet_id))
    here.door.save_soon()
    here.settle()
    there = here.crash()
    there.come(1, "me")
    kept = [Recent(there.now, ApplicationMessage("a", b"%d" % number, qos=1), stream, number) for number in range(1, 6)]
    there.door.deliver(kept[4].message, there.now, stream, 5)
    for _ in range(2):
        there.door.catch_up("me", kept, there.now)
    there.settle()
    assert [payload for payload, *_ in payloads(there.take(1))] == [b"5", b"3", b"4"]
    there.now += CATCH_UP_S
    there.door.catch_up("me", [Recent(there.now, ApplicationMessage("a", b"late", qos=1), stream, 6)], there.now)
    there.settle()
    assert there.take(1) == [], "after that time a session takes what comes, no more"


def test_a_message_that_others_hold_for_too_long_does_not_come_again() -> None:
    """It was delivered, and done, long before its session was stored the last time."""
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    there = here.crash()
    stream = ("a", 7, 1)
    for sequence, (payload, at) in enumerate([(b"done", here.now - 60), (b"missed", here.now + 1)], 1):
        there.door.remember(ApplicationMessage("a", payload, qos=1), stream, sequence, there.now, at)
    assert [payload for payload, *_ in payloads(there.come(1, "me"))] == [b"missed"]


STREAM = ("a", 7, 1)


def once(number: int) -> ApplicationMessage:
    """A message with QoS 2 of a publisher whose session is not stored: it has no mark."""
    return ApplicationMessage("a", b"%d" % number, qos=2)


def receive_all(world: Stored, number: int) -> list[bytes]:
    """What a client got, which it receives and completes."""
    packets = world.take(number)
    for packet in packets:
        if isinstance(packet, PublishPacket):
            world.send(number, PubRecPacket(packet.packet_id or 0))
            world.send(number, PubCompPacket(packet.packet_id or 0))
    world.take(number)
    return [payload for payload, *_ in payloads(packets)]


def reader() -> Stored:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=2)
    return here


def test_what_a_session_found_in_a_window_does_not_come_again_where_it_had_nothing_before() -> None:
    there = reader().crash()
    there.come(1, "me")
    there.door.catch_up("me", [Recent(there.now, once(1), STREAM, 1)], there.now)
    there.door.deliver(once(1), there.now, STREAM, 1)
    there.settle()
    assert receive_all(there, 1) == [b"1"]


def test_what_a_session_had_while_it_caught_up_does_not_come_again_where_it_moves_once_more() -> None:
    here = reader()
    for number in (1, 2):
        here.door.deliver(once(number), here.now, STREAM, number)
    here.settle()
    assert receive_all(here, 1) == [b"1", b"2"]
    here.write(here.door.release("me", here.now) or [])
    there = here.crash()
    there.come(1, "me")
    for number in (3, 6, 7):
        there.door.deliver(once(number), there.now, STREAM, number)
    there.settle()
    assert receive_all(there, 1) == [b"3", b"6", b"7"]
    there.write(there.door.release("me", there.now) or [])
    third = there.crash()
    for number in range(1, 9):
        third.door.remember(once(number), STREAM, number, third.now)
    owed = third.come(1, "me")
    assert [payload for payload, *_ in payloads(owed)] == [b"4", b"5", b"8"]


def test_what_a_crashed_node_may_not_have_given_to_members_that_went_with_it_goes_to_others() -> None:
    """With QoS 1 alone, and of the time in which it may have crashed."""
    here, group = Stored(), "$share/g/a"
    here.connect(1, "ann")
    here.subscribe(1, group, qos=2)
    gone, ours = ((group, "gone"),), ((group, "ann"),)
    for sequence, (at, qos, shares) in enumerate(((80, 1, gone), (100, 1, gone), (101, 2, gone), (102, 1, ours)), 1):
        message = ApplicationMessage("a", str(sequence).encode(), qos=qos, shares=shares)
        here.door.remember(message, ("a", 7, 1), sequence, at)
        here.door.deliver(message, at, ("a", 7, 1), sequence)
    here.settle()
    assert payloads(here.take(1)) == [(b"4", 1, False)]
    here.door.choose_again({group: (Member("gone"),)}, 99.0, 106.0)
    here.settle()
    assert payloads(here.take(1)) == [(b"2", 1, False)]


def test_what_was_published_before_comes_to_sessions_that_moved_and_not_with_other_wildcards() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "mine/#")
    there = here.crash()
    there.come(1, "me", clean_start=False)
    there.connect(2, "new")
    there.subscribe(2, "new/#")
    there.door.learn_topics(["mine/a", "new/a"], fresh=False, now=there.now)
    asked = {topic: one.replay for one in there.door.take() if isinstance(one, Carry) for topic in one.topics}
    assert asked == {"mine/a": True, "new/a": False}
