"""Sessions whose nodes have all crashed, wills that are promised, and messages that come late."""

from __future__ import annotations

from mqtt5 import ConnAckPacket, ConnectPacket, PubRecPacket, QoS, Will
from tests.unit.net.mqtt.doors import Stored, payloads

from omen.net.groups import Member
from omen.net.mqtt.codec import V5
from omen.net.mqtt.keeping import Recent
from omen.net.mqtt.session import AGAIN_S, SEEN_AT_MOST, SEEN_S, ApplicationMessage

STREAM = ("a", 7, 1)


def test_connack_comes_when_the_will_is_stored_and_nothing_before_it() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    here.subscribe(1, "a", qos=1)
    here.holds = True
    here.door.open(2, here.now)
    asked = ConnectPacket("me", clean_start=False, session_expiry_interval=10, will=Will("w", payload=b"gone"))
    here.door.receive(2, asked, V5, here.now)
    here.door.deliver(ApplicationMessage("a", b"0"), here.now)
    here.door.deliver(ApplicationMessage("a", b"1", qos=1), here.now)
    here.settle()
    assert here.take(2) == []
    here.store()
    assert isinstance(here.take(2)[0], ConnAckPacket)
    stored = here.stored("me")
    assert stored is not None and stored.head.will is not None


def test_a_message_with_qos_2_that_nodes_held_which_crashed_since_is_published_again_under_its_mark() -> None:
    """PUBREC was lost with the whole cluster, and so were the windows; after a while marks are forgotten."""
    for later, published in ((AGAIN_S - 1, 1), (AGAIN_S + 1, 0)):
        here = Stored()
        here.connect(1, "me", session_expiry_interval=3600)
        here.publish(1, "a", b"once", qos=2)
        there = here.crash()
        there.now += later
        there.come(1, "me")
        (received,) = there.publish(1, "a", b"once", qos=2, duplicate=True)
        assert isinstance(received, PubRecPacket)
        assert [one.mark for one in there.published] == [here.published[0].mark] * published


def test_marks_are_remembered_by_time_and_move_with_a_session_however_many_there_are() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=10)
    session = here.door.sessions["me"]
    marks = [f"n{number % 3}#ab/{number * 7}" for number in range(2000)] + ["of an application"]
    assert all(session.sees(mark, here.now) for mark in marks)
    here.write(here.door.release("me", here.now) or [])
    assert sum(map(len, here.records.values())) < 5 * len(marks)
    there = here.crash()
    there.come(1, "me")
    session = there.door.sessions["me"]
    assert not any(session.sees(mark, there.now) for mark in marks)
    for number in range(2 * SEEN_AT_MOST):
        session.sees(f"n/{number}", there.now)
    assert len(session.seen(there.now)) == SEEN_AT_MOST
    assert session.sees("n/x", there.now + SEEN_S + 1) and len(session.seen(there.now + SEEN_S + 1)) == 1


def test_what_a_gap_is_told_of_comes_late_to_those_alone_that_lack_it() -> None:
    """One session was there all along and one came with a position; a node that is told anew hears of old gaps."""
    here = Stored()
    for number, name in ((1, "lasting"), (2, "fleeting")):
        here.connect(number, name, session_expiry_interval=10 if name == "lasting" else 0)
        here.subscribe(number, "a", qos=1)
    messages = {sequence: ApplicationMessage("a", b"%d" % sequence, qos=1) for sequence in range(1, 6)}
    here.door.deliver(messages[1], here.now, STREAM, 1)
    for first, last, told in ((1, 1, []), (2, 3, [b"2", b"3"]), (2, 3, [])):
        here.settle()
        here.got.clear()
        lacking = here.door.lacking(STREAM, first, last)
        if told:
            here.door.deliver(messages[4], here.now, STREAM, 4)  # meanwhile the stream goes on
        here.settle()
        here.got.clear()
        for sequence in range(first, last + 1):
            here.door.deliver_late(messages[sequence], STREAM, sequence, lacking, here.now)
        here.settle()
        assert [[one for one, *_ in payloads(here.take(number))] for number in (1, 2)] == [told, told]


def test_what_a_gap_held_for_a_share_reaches_one_member_and_none_a_second_time() -> None:
    """An application published it, so every door chooses; a gap is told again after the first member has gone."""
    here, there = Stored(), Stored()
    for door, name in ((here, "ann"), (there, "bob")):
        door.connect(1, name, session_expiry_interval=10)
        door.subscribe(1, "$share/g/a", qos=1)
    members = (Member("ann", is_lasting=True), Member("bob", is_lasting=True))
    for door in (here, there):
        door.door.groups.drop(door.door.owner)
        door.door.groups.tell("n1", "$share/g/a", members)
    got: dict[str, list[bytes]] = {"ann": [], "bob": []}
    choose = here.door.groups.choose
    last = max(one for one in range(20) if choose("$share/g/a", f"$share/g/a|{STREAM}|{one}") == "bob")
    for is_again in (False, True):
        for door, name in ((here, "ann"), (there, "bob")):
            lacking = door.door.lacking(STREAM, 1, last)
            for sequence in range(1, last + 1):
                message = ApplicationMessage("a", b"%d" % sequence, qos=1)
                door.door.deliver_late(message, STREAM, sequence, lacking, door.now)
            door.settle()
            got[name] += [payload for payload, *_ in payloads(door.take(1))]
            door.door.groups.tell("n1", "$share/g/a", members[:1] if not is_again else members)
        assert sorted(got["ann"] + got["bob"], key=int) == [b"%d" % sequence for sequence in range(1, last + 1)]
        assert got["ann"] and got["bob"]


def member(name: str) -> Stored:
    """A door with one client in a share."""
    here = Stored()
    here.connect(1, name, session_expiry_interval=10)
    here.subscribe(1, "$share/g/a/+", qos=2)
    return here


def test_who_publishes_says_which_member_of_a_share_gets_a_message_and_that_one_finds_it_after_a_crash() -> None:
    here = member("me")
    message = here.door.address(ApplicationMessage("a/b", b"mine", qos=2))
    assert message.shares == (("$share/g/a/+", "me"),)
    there = here.crash()
    other = ApplicationMessage("a/b", b"of another", qos=2, shares=(("$share/g/a/+", "you"),))
    there.door.remember(message, ("a/b", 7, 1), 1, there.now)
    there.door.remember(other, ("a/b", 7, 1), 2, there.now)
    assert [payload for payload, *_ in payloads(there.come(1, "me"))] == [b"mine"]
    there.door.deliver(other, there.now, ("a/b", 7, 1), 3)
    there.door.catch_up("me", [Recent(there.now, message, ("a/b", 7, 1), 1)], there.now)
    there.settle()
    assert payloads(there.take(1)) == []


def test_a_message_with_qos_2_goes_to_the_same_member_of_a_share_when_another_node_publishes_it_again() -> None:
    here = member("me")
    here.grants = False
    here.connect(2, "publisher", session_expiry_interval=10)
    here.publish(2, "a/b", b"once", qos=2)
    there = here.crash()
    there.grants = False
    there.connect(3, "newcomer")
    there.subscribe(3, "$share/g/a/+", qos=2)
    there.come(2, "publisher")
    there.publish(2, "a/b", b"once", qos=2, duplicate=True)
    assert here.published[0].shares == there.published[0].shares == (("$share/g/a/+", "me"),)


def test_a_will_that_two_nodes_publish_comes_once() -> None:
    reader = Stored()
    reader.connect(1, "reader", session_expiry_interval=10)
    reader.subscribe(1, "w", qos=1)
    here = Stored()
    here.connect(2, "me", session_expiry_interval=10, will=Will("w", payload=b"gone", qos=QoS(1)))
    there = here.crash()
    stored = there.stored("me")
    assert stored is not None
    here.door.lost(2, here.now)  # and the node crashes before it has stored that
    here.settle()
    there.door.adopt(stored, there.now)
    there.settle()
    assert len(here.published) == len(there.published) == 1
    for place, message in enumerate((*here.published, *there.published), 1):
        reader.door.deliver(message, reader.now, ("w", place, 1), 1)
    reader.settle()
    assert [payload for payload, *_ in payloads(reader.take(1))] == [b"gone"]
