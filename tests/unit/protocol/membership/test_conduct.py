"""How offences add up, are forgiven, and end in bans that grow."""

from __future__ import annotations

from omen.protocol.config import Config
from omen.protocol.events import SECOND, Offence
from omen.protocol.membership import conduct
from omen.protocol.membership.conduct import Conduct

CONFIG = Config(offence_limit=3, offence_memory=10 * SECOND, ban_time=60 * SECOND)


def test_a_peer_is_dropped_when_it_offends_more_often_than_is_forgiven() -> None:
    kept = Conduct(CONFIG)
    assert [kept.note(1, Offence.MALFORMED, 0) for _ in range(4)] == [False, False, False, True]
    assert kept.scores(0) == {1: 4.0} and kept.scores(35 * SECOND) == {1: 0.5} and kept.scores(40 * SECOND) == {}
    patient = Conduct(CONFIG)
    assert not any(patient.note(1, Offence.FORGED, second * SECOND) for second in range(0, 1000, 10))
    assert not any(patient.note(peer, Offence.FORGED, 0) for peer in range(2, 100)), "each answers for itself"


def test_what_is_beyond_a_budget_weighs_a_hundredth() -> None:
    kept = Conduct(CONFIG)
    assert [kept.note(1, Offence.OVER_BUDGET, 0) for _ in range(301)].index(True) == 300


def test_bans_end_and_grow_to_a_limit() -> None:
    kept, now, lengths = Conduct(CONFIG), 0, []
    for _ in range(8):
        lengths.append(kept.ban(1, now) // SECOND)
        assert kept.is_banned(1, now) and not kept.note(1, Offence.FORGED, now) and list(kept.bans(now)) == [1]
        now += lengths[-1] * SECOND
        assert not kept.is_banned(1, now) and kept.bans(now) == {} and kept.scores(now) == {}
    assert lengths == [60, 120, 240, 480, 960, 1920, 1920, 1920]


def test_nobody_is_dropped_where_the_limit_is_zero() -> None:
    kept = Conduct(Config(offence_limit=0))
    assert not any(kept.note(1, Offence.FORGED, 0) for _ in range(100))


def test_what_is_remembered_is_bounded_and_the_worst_are_kept() -> None:
    kept = Conduct(CONFIG)
    for _ in range(2):
        kept.note(0, Offence.FALSE_SENDER, 0)
    for peer in range(1, conduct.REMEMBERED_AT_MOST + 50):
        kept.note(peer, Offence.FALSE_SENDER, 0)
    assert len(kept.scores(0)) == conduct.REMEMBERED_AT_MOST and kept.scores(0)[0] == 2.0
    for peer in range(conduct.REMEMBERED_AT_MOST + 50):
        kept.ban(peer, peer)
    assert len(kept.banned) == conduct.REMEMBERED_AT_MOST
