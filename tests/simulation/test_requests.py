"""A node that publishes on many topics, one after the other: few repairs, and none of them carried for long."""

from __future__ import annotations

from omen.protocol.events import SECOND, Publish, Subscribe
from omen.sim.running import Run
from omen.sim.scenario import NodeSpec, Scenario

REPLIES = range(1000, 1040)
AT_MOST = 9
"""Requests of one node to be linked: eight under way, and one for all that wait."""


def run_with(*actions: tuple[float, object]) -> tuple[Run, list[int]]:
    """What one of three nodes is told, and how many requests it has open a moment after each."""
    run = Run(Scenario(nodes={f"n{number}": NodeSpec(("t",)) for number in range(3)}, until_s=40.0), 0)
    run.population.topic_labels.update((topic, f"reply {topic}") for topic in REPLIES)
    node = run.population.place("n0")
    asked: list[int] = []

    def look() -> None:
        asked.append(len(run.population.cores[node].status().repairs.requests))

    for at, action in actions:
        run.world.call(int(at * SECOND), lambda action=action: run.world.tell(node, action))  # type: ignore[misc]
        run.world.call(int(at * SECOND) + 1, look)
    assert run.go().complaints() == []
    return run, asked


def topics_of(run: Run) -> int:
    return len(run.population.cores[run.population.place("n0")].status().topics)


def test_topics_only_published_on_are_linked_by_few_repairs_and_given_up_when_their_windows_have_lived() -> None:
    run, asked = run_with(*((1.0, Publish(topic, b"x")) for topic in REPLIES))
    assert max(asked) == AT_MOST
    assert topics_of(run) == 1


def test_topics_given_up_before_anything_was_asked_for_them_are_not_asked_for() -> None:
    run, asked = run_with(
        *((1.0, Subscribe((topic,))) for topic in REPLIES), (1.0, Subscribe((), tuple(REPLIES))), (30.0, Subscribe(()))
    )
    assert asked[-2:] == [AT_MOST, 0], "those under way, and one to give all up"
    assert topics_of(run) == 1


def test_every_topic_is_linked_in_the_end() -> None:
    run, asked = run_with(*((1.0, Subscribe((topic,))) for topic in REPLIES), (30.0, Subscribe(())))
    assert asked[-1] == 0
    assert topics_of(run) == 1 + len(REPLIES)
