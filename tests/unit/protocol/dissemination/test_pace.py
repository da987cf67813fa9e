"""How long a node waits for what comes by itself."""

from __future__ import annotations

import random

import pytest

from omen.net.settings import LIVE
from omen.protocol.config import Dissemination as Settings
from omen.protocol.dissemination import pace as module
from omen.protocol.dissemination.pace import CALM, COPIES, SHORTEST_DELAY, Pace
from omen.protocol.events import MILLISECOND, SECOND
from omen.protocol.messages.publications import Graft, Publication, RetransmissionRequest, make_publication
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood, publish_many

LONGEST = Settings().graft_delay
HIGHEST = SECOND
ROUND = Settings().announce_period


def end_round(pace: Pace, now: int, copies: int) -> int:
    pace.copies += copies
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


def test_a_few_copies_change_nothing() -> None:
    pace = Pace(Settings())
    assert [end_round(pace, number * ROUND, COPIES - 1) for number in range(50)] == [LONGEST] * 50


def test_many_double_it_up_to_a_bound_and_calm_halves_it() -> None:
    pace = Pace(Settings())
    raised = [end_round(pace, number * ROUND, COPIES) for number in range(1, 7)]
    assert raised == [2 * LONGEST, 4 * LONGEST, 8 * LONGEST, *[HIGHEST] * 3]
    last = 6 * ROUND
    assert end_round(pace, last + CALM - 1, 0) == HIGHEST
    assert end_round(pace, last + CALM, 0) == HIGHEST // 2
    assert end_round(pace, last + 2 * CALM, 0) == HIGHEST // 4
    assert end_round(pace, last + 3 * CALM, 0) == HIGHEST // 8
    assert end_round(pace, last + 4 * CALM, 0) == LONGEST
    assert end_round(pace, last + 9 * CALM, 0) == LONGEST


def test_as_live_nodes_have_it_copies_never_make_it_longer_than_their_settings() -> None:
    pace = Pace(LIVE.dissemination)
    pace.note(MILLISECOND)
    assert pace.delay == SHORTEST_DELAY
    raised = [end_round(pace, number * ROUND, 1000) for number in range(1, 50)]
    assert max(raised) == HIGHEST


def test_after_a_silence_it_is_as_it_was() -> None:
    pace = Pace(Settings())
    for number in range(1, 5):
        end_round(pace, number * ROUND, COPIES)
    assert end_round(pace, 60 * SECOND, 0) == LONGEST
    pace.note(MILLISECOND)
    assert pace.delay == SHORTEST_DELAY


def test_what_was_raised_ends_in_a_silence_without_rounds() -> None:
    pace = Pace(Settings())
    pace.note(MILLISECOND)
    for number in range(1, 7):
        end_round(pace, number * ROUND, COPIES)
    last = 6 * ROUND
    assert pace.wait(last + CALM // 2) == HIGHEST
    assert pace.wait(last + 3 * CALM // 2) == HIGHEST // 2
    assert pace.wait(last + 2 * CALM) == HIGHEST // 4
    assert pace.wait(last + 60 * SECOND) == SHORTEST_DELAY


@pytest.mark.parametrize(("graft_delay", "highest"), [(100, 1000), (1000, 1000), (500, 1000), (3000, 3000)])
def test_a_hole_is_requested_long_before_it_ends(graft_delay: int, highest: int) -> None:
    pace = Pace(Settings(graft_delay=graft_delay * MILLISECOND))
    pace.note(MILLISECOND)
    delays = [end_round(pace, number * ROUND, 100 * COPIES) for number in range(1, 20)]
    assert max(delays) == delays[-1] == highest * MILLISECOND


@pytest.mark.parametrize("silence", [0, 500, 60_000])
def test_a_peer_that_sends_copies_on_purpose_delays_no_repair(silence: int) -> None:
    live = {"retell_period": SECOND, "graft_delay": SECOND, "pull_retry": 500 * MILLISECOND}
    nodes = Neighbourhood([(1, 2), (2, 3), (1, 3)], **live)
    for part in nodes.parts.values():
        part.note_round_trip(MILLISECOND)
    publish_many(nodes, 1, 50)
    requested = lose_one(nodes)
    nodes.run(3000)
    (stream,) = nodes.parts[2].topics[TOPIC].streams.values()
    copy = make_publication(stream.key, requested, b"x", False)
    for _ in range(30):
        nodes.publish(1)
        for _ in range(COPIES):
            nodes.parts[2].receive(3, copy, nodes.now)
        nodes.run(100)
    nodes.run(silence)
    lost = lose_one(nodes)
    nodes.run(2000 if silence < 1000 else 500)
    assert nodes.sequences(2, 1) == list(range(1, lost + 1))


def lose_one(nodes: Neighbourhood) -> int:
    """Of node 1, on its way to node 2, which hears of it by announcements alone."""
    nodes.drops = lambda _, to, message: to == 2 and type(message) is Publication
    sequence = nodes.publish(1)
    nodes.run(5)
    nodes.drops = lambda *_: False
    return sequence


def publish_beside_the_tree(nodes: Neighbourhood) -> None:
    """Node 1, whose stream the tree follows, is silent, so no branch is cut between 2 and 3, which publish."""
    before = nodes.parts[2].duplicates
    for number in range(300):
        nodes.publish(2 + number % 2)
        nodes.run(5)
    assert nodes.parts[2].duplicates > before + 4 * COPIES


def has_it_soon(nodes: Neighbourhood) -> bool:
    """Whether node 2 has what was lost to it after a round of announcements and the shortest wait."""
    lost = lose_one(nodes)
    nodes.run(350)
    return lost in nodes.sequences(2, 1)


def measured(nodes: Neighbourhood) -> Neighbourhood:
    for part in nodes.parts.values():
        part.note_round_trip(MILLISECOND)
    return nodes


def test_copies_that_a_new_link_brings_delay_no_repair() -> None:
    """A newcomer waited up to a second for what it lacked in its first ten: all its links are on the tree at first."""
    nodes = measured(Neighbourhood([(1, 2), (1, 3)]))
    nodes.publish(1)
    nodes.run(50)
    nodes.link(2, 3)
    publish_beside_the_tree(nodes)
    assert has_it_soon(nodes)


def test_copies_that_a_bypass_brings_delay_no_repair() -> None:
    nodes = measured(Neighbourhood([(1, 2), (1, 3), (2, 3)]))
    nodes.publish(1)
    nodes.run(3000)
    nodes.publish(1)
    nodes.run(50)
    nodes.broken(2, 1)
    publish_beside_the_tree(nodes)
    assert has_it_soon(nodes)


def test_copies_without_a_new_branch_do() -> None:
    """As where a branch was grafted early."""
    nodes = measured(Neighbourhood([(1, 2), (1, 3), (2, 3)]))
    nodes.publish(1)
    nodes.run(3000)
    nodes.publish(1)
    nodes.run(50)
    for node, peer in ((2, 3), (3, 2)):
        nodes.parts[node].on_control(peer, Graft(TOPIC), nodes.now)
    publish_beside_the_tree(nodes)
    assert not has_it_soon(nodes)


def test_round_trips_do_not_undo_what_copies_have_shown() -> None:
    pace = Pace(Settings())
    end_round(pace, ROUND, COPIES)
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
    monkeypatch.setattr(module, "COPIES", 1 << 60)
    eager_copies, eager_requests = busy_mesh(seed)
    assert copies < eager_copies / 2
    assert requests < eager_requests / 2
