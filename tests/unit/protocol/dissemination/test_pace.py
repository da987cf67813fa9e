"""How long a node waits for what comes by itself."""

from __future__ import annotations

import random

import pytest

from omen.net.settings import LIVE
from omen.protocol.config import Dissemination as Settings
from omen.protocol.dissemination import pace as module
from omen.protocol.dissemination.pace import LONGEST_DELAY, NEEDLESS, SHORTEST_DELAY, Pace
from omen.protocol.events import MILLISECOND, SECOND
from omen.protocol.messages.publications import RetransmissionRequest
from unit.protocol.dissemination.neighbourhood import Neighbourhood

LONGEST = Settings().graft_delay
ROUND = Settings().announce_period


def end_round(pace: Pace, now: int, needless: int) -> int:
    pace.needless += needless
    pace.end_round(now)
    return pace.delay


def test_it_follows_round_trips_within_bounds() -> None:
    pace = Pace(Settings())
    assert pace.delay == LONGEST
    pace.note(MILLISECOND)
    assert pace.delay == SHORTEST_DELAY
    pace.note(20 * MILLISECOND)
    assert pace.delay == 80 * MILLISECOND
    pace.note(SECOND)
    assert pace.delay == LONGEST


def test_a_few_needless_copies_change_nothing() -> None:
    pace = Pace(Settings())
    assert [end_round(pace, number * ROUND, NEEDLESS - 1) for number in range(50)] == [LONGEST] * 50


def test_many_double_it_up_to_a_bound_and_calm_seconds_halve_it() -> None:
    pace = Pace(Settings())
    raised = [end_round(pace, number * ROUND, NEEDLESS) for number in range(1, 7)]
    assert raised == [2 * LONGEST, 4 * LONGEST, 8 * LONGEST, *[LONGEST_DELAY] * 3]
    last = 6 * ROUND
    assert end_round(pace, last + SECOND - 1, 0) == LONGEST_DELAY
    assert end_round(pace, last + SECOND, 0) == LONGEST_DELAY // 2
    assert end_round(pace, last + 2 * SECOND, 0) == LONGEST_DELAY // 4
    assert end_round(pace, last + 3 * SECOND, 0) == LONGEST_DELAY // 8
    assert end_round(pace, last + 4 * SECOND, 0) == LONGEST
    assert end_round(pace, last + 9 * SECOND, 0) == LONGEST


def test_as_live_nodes_have_it_copies_never_make_it_longer_than_their_settings() -> None:
    pace = Pace(LIVE.dissemination)
    pace.note(MILLISECOND)
    assert pace.delay == SHORTEST_DELAY
    raised = [end_round(pace, number * ROUND, 1000) for number in range(1, 50)]
    assert max(raised) == LONGEST_DELAY


def test_after_a_silence_it_is_as_it_was() -> None:
    pace = Pace(Settings())
    for number in range(1, 5):
        end_round(pace, number * ROUND, NEEDLESS)
    assert end_round(pace, 60 * SECOND, 0) == LONGEST
    pace.note(MILLISECOND)
    assert pace.delay == SHORTEST_DELAY


def test_round_trips_do_not_undo_what_copies_have_shown() -> None:
    pace = Pace(Settings())
    end_round(pace, ROUND, NEEDLESS)
    pace.note(MILLISECOND)
    assert (pace.delay, pace.by_round_trip) == (2 * LONGEST, SHORTEST_DELAY)


def busy_mesh(seed: int) -> tuple[int, int]:
    """Six nodes whose links are full and keep publications for up to 0.3 s: copies that came twice, requests."""
    drawn = random.Random(seed)
    nodes = Neighbourhood([(one, other) for one in range(1, 7) for other in range(one + 1, 7)])
    for _ in range(100):
        nodes.publish(1)
        nodes.run(5)
    before = sum(part.duplicates for part in nodes.parts.values()), nodes.sent[RetransmissionRequest]
    nodes.latency = lambda sender, to: drawn.randrange(300) * MILLISECOND
    for number in range(2000):
        nodes.publish(number % 6 + 1)
        nodes.run(5)
    nodes.run(5000)
    for node in nodes.parts:
        assert len(nodes.given[node]) == 2100, f"node {node} lacks something"
    after = sum(part.duplicates for part in nodes.parts.values()), nodes.sent[RetransmissionRequest]
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_links_that_are_full_are_not_filled_up_with_copies(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    copies, requests = busy_mesh(seed)
    monkeypatch.setattr(module, "NEEDLESS", 1 << 60)
    eager_copies, eager_requests = busy_mesh(seed)
    assert copies < eager_copies / 2
    assert requests < eager_requests / 2
