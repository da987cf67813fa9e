"""How fast a client reads."""

from __future__ import annotations

from omen.net.mqtt.pace import DRAIN_S, STILL_S, Pace


def read(pace: Pace, per_s: int, begun: float) -> float:
    """A client reads for a second; when that is over."""
    for number in range(1, per_s + 1):
        pace.note(begun + number / per_s)
    return begun + 1


def test_a_client_keeps_up_if_it_would_have_read_its_queue_in_a_while() -> None:
    pace = Pace()
    pace.begin(100.0)
    assert pace.keeps_up(1_000_000, 100.0), "it was not measured yet"
    now = read(pace, 100, 100.0)
    assert pace.keeps_up(int(100 * DRAIN_S * 0.9), now) and not pace.keeps_up(int(100 * DRAIN_S * 1.1), now)


def test_a_client_that_acknowledges_nothing_does_not_read_and_one_that_had_nothing_to_read_may() -> None:
    pace = Pace()
    pace.begin(100.0)
    now = read(pace, 100, 100.0)
    assert not pace.keeps_up(1, now + STILL_S + 1)
    pace.begin(now + 3600)
    assert pace.keeps_up(1000, now + 3600 + STILL_S / 2)
