"""Two refusals a moment apart prove that a process has ended; once in a while, and never against what was heard."""

from __future__ import annotations

from omen.protocol.config import Config
from omen.protocol.events import MILLISECOND, SECOND
from omen.protocol.membership.refusals import REMEMBERED_AT_MOST, Refusals

PEER = 7


def test_two_refusals_a_tenth_of_a_second_apart_are_a_proof_and_one_is_not() -> None:
    refusals = Refusals(Config())
    assert not refusals.note(PEER, 0)
    assert not refusals.note(PEER, 99 * MILLISECOND)
    assert refusals.note(PEER, 100 * MILLISECOND)


def test_a_peer_that_was_heard_between_two_refusals_is_there() -> None:
    refusals = Refusals(Config())
    refusals.note(PEER, 0)
    refusals.clear(PEER)
    assert not refusals.note(PEER, 200 * MILLISECOND)
    assert refusals.note(PEER, 300 * MILLISECOND)


def test_a_peer_is_proved_to_have_ended_at_most_once_in_ten_minutes() -> None:
    refusals = Refusals(Config())
    refusals.note(PEER, 0)
    assert refusals.note(PEER, SECOND)
    for second in range(2, 600):
        assert not refusals.note(PEER, second * SECOND)
    assert not refusals.note(PEER, 602 * SECOND)
    assert refusals.note(PEER, 603 * SECOND)


def test_refusals_of_one_peer_say_nothing_of_another() -> None:
    refusals = Refusals(Config())
    refusals.note(PEER, 0)
    assert not refusals.note(PEER + 1, SECOND)


def test_what_is_remembered_is_bounded_and_without_room_nothing_is_proved() -> None:
    refusals = Refusals(Config())
    for peer in range(2 * REMEMBERED_AT_MOST):
        refusals.note(peer, 0)
    assert len(refusals.waiting) == REMEMBERED_AT_MOST
    proved = [peer for peer in range(2 * REMEMBERED_AT_MOST) if refusals.note(peer, SECOND)]
    assert len(proved) <= REMEMBERED_AT_MOST
