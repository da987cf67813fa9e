"""Each hole in the paper splits a topic while its remedy is switched off, and heals with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from omen.protocol.events import SECOND
from omen.sim.reading import read_scenario
from omen.sim.running import run_scenario
from omen.sim.scenario import EventSpec, NodeSpec

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
def test_a_join_that_was_put_off_keeps_its_pause_however_often_it_is_asked_for(seed: int) -> None:
    """World 7013935."""
    outcome = run_scenario(read_scenario(SCENARIOS / "asks-again-while-put-off.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_leaving_that_was_lost_leaves_no_link_that_one_end_has(seed: int) -> None:
    """World 900886."""
    outcome = run_scenario(read_scenario(SCENARIOS / "leaving-that-was-lost.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_over_lossy_links_is_led_to_its_end(seed: int) -> None:
    """Worlds 2001804 and 3002732."""
    outcome = run_scenario(read_scenario(SCENARIOS / "walk-over-lossy-links.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(2))
def test_a_node_that_begins_anew_is_not_among_the_lost(seed: int) -> None:
    """Busy worlds 70715 and 71839."""
    outcome = run_scenario(read_scenario(SCENARIOS / "restarted-beside-a-leave.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled
    first = outcome.repairs[0]
    assert first.time < 2 * SECOND, "the loss of the first incarnation waits for nothing"


@pytest.mark.parametrize("seed", range(2))
def test_a_newcomer_leaves_the_lead_in_a_loss_that_it_never_heard_of(seed: int) -> None:
    """Busy world 71250."""
    outcome = run_scenario(read_scenario(SCENARIOS / "newcomer-asked-of-a-loss.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled
    assert outcome.repairs[0].coordinator == "n1"


def test_a_newcomer_without_a_place_is_passed_over_by_the_next() -> None:
    """World 31000870."""
    scenario = read_scenario(SCENARIOS / "newcomer-asked-before-it-has-its-place.toml")
    outcome = run_scenario(scenario, 31000870)
    assert outcome.complaints() == []
    assert outcome.settled
    placed = [repair.node for repair in outcome.repairs].index("x30")
    assert all(repair.coordinator != "x30" for repair in outcome.repairs[:placed])


@pytest.mark.parametrize("seed", [3966, 0])
def test_a_loss_is_not_handled_while_nobody_can_tell_of_one_that_is_linked(seed: int) -> None:
    """World 3966 of the restarts."""
    outcome = run_scenario(read_scenario(SCENARIOS / "coordinator-of-a-linked-loss-begins-anew.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


def test_a_node_that_begins_anew_with_the_same_links_is_linked_twice_again() -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / "begins-anew-with-the-same-links.toml"), 412)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [4031324, 0, 1, 2])
def test_what_is_said_of_a_link_given_up_does_not_close_the_next(seed: int) -> None:
    """World 4031324."""
    outcome = run_scenario(read_scenario(SCENARIOS / "answers-late-to-a-link-given-up.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


def test_a_repair_may_count_on_a_node_that_was_declared_failed_and_is_there() -> None:
    """World 4032032."""
    outcome = run_scenario(read_scenario(SCENARIOS / "counts-on-one-that-was-declared-failed.toml"), 4032036)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [40042020, 0, 1, 2])
def test_a_lost_node_that_a_walk_names_is_passed_over_by_the_next(seed: int) -> None:
    """World 40042020."""
    outcome = run_scenario(read_scenario(SCENARIOS / "walk-that-names-a-lost-node.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [40066990, 0, 1, 2])
def test_a_walk_leaves_nobody_out_where_the_ring_has_just_lost_nodes(seed: int) -> None:
    """World 40066983."""
    outcome = run_scenario(read_scenario(SCENARIOS / "walk-over-a-gap-in-the-ring.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("rejoins-beside-a-newcomer", 40079309),
        ("walk-that-ends-at-a-gap", 40080902),
        ("member-that-has-begun-anew", 40077912),
        ("claimed-beside-an-unclaimed-loss", 40032144),
    ],
)
def test_worlds_that_were_not_repaired_just_after_losses_are(name: str, seed: int) -> None:
    outcome = run_scenario(read_scenario(SCENARIOS / f"{name}.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


def test_a_topic_given_up_while_a_loss_is_open_is_no_split_without_an_event() -> None:
    """World 4018811."""
    outcome = run_scenario(read_scenario(SCENARIOS / "gives-up-beside-a-crash.toml"), 4018838)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [4006807, 0, 1, 2])
def test_a_topic_that_was_given_up_during_a_walk_for_others_has_a_walk_of_its_own(seed: int) -> None:
    """World 4006806."""
    outcome = run_scenario(read_scenario(SCENARIOS / "gives-a-topic-up-during-a-walk.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


def test_a_planned_link_whose_end_was_lost_is_left_out_of_the_check() -> None:
    """World 7000852."""
    outcome = run_scenario(read_scenario(SCENARIOS / "planned-link-whose-end-was-lost.toml"), 7000852)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", [7006316, 0, 1, 2])
def test_a_loss_is_not_claimed_without_a_neighbour_that_gives_another_topic_up(seed: int) -> None:
    """Worlds 7001103 and 7006316."""
    outcome = run_scenario(read_scenario(SCENARIOS / "gives-up-beside-one-that-stands-still.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(4))
def test_a_node_that_stood_still_rejoins_if_a_newcomer_was_linked_without_it(seed: int) -> None:
    """World 2002036."""
    outcome = run_scenario(read_scenario(SCENARIOS / "joined-while-one-stood-still.toml"), seed)
    assert outcome.complaints() == []
    assert outcome.settled


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "came", [EventSpec(at=2.5, join="x9", topics=("t",)), EventSpec(at=2.5, resubscribe="n0", topics=("t", "v"))]
)
def test_so_do_several_whose_loss_was_handled_before_it_came(came: EventSpec, seed: int) -> None:
    """n6 and n7 are linked to each other, so that neither has lost a link when they go on."""
    still = [EventSpec(at=0.1, pause=node) for node in ("n6", "n7")]
    still += [EventSpec(at=4.9, resume=node) for node in ("n6", "n7")]
    alone = read_scenario(SCENARIOS / "joined-while-one-stood-still.toml")
    nodes = {name: NodeSpec(("v",)) for name in ("n0", "n1", "n2")} | {name: NodeSpec(("t",)) for name in ("n6", "n7")}
    outcome = run_scenario(msgspec.structs.replace(alone, nodes=nodes, events=(*still, came)), seed)
    assert outcome.complaints() == []
    assert outcome.settled
