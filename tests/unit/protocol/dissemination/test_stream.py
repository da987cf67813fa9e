"""What a node knows of streams it lost sight of: evicted, given up and taken up again, over before it came."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from omen.protocol.dissemination import window
from omen.protocol.dissemination.window import Numbering
from omen.protocol.events import MILLISECOND, SECOND
from omen.protocol.messages.publications import Publication
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood


def test_the_topic_not_published_on_for_longest_is_forgotten_and_no_number_is_used_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window, "TOPICS_AT_MOST", 2)
    numbers = Numbering(60 * SECOND)
    assert [numbers.take(topic, 1, 0)[0] for topic in (1, 2, 1, 1)] == [1, 1, 2, 3]
    assert numbers.take(3, 1, 0) == (1, True), "topic 2 makes way, which had reached 1"
    assert numbers.take(1, 1, 0) == (4, False)
    assert numbers.take(2, 1, 0) == (2, True), "behind all numbers that were forgotten"


def test_a_stream_that_made_way_after_a_gap_keeps_nothing_twice() -> None:
    nodes = Neighbourhood([(1, 3), (1, 2), (2, 4), (2, 5), (2, 6)], streams=4)
    for _ in range(5):
        nodes.publish(1)
    nodes.run(300)
    nodes.drops = lambda _, to, message: (
        to == 2 and type(message) is Publication and message.publisher == 1 and message.sequence in (6, 7)
    )
    for _ in range(5):
        nodes.publish(1)
    nodes.run(9000)
    nodes.drops = lambda sender, to, message: False
    for publisher in (3, 4, 5, 6):
        nodes.publish(publisher)
        nodes.run(300)
    assert nodes.parts[2].status(nodes.now).evictions
    nodes.ready(1, 2)
    nodes.run(40_000)
    assert nodes.sequences(2, 1) == [1, 2, 3, 4, 5, -6, -7, 8, 9, 10]


@pytest.mark.parametrize(
    ("seed", "count", "latency_ms", "batch", "loss", "pause_ms"),
    [(90, 300, 5, 32, 0.3, 5), (105, 300, 50, 32, 0.02, 20), (193, 300, 5, 4, 0.3, 5), (314, 300, 5, 256, 0.1, 1)],
)
def test_what_a_newcomer_fetches_while_its_window_moves_on_is_kept_once(
    seed: int, count: int, latency_ms: int, batch: int, loss: float, pause_ms: int
) -> None:
    """What came out of order stays when newer ones leave, and was fetched and kept again: it failed at the end."""
    draw = random.Random(f"moving window {seed}")
    nodes = Neighbourhood([(1, 2)], window_age=3 * SECOND, batch_count=batch)
    nodes.latency = lambda one, other: latency_ms * MILLISECOND
    for _ in range(300):
        nodes.publish(1, bytes(10))
        nodes.run(5)
    small = replace(nodes.config.dissemination, total_window_bytes=100_000)
    nodes.config = replace(nodes.config, dissemination=small)
    nodes.drops = lambda _, to, message: to == 3 and type(message) is Publication and draw.random() < loss
    nodes.waiting.add(3)
    nodes.add(3)
    nodes.link(1, 3)
    nodes.run(10)
    nodes.waiting.discard(3)
    nodes.refresh()
    for _ in range(count):
        nodes.publish(1, bytes(10))
        nodes.run(pause_ms)
    nodes.run(30_000)
    given = [abs(number) for number in nodes.sequences(3, 1)]
    assert given == list(range(given[0], 300 + count + 1))


def test_given_up_again_before_the_window_came_nothing_is_delivered_twice() -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.latency = lambda one, other: 50 * MILLISECOND
    for _ in range(10):
        nodes.publish(1)
    nodes.run(500)
    for waits in (70, 3000):
        nodes.waiting.add(2)
        nodes.want(2, ())
        nodes.run(120)
        nodes.parts[2].replay(TOPIC, nodes.now)
        nodes.want(2, (TOPIC,))
        nodes.run(waits)
        nodes.waiting.discard(2)
        nodes.refresh()
    assert nodes.sequences(2, 1) == list(range(1, 11))


@pytest.mark.parametrize("silent_s", [1, 90])
def test_what_was_published_while_a_topic_was_given_up_is_no_gap(silent_s: int) -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    for _ in range(10):
        nodes.publish(1)
    nodes.run(silent_s * 1000)
    nodes.want(2, ())
    nodes.run(1000)
    for _ in range(300):
        nodes.publish(1)
        nodes.run(1000)
    nodes.waiting.add(2)
    nodes.want(2, (TOPIC,))
    nodes.run(300)
    nodes.waiting.discard(2)
    nodes.refresh()
    nodes.run(1000)
    nodes.publish(1)
    nodes.run(20_000)
    given = nodes.sequences(2, 1)
    assert given[:10] == list(range(1, 11))
    assert min(given) > 0
    assert given[-1] == 311


def test_what_was_delivered_before_a_topic_was_given_up_is_not_told_as_a_gap() -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    for _ in range(10):
        nodes.publish(1)
    nodes.run(50_000)
    nodes.unlink(1, 2)
    nodes.want(2, ())
    nodes.run(500)
    nodes.want(2, (TOPIC,))
    nodes.run(2000)
    nodes.publish(1)
    nodes.run(20_000)
    nodes.link(1, 2)
    nodes.run(15_000)
    assert nodes.sequences(2, 1) == [*range(1, 11), -11]


@pytest.mark.parametrize("waited_s", [30, 90])
def test_a_newcomer_between_two_pieces_is_told_no_gap_of_what_was_over_before_it_came(waited_s: int) -> None:
    nodes = Neighbourhood([(1, 2), (1, 3)])
    for _ in range(5):
        nodes.publish(1)
    nodes.run(3000)
    nodes.unlink(1, 2)
    for _ in range(5):
        nodes.publish(1)
    nodes.run(waited_s * 1000)
    nodes.waiting.add(4)
    nodes.add(4)
    nodes.link(2, 4)
    nodes.run(100)
    nodes.link(3, 4)
    nodes.run(100)
    nodes.waiting.discard(4)
    nodes.refresh()
    nodes.run(15_000)
    assert nodes.sequences(2, 1) == [1, 2, 3, 4, 5, -6, -7, -8, -9, -10], "it was there, and hears it by the newcomer"
    assert nodes.sequences(4, 1) == []


@pytest.mark.parametrize("waited_s", [40, 70])
def test_a_newcomer_passes_on_what_it_learns_of_publishers_silent_for_long(waited_s: int) -> None:
    nodes = Neighbourhood([(1, 2), (3, 4)])
    nodes.run(1000)
    for _ in range(3):
        nodes.publish(1)
    nodes.run(waited_s * 1000)
    nodes.waiting.add(5)
    nodes.add(5)
    nodes.link(5, 3)
    nodes.link(5, 1)
    nodes.run(300)
    nodes.waiting.discard(5)
    nodes.refresh()
    nodes.run(15_000)
    assert nodes.sequences(3, 1) == nodes.sequences(4, 1) == [-1, -2, -3]


@pytest.mark.parametrize("waits", [True, False])
def test_a_newcomer_that_asks_gets_the_window_however_soon_it_is_linked(waits: bool) -> None:
    nodes = Neighbourhood([(1, 2)])
    for _ in range(10):
        nodes.publish(1)
    nodes.run(3000)
    nodes.add(3, topics=())
    nodes.link(2, 3)
    nodes.run(1000)
    nodes.parts[3].replay(TOPIC, nodes.now)
    if waits:
        nodes.waiting.add(3)
    nodes.want(3, (TOPIC,))
    nodes.run(500)
    nodes.waiting.discard(3)
    nodes.refresh()
    nodes.run(3000)
    assert nodes.sequences(3, 1) == list(range(1, 11))


@pytest.mark.parametrize("earlier_ms", [500, 1000, 1100, 1190, 2100, 4100])
def test_a_burst_soon_after_a_run_began_is_told_whenever_the_newcomer_was_taken_in(earlier_ms: int) -> None:
    nodes = Neighbourhood([(1, 2)])
    nodes.publish(2)
    nodes.run(earlier_ms)
    nodes.add(3)  # its join is handled without a link
    nodes.run(5)
    for _ in range(30):
        nodes.publish(2)
    nodes.run(45)
    nodes.link(1, 3)
    nodes.run(15_000)
    assert [number for number in nodes.sequences(3, 2) if abs(number) > 1] == list(range(2, 32))
