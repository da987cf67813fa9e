"""What a node remembers of how much a topic can take."""

from __future__ import annotations

from omen.protocol.events import PLENTY
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood

OTHER = TOPIC + 1


def test_nothing_is_remembered_of_a_topic_that_was_given_up() -> None:
    """Else reply topics, of which a node takes up thousands, would leave an entry each for as long as a link lasts."""
    nodes = Neighbourhood([(1, 2), (2, 3)])
    for node in (1, 2, 3):
        nodes.want(node, (TOPIC, OTHER))
    nodes.room(2, 3, 1000)
    nodes.run(5)
    assert nodes.parts[1].room(TOPIC, nodes.now) == nodes.parts[1].room(OTHER, nodes.now) == 1000
    nodes.want(1, (TOPIC,))
    nodes.want(1, (TOPIC, OTHER))
    assert nodes.parts[1].room(TOPIC, nodes.now) == 1000
    assert nodes.parts[1].room(OTHER, nodes.now) == PLENTY
    nodes.want(2, (OTHER,))
    nodes.want(2, (TOPIC, OTHER))
    assert nodes.parts[1].room(TOPIC, nodes.now) == PLENTY


def test_a_link_that_is_ready_again_has_room() -> None:
    """Its queue was emptied when it became a slow consumer, or is that of a new connection."""
    nodes = Neighbourhood([(1, 2), (2, 3)])
    nodes.room(2, 3, 0)
    nodes.run(5)
    assert nodes.parts[1].room(TOPIC, nodes.now) == nodes.parts[2].room(TOPIC, nodes.now) == 0
    nodes.behind(2, 3)
    nodes.run(300)
    nodes.ready(2, 3)
    nodes.run(5)
    assert nodes.parts[1].room(TOPIC, nodes.now) == nodes.parts[2].room(TOPIC, nodes.now) == PLENTY


def test_a_former_neighbour_does_not_stay_a_slow_consumer() -> None:
    """Its link is gone when the driver says so, and so may its connection be: nobody says that it reads again."""
    nodes = Neighbourhood([(1, 2)])
    nodes.unlink(1, 2)
    nodes.room(1, 2, 0)
    nodes.behind(1, 2)
    nodes.link(1, 2)
    assert nodes.parts[1].room(TOPIC, nodes.now) == PLENTY
    nodes.publish(1)
    nodes.run(10)
    assert nodes.sequences(2, 1) == [1]
