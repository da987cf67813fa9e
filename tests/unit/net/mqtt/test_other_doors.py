"""When stored sessions can be read after a start, and which doors are there."""

from __future__ import annotations

from omen.net.groups import Member
from omen.net.mqtt.other_doors import OPEN_LONG_S, SETTLE_AT_MOST_S, SETTLED_S, SILENT_S, OtherDoors, new_door
from omen.net.mqtt.records import DoorHere, GroupMembers
from omen.net.mqtt.shares import Shares
from omen.protocol.membership.ring import place_of

START = 1000.0


def begun(*writers: str) -> OtherDoors:
    doors = OtherDoors("n0#a", START, Shares())
    doors.writers = frozenset(map(place_of, writers))
    return doors


def test_a_door_without_records_of_others_waits_for_nobody() -> None:
    assert begun().is_settled(START)


def test_where_another_door_was_open_all_along_nobody_is_waited_for() -> None:
    doors = begun("n1", "n2")
    doors.hear(DoorHere("n1#b", since=START - OPEN_LONG_S - 1), START)
    assert doors.is_settled(START)


def test_where_all_have_begun_anew_those_that_wrote_something_are_waited_for_and_have_time_to_tell_it() -> None:
    doors = begun("n1", "n2")
    for number in (1, 2):
        assert not doors.is_settled(START + number)
        doors.hear(DoorHere(f"n{number}#b", since=START), START + number)
    assert not doors.is_settled(START + 2)
    assert not doors.is_settled(START + 1 + SETTLED_S - 0.1)
    assert doors.is_settled(START + 2 + SETTLED_S)


def test_one_that_does_not_come_back_is_not_waited_for_for_ever() -> None:
    doors = begun("gone")
    assert not doors.is_settled(START + SETTLE_AT_MOST_S - 0.1)
    assert doors.is_settled(START + SETTLE_AT_MOST_S)


def test_a_door_is_there_until_it_is_silent_closes_or_begins_anew() -> None:
    doors = begun()
    assert doors.hear(DoorHere("n1#b"), START) and not doors.hear(DoorHere("n1#b"), START)
    assert doors.is_there("n1#b", START + SILENT_S - 1) and not doors.is_there("n1#b", START + SILENT_S)
    doors.hear(DoorHere("n1#b", is_closing=True), START)
    assert not doors.is_there("n1#b", START + 1)
    assert doors.hear(DoorHere("n1#c"), START)
    assert not doors.is_there("n1#b", START) and doors.is_there("n1#c", START) and doors.is_there("n0#a", START)


def test_a_door_that_was_not_heard_of_yet_is_there_unless_its_node_has_begun_anew_since() -> None:
    """A session that it has just taken up must not be adopted, nor its will published."""
    doors = begun()
    first, second, third = (new_door("n1", START + number) for number in range(3))
    doors.hear(DoorHere(second), START)
    assert doors.is_there(third, START) and not doors.is_there(first, START)
    assert not doors.is_there(third, START + SILENT_S), "it has had time to be heard of"


def test_a_client_that_comes_to_another_door_is_noted() -> None:
    doors = begun()
    assert not doors.has_come("me", START)
    doors.note_client("me", START + 1)
    assert doors.has_come("me", START) and not doors.has_come("me", START + 2)


GROUP = "$share/g/a"
ANN = {GROUP: (Member("ann"),)}


def with_shares() -> tuple[OtherDoors, Shares]:
    shares = Shares()
    return OtherDoors("n0#a", START, shares), shares


def test_what_a_door_said_before_it_ended_makes_no_members_when_it_comes_late() -> None:
    doors, shares = with_shares()
    doors.hear(DoorHere("n1#b"), START)
    doors.hear(DoorHere("n1#c"), START)  # its node was killed, and has begun anew
    doors.hear_groups(GroupMembers("n1#b", ANN), START)
    assert len(shares) == 0
    doors.hear(DoorHere("n1#c", is_closing=True), START)
    doors.hear_groups(GroupMembers("n1#c", ANN), START)
    assert len(shares) == 0


def test_members_of_a_door_that_never_says_it_is_there_do_not_stay() -> None:
    doors, shares = with_shares()
    doors.hear_groups(GroupMembers("n1#b", ANN), START)  # from a window, when its node had crashed
    doors.miss(START + SILENT_S - 1)
    assert len(shares) == 1
    doors.miss(START + SILENT_S)
    assert len(shares) == 0


def test_who_goes_with_a_door_that_falls_silent_or_begins_anew_is_told_once() -> None:
    doors, _ = with_shares()
    doors.hear(DoorHere("n1#b"), START)
    doors.hear_groups(GroupMembers("n1#b", ANN), START + 1)
    assert doors.miss(START + SILENT_S) == [(START, ANN)] and doors.miss(START + SILENT_S) == []
    doors.hear(DoorHere("n2#b"), START)
    doors.hear_groups(GroupMembers("n2#b", ANN), START + 1)
    doors.hear(DoorHere("n2#c"), START + 2)
    assert doors.miss(START + 3) == [(START, ANN)]


def test_a_client_that_begins_anew_at_another_door_is_no_member_elsewhere() -> None:
    doors, shares = with_shares()
    for door in ("n1#b", "n2#b"):
        doors.hear_groups(GroupMembers(door, ANN), START)
    doors.end_client("ann", "n2")
    assert shares.nodes == {"n2#b"}


def test_what_a_door_said_before_its_node_began_anew_does_not_end_the_new_one() -> None:
    doors, shares = with_shares()
    doors.hear(DoorHere("n1#c"), START)
    doors.hear_groups(GroupMembers("n1#c", ANN), START)
    assert not doors.hear(DoorHere("n1#b"), START + 1), "it comes late"
    assert doors.is_there("n1#c", START + 1) and not doors.is_there("n1#b", START + 1)
    assert shares.nodes == {"n1#c"} and doors.miss(START + 1) == []
