"""Wills of clients that are replaced, of sessions that end, and of nodes that crash meanwhile."""

from __future__ import annotations

import pytest
from mqtt5 import Will
from tests.unit.net.mqtt.doors import Harness, Stored


def gone(delay: int) -> Will:
    return Will("w", payload=b"gone", will_delay_interval=delay)


@pytest.mark.parametrize(
    ("delay", "expiry", "is_clean", "wills"),
    [(0, 60, False, 1), (10, 60, False, 0), (10, 60, True, 1), (10, 0, False, 1)],
)
def test_a_client_that_is_replaced_has_its_will_published_unless_it_has_a_delay_and_its_session_goes_on(
    delay: int, expiry: int, is_clean: bool, wills: int
) -> None:
    """MQTT-3.1.3-9, and the note of 3.1.4."""
    world = Harness()
    world.connect(1, "me", session_expiry_interval=expiry, will=gone(delay))
    world.connect(2, "me", session_expiry_interval=60, clean_start=is_clean)
    assert len(world.published) == wills
    there = Stored()
    there.connect(1, "me", session_expiry_interval=expiry, will=gone(delay))
    there.door.release("me", there.now, is_clean)  # the same, but it is at another node now
    there.settle()
    assert len(there.published) == wills
    world.now = there.now = 2000.0
    for one in (world, there):
        one.door.tick(one.now)
        one.settle()
        assert len(one.published) == wills, "later nothing comes"


def test_a_will_that_waits_is_published_when_its_session_ends_by_a_client_that_begins_anew() -> None:
    for is_elsewhere in (False, True):
        world = Stored()
        world.connect(1, "me", session_expiry_interval=60, will=gone(10))
        world.door.lost(1, world.now)
        world.settle()
        if is_elsewhere:
            world.door.release("me", world.now, is_clean=True)
            world.settle()
        else:
            world.connect(2, "me", clean_start=True)
        assert len(world.published) == 1


def test_a_will_that_waits_outlives_its_node() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=60, will=gone(10))
    here.door.lost(1, here.now)
    here.settle()
    there = here.crash()
    stored = there.stored("me")
    assert stored is not None
    there.door.adopt(stored, there.now + 7)
    for seconds, wills in ((9, 0), (11, 1)):
        there.now = here.now + seconds
        there.door.tick(there.now)
        there.door.save_soon()
        there.settle()
        assert len(there.published) == wills
    stored = there.stored("me")
    assert stored is not None and stored.head.will is None, "a third node does not publish it again"


def test_a_node_that_leaves_hands_on_a_will_that_waits_and_a_client_that_comes_takes_it_back() -> None:
    here = Stored()
    here.connect(1, "me", session_expiry_interval=60, will=gone(10))
    here.door.shut(here.now)
    here.settle()
    for _, changes in here.door.release_all(here.now):
        here.write(changes)
    stored = here.stored("me")
    assert stored is not None and stored.head.will is not None and stored.head.will_at == here.now + 10
    there = here.crash()
    there.come(1, "me", clean_start=False)
    there.now += 11
    there.door.tick(there.now)
    there.settle()
    assert here.published == there.published == []


def test_a_node_that_hears_of_another_session_first_publishes_the_will_of_its_own() -> None:
    """The record of a session that a client has begun elsewhere may come before word that the client is there."""
    for is_another in (True, False):
        here = Stored()
        here.connect(1, "me", session_expiry_interval=60, will=gone(10))
        here.door.lost(1, here.now)
        here.settle()
        begun = here.door.sessions["me"].begun
        here.door.disown("me", begun + 1 if is_another else begun)
        here.settle()
        assert len(here.published) == is_another and "me" not in here.door.sessions


@pytest.mark.parametrize(("later", "wills"), [(5.0, 0), (12.0, 1)])
def test_a_will_whose_delay_ends_while_no_node_has_it_is_published_when_its_client_comes(
    later: float, wills: int
) -> None:
    """Its node has crashed, and none has taken its session over yet."""
    here = Stored()
    here.connect(1, "me", session_expiry_interval=60, will=gone(10))
    here.door.lost(1, here.now)
    here.settle()
    there = here.crash()
    there.now = here.now + later
    there.come(1, "me", clean_start=False)
    assert [one.payload for one in there.published] == [b"gone"] * wills
