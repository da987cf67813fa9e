"""When stored sessions can be read after a start, and which doors are there."""

from __future__ import annotations

from omen.net.mqtt.other_doors import OPEN_LONG_S, SETTLE_AT_MOST_S, SETTLED_S, SILENT_S, OtherDoors, new_door
from omen.net.mqtt.records import DoorHere
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
