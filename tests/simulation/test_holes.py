"""Each hole in the paper splits a topic while its remedy is switched off, and heals with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.sim.running import run_scenario
from omen.sim.scenario import read_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
HOLES = {
    "linked-losses": "linked_losses_as_one",
    "loss-while-mending": "redo_unconfirmed",
    "stale-neighbours": "former_neighbours_report",
    "half-open-links": "links_agreed_by_both",
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("hole", HOLES)
def test_the_hole_heals_with_its_remedy(hole: str, seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / f"hole-{hole}.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("hole", "remedy"), HOLES.items())
def test_the_hole_splits_a_topic_without_its_remedy(hole: str, remedy: str, seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / f"hole-{hole}.toml").without(remedy), seed)
    assert outcome.split == ["t"]


@pytest.mark.parametrize("seed", range(4))
def test_two_neighbours_that_give_the_same_topic_up_do_not_count_on_each_other(seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "two-give-up-a-topic.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_neighbour_declared_failed_for_a_moment_is_counted_on_again(seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "suspected-while-giving-up.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [1580, *range(3)])
def test_two_neighbours_that_took_each_other_for_gone_are_linked_again(seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "taken-for-gone-by-each-other.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [1, 900256, *range(2, 4)])
def test_a_leave_beside_a_crash_is_joined_to_both_sides(seed: int) -> None:
    """World 900240."""
    outcome = run_scenario(read_scenario(SCENARIOS / "leave-beside-a-crash.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_two_linked_nodes_that_rejoin_bring_in_their_former_neighbours(seed: int) -> None:
    """World 900438."""
    outcome = run_scenario(read_scenario(SCENARIOS / "linked-and-both-rejoined.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_newcomer_is_linked_to_a_node_that_was_silent_for_a_moment(seed: int) -> None:
    """World 901713."""
    outcome = run_scenario(read_scenario(SCENARIOS / "join-while-the-only-other-is-silent.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_leaving_that_was_lost_leaves_no_link_that_one_end_has(seed: int) -> None:
    """World 900886."""
    outcome = run_scenario(read_scenario(SCENARIOS / "leaving-that-was-lost.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled
