"""Each monitor sees what it is there to see, and keeps quiet otherwise."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import SECOND, PeerDeclaredFailed, Received, RepairFinished
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, LossReport
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.watch import Bounds
from omen.sim.world import World

NAMES = [f"n{number}" for number in range(8)]


@pytest.fixture
def monitors() -> Monitors:
    """Eight nodes in a ring, all with one topic, settled."""
    population = Population(World(3), Config(resilience=2, coverage=2), choose_links)
    interests = Interests.from_pairs([(name, "t") for name in NAMES])
    links = list(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
    population.set_up(interests, Overlay.from_links(interests.nodes, links))
    monitors = Monitors(population, Bounds(connected=2 * SECOND, handled=2 * SECOND, one_sided=SECOND, idle=3 * SECOND))
    population.world.run_until(5 * SECOND)
    return monitors


def watch(monitors: Monitors, seconds: float) -> list[str]:
    """Which monitors found something in the time to come."""
    end = monitors.world.now + int(seconds * SECOND)
    while monitors.world.now < end:
        monitors.world.run_until(monitors.world.now + SECOND // 10)
        monitors.check()
    return sorted({violation.monitor for violation in monitors.violations})


def test_a_world_in_order_is_not_complained_about(monitors: Monitors) -> None:
    assert watch(monitors, 5) == []
    assert monitors.is_settled


def test_a_crash_that_is_repaired_is_not_complained_about(monitors: Monitors) -> None:
    node = monitors.population.place("n3")
    monitors.note_end(node, 1)
    monitors.population.crash("n3")
    assert watch(monitors, 6) == []
    assert monitors.is_settled
    assert monitors.restored


def test_a_topic_that_stays_split_is_seen_with_time_and_seed(monitors: Monitors) -> None:
    monitors.note_burst()
    cores = monitors.population.cores
    one, two, three = (monitors.population.place(name) for name in ("n0", "n1", "n7"))
    for other in (two, three):
        cores[one].drop_link(other)
        cores[other].drop_link(one)
    assert watch(monitors, 4) == ["connected"]
    (violation,) = monitors.violations
    assert violation.seed == 3
    assert "still split: t" in str(violation)
    assert monitors.split_topics() == ["t"]


def test_a_split_without_an_event_is_seen_at_once(monitors: Monitors) -> None:
    watch(monitors, 0.5)
    cores = monitors.population.cores
    links = [tuple(map(monitors.population.place, pair)) for pair in (("n0", "n1"), ("n4", "n5"))]
    for one, other in links:
        cores[one].drop_link(other)
        cores[other].drop_link(one)
    assert watch(monitors, 0.2) == ["connected"]


@pytest.mark.parametrize(
    ("dropped", "found"), [((("n3", "n4"),), []), ((("n3", "n4"), ("n5", "n6")), ["connected"])], ids=("one", "two")
)
def test_a_split_is_explained_by_a_loss_that_is_not_handled_as_far_as_that_goes(
    monitors: Monitors, dropped: tuple[tuple[str, str], ...], found: list[str]
) -> None:
    """A ring without one node is a line; with it, as if it were there, one link less splits nothing."""
    watch(monitors, 0.2)
    place, cores = monitors.population.place, monitors.population.cores
    monitors.note_end(place("n0"), 1)
    monitors.population.crash("n0")
    monitors.check()
    assert monitors.connected_since is not None
    for one, other in (tuple(map(place, pair)) for pair in dropped):
        cores[one].drop_link(other)
        cores[other].drop_link(one)
    monitors.check()
    assert monitors.split_topics() == ["t"]
    assert [violation.monitor for violation in monitors.violations] == found


def test_an_event_that_no_node_handles_is_seen(monitors: Monitors) -> None:
    monitors.expect(EventId(12345, 1, EventKind.LEAVE))
    assert watch(monitors, 4) == ["handled"]
    assert not monitors.is_settled


def test_a_link_that_only_one_side_believes_in_is_seen(monitors: Monitors) -> None:
    one, other = monitors.population.place("n0"), monitors.population.place("n1")
    monitors.population.cores[one].drop_link(other)
    assert watch(monitors, 2) == ["agreed"]
    assert "n1 alone has a link to n0" in str(monitors.violations[0])


def report_losses(monitors: Monitors, count: int) -> None:
    """n1 tells n0 of losses of its neighbours that it is to repair, and that never were."""
    population = monitors.population
    node, reporter = population.place("n0"), population.cores[population.place("n1")].ref
    for lost in range(node - count, node):
        monitors.world.tell(node, Received(reporter.id, LossReport(EventId(lost, 1, EventKind.LEAVE), reporter, ())))


def test_an_event_queue_that_fills_up_is_seen(monitors: Monitors) -> None:
    report_losses(monitors, monitors.bounds.open_events + 10)
    assert watch(monitors, 0.1) == ["bounded"]


def test_work_left_over_long_after_the_last_event_is_seen(monitors: Monitors) -> None:
    report_losses(monitors, 1)
    monitors.world.run_until(monitors.world.now + SECOND // 100)
    monitors.world.pause(monitors.population.place("n0"))
    assert watch(monitors, 4) == ["bounded"]
    assert "still has pending events" in str(monitors.violations[0])


def test_a_view_that_claims_to_cover_and_does_not_is_seen(monitors: Monitors, monkeypatch: pytest.MonkeyPatch) -> None:
    core = monitors.population.cores[monitors.population.place("n0")]
    node, backup_set = next(iter(core.backup_sets().items()))
    assert backup_set.ready
    claimed = {node: replace(backup_set, backups=())}
    monkeypatch.setattr(core, "backup_sets", lambda: claimed)
    monitors.check()
    assert [violation.monitor for violation in monitors.violations] == ["covered"]


def test_a_split_that_no_open_event_explains_is_seen_when_a_loss_is_said_to_be_handled(monitors: Monitors) -> None:
    cores, place = monitors.population.cores, monitors.population.place
    one, two = (tuple(map(place, pair)) for pair in (("n0", "n1"), ("n4", "n5")))
    for node, other in (one, two):
        cores[node].drop_link(other)
        cores[other].drop_link(node)
    event = EventId(12345, 1, EventKind.LEAVE)
    for listener in monitors.world.listeners:
        listener(place("n2"), RepairFinished(event, (), 0, (event,)), monitors.world.now)
    assert [violation.monitor for violation in monitors.violations] == ["joined"]
    assert "n2 has handled the leave of 12345" in monitors.violations[0].what


@pytest.mark.parametrize(
    ("side", "is_declared", "found"), [(4, True, []), (4, False, ["joined"]), (2, True, ["joined"])]
)
def test_only_a_noticed_cut_of_more_than_l_nodes_suspends_the_promise(
    monitors: Monitors, side: int, is_declared: bool, found: list[str]
) -> None:
    cores, place = monitors.population.cores, monitors.population.place

    def say(heard: PeerDeclaredFailed | RepairFinished) -> None:
        for listener in monitors.world.listeners:
            listener(place("n2"), heard, monitors.world.now)

    monitors.note_cut([[place(name) for name in NAMES[:side]]])
    if is_declared:
        say(PeerDeclaredFailed(cores[place("n6")].ref, place("n2")))
    monitors.note_cut(())
    for one, other in (("n0", "n1"), ("n4", "n5")):
        cores[place(one)].drop_link(place(other))
        cores[place(other)].drop_link(place(one))
    event = EventId(12345, 1, EventKind.LEAVE)
    say(RepairFinished(event, (), 0, (event,)))
    assert [violation.monitor for violation in monitors.violations] == found


def test_a_loss_that_is_not_handled_explains_the_pieces_it_leaves(monitors: Monitors) -> None:
    place = monitors.population.place
    for name in ("n0", "n4"):
        monitors.note_end(place(name), 1)
        monitors.population.crash(name)
    event, other = EventId(place("n0"), 1, EventKind.LEAVE), EventId(place("n4"), 1, EventKind.LEAVE)
    former = [place(name) for name in ("n1", "n7", "n3", "n5")]

    def say(event: EventId) -> list[str]:
        heard = RepairFinished(event, (), 0, (event,), tuple(former))
        for listener in monitors.world.listeners:
            listener(place("n2"), heard, monitors.world.now)
        return [violation.monitor for violation in monitors.violations]

    assert say(event) == []
    assert say(other) == ["joined"]
