"""The simulated world by itself, with cores that only write down what they are told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omen.protocol.events import (
    Connect,
    Input,
    Left,
    LinkBroken,
    NodeId,
    Notify,
    Output,
    PeerLost,
    PeerRefused,
    PeerUnreached,
    Received,
    Send,
    SetTimer,
    Timer,
    TimerFired,
)
from omen.protocol.messages.overlay import Heartbeat, encode
from omen.sim.latency import Latency, by_link, constant, log_normal, uniform
from omen.sim.world import REFUSAL_GAP, Dropped, Network, World, generator_for


class Named(Timer, frozen=True):
    name: str


class Recorder:
    """Does at the start and when a timer fires what it is given, and keeps what it hears, by its own clock."""

    def __init__(self, *outputs: Output, on_timer: Sequence[Output] = ()) -> None:
        self.outputs = outputs
        self.on_timer = on_timer
        self.heard: list[tuple[int, Input]] = []

    def start(self, now: int) -> Sequence[Output]:
        return self.outputs

    def handle(self, event: Input, now: int) -> Sequence[Output]:
        self.heard.append((now, event))
        return self.on_timer if isinstance(event, TimerFired) else []

    @property
    def messages(self) -> list[int]:
        return [event.message.incarnation for _, event in self.heard if isinstance(event, Received)]


def say(to: NodeId, nonce: int = 1) -> Send:
    return Send(to, "", Heartbeat(nonce))


def test_things_happen_in_order_of_time_and_then_of_asking() -> None:
    world, core = World(0), Recorder(SetTimer(Named("late"), 20), SetTimer(Named("b"), 10), SetTimer(Named("a"), 10))
    world.add(1, core)
    world.run_until(100)
    assert core.heard == [(10, TimerFired(Named("b"))), (10, TimerFired(Named("a"))), (20, TimerFired(Named("late")))]


def test_setting_a_timer_again_replaces_it() -> None:
    world, core = World(0), Recorder(SetTimer(Named("x"), 10), SetTimer(Named("x"), 30))
    world.add(1, core)
    world.run_until(100)
    assert core.heard == [(30, TimerFired(Named("x")))]


@pytest.mark.parametrize(
    ("latency", "least", "most"),
    [(constant(500), 500, 500), (uniform(100, 900), 100, 900), (log_normal(500, 0.5), 1, 10_000)],
)
def test_messages_take_as_long_as_the_model_says(latency: Latency, least: int, most: int) -> None:
    world, core = World(3, Network(latency)), Recorder()
    world.add(2, core)
    world.add(1, Recorder(*(say(2) for _ in range(50))))
    world.run_until(100_000)
    times = [time for time, _ in core.heard]
    assert len(times) == 50
    assert least <= min(times) <= max(times) <= most
    assert times == sorted(times)


def test_a_link_may_have_a_latency_of_its_own_either_way_round() -> None:
    network = Network(by_link({(1, 2): 7_000}, constant(10)))
    world, one, two, three = World(0, network), Recorder(say(2), say(3)), Recorder(say(1)), Recorder()
    for node, core in ((1, one), (2, two), (3, three)):
        world.add(node, core)
    world.run_until(10_000)
    assert [core.heard[0][0] for core in (one, two, three)] == [7_000, 7_000, 10]


def test_uneven_latency_reorders_messages() -> None:
    world, core = World(1, Network(uniform(1, 1000))), Recorder()
    world.add(2, core)
    world.add(1, Recorder(*(say(2, nonce) for nonce in range(30))))
    world.run_until(10_000)
    assert sorted(core.messages) == list(range(30)) != core.messages


def test_loss_and_duplication_happen_at_about_the_rate_asked_for() -> None:
    world, core = World(5, Network(constant(1), loss=0.3, duplication=0.2)), Recorder()
    world.add(2, core)
    world.add(1, Recorder(*(say(2, nonce) for nonce in range(2000))))
    world.run_until(10_000)
    assert 1300 <= len(set(core.messages)) <= 1500
    assert 220 <= len(core.messages) - len(set(core.messages)) <= 340


def test_a_crashed_node_hears_nothing_and_those_connected_find_out() -> None:
    world, watcher, stranger, victim = World(0), Recorder(Connect(9, "")), Recorder(), Recorder()
    for node, core in ((1, watcher), (2, stranger), (9, victim)):
        world.add(node, core)
    world.run_until(10)
    world.crash(9)
    world.tell(9, PeerLost(1))
    world.run_until(200_000)
    assert [event for _, event in watcher.heard] == [PeerLost(9, 1)]
    assert not stranger.heard
    assert not victim.heard
    assert world.alive() == [1, 2]


def test_what_was_meant_for_one_incarnation_does_not_reach_the_next() -> None:
    world, second = World(0, Network(constant(1_000))), Recorder()
    world.add(9, Recorder())
    world.add(1, Recorder(say(9)))
    world.run_until(10)
    world.crash(9)
    world.add(9, second, incarnation=2)
    world.run_until(10_000)
    assert not second.heard


def test_a_node_that_has_left_closes_its_connections() -> None:
    world, watcher = World(0), Recorder(Connect(9, ""))
    world.add(1, watcher)
    world.add(9, Recorder(Notify(Left())))
    world.run_until(200_000)
    assert [event for _, event in watcher.heard] == [PeerLost(9, 1)]


def test_a_paused_node_hears_everything_when_it_resumes() -> None:
    world, core = World(0, Network(constant(5))), Recorder(SetTimer(Named("tick"), 20))
    world.add(2, core)
    world.add(1, Recorder(say(2, 1), say(2, 2)))
    world.run_until(1)
    world.pause(2)
    world.run_until(1_000)
    assert not core.heard
    world.resume(2)
    world.run_until(2_000)
    assert core.messages == [1, 2]
    assert core.heard[-1] == (1_000, TimerFired(Named("tick")))


def test_a_partition_keeps_messages_inside_and_breaks_connections_across() -> None:
    world, third = World(0), Recorder()
    cores = {node: Recorder(Connect(3, ""), SetTimer(Named("x"), 1_000), on_timer=(say(3, node),)) for node in (1, 2)}
    for node, core in cores.items():
        world.add(node, core)
    world.add(3, third)
    world.run_until(10)
    world.partition([[1], [2, 3]])
    world.run_until(200_000)
    assert [event for _, event in cores[1].heard if isinstance(event, PeerLost)] == [PeerLost(3, 1)]
    assert not any(isinstance(event, PeerLost) for _, event in cores[2].heard)
    assert third.messages == [2]


def test_a_cut_that_heals_before_it_is_noticed_is_no_loss() -> None:
    world, core = World(0, Network(detection=constant(50_000))), Recorder(Connect(2, ""))
    world.add(1, core)
    world.add(2, Recorder())
    world.run_until(10)
    world.partition([[1], [2]])
    world.run_until(20_000)
    world.heal()
    world.run_until(200_000)
    assert not core.heard


def test_muting_a_pair_loses_messages_and_tells_no_node() -> None:
    told: list[object] = []
    world = World(0, tracer=lambda time, node, what: told.append(what))
    one, two = Recorder(Connect(2, ""), say(2)), Recorder(say(1))
    world.mute([(1, 2)])
    world.add(1, one)
    world.add(2, two)
    world.run_until(500_000)
    assert not one.heard
    assert not two.heard
    assert [what.why for what in told if isinstance(what, Dropped)] == ["cut off", "cut off"]


def test_clocks_drift_apart_within_the_bound_asked_for() -> None:
    world = World(4, Network(drift=0.05))
    cores = {node: Recorder(SetTimer(Named("x"), 1_000_000)) for node in range(20)}
    for node, core in cores.items():
        world.add(node, core)
    world.run_until(2_000_000)
    rates = {place.drift for place in world.places.values()}
    assert len(rates) == 20
    assert all(0.95 <= rate <= 1.05 for rate in rates)
    assert all(abs(core.heard[0][0] - 1_000_000) <= 1 for core in cores.values()), "by its own clock each is on time"


def test_messages_and_bytes_are_counted_by_kind() -> None:
    world = World(0)
    world.add(1, Recorder(say(2), say(2), say(7)))
    world.add(2, Recorder(say(1)))
    world.run_until(10_000)
    size = len(encode(Heartbeat(1)))
    assert world.messages == {"Heartbeat": 4}
    assert world.bytes == {"Heartbeat": 4 * size}


def test_generators_depend_on_seed_and_words_alone() -> None:
    assert generator_for(1, "a", 2).random() == generator_for(1, "a", 2).random()
    assert len({generator_for(*words).random() for words in ((1, "a"), (2, "a"), (1, "b"), (1, "a", 0))}) == 4


def test_who_was_connected_to_a_process_that_ended_is_refused_twice_unless_its_host_is_down() -> None:
    def heard(silent: float) -> list[tuple[int, Input]]:
        network = Network(detection=None, refusal=constant(500), silent_crashes=silent)
        world, watcher, stranger = World(0, network), Recorder(Connect(2, "")), Recorder()
        for node, core in ((1, watcher), (2, Recorder()), (3, stranger)):
            world.add(node, core)
        world.run_until(1_000)
        world.crash(2)
        world.run_until(1_000_000)
        assert not stranger.heard
        return watcher.heard

    assert heard(0.0) == [(1_500, LinkBroken(2)), (1_500, PeerRefused(2)), (1_500 + REFUSAL_GAP, PeerRefused(2))]
    assert not heard(1.0)


def test_a_message_to_a_process_that_ended_finds_nobody_there_unless_its_host_is_down() -> None:
    def heard(silent: float) -> list[tuple[int, Input]]:
        network = Network(detection=None, refusal=constant(500), silent_crashes=silent)
        asking = Recorder(SetTimer(Named("x"), 2_000), on_timer=[say(2), say(2)])  # both wait for one connection
        world = World(0, network)
        world.add(1, asking)
        world.add(2, Recorder())
        world.run_until(1_000)
        world.crash(2)
        world.run_until(1_000_000)
        return asking.heard[1:]

    assert heard(0.0) == [(2_500, PeerUnreached(2))]
    assert not heard(1.0)


def test_a_process_that_is_back_by_the_second_attempt_answers_it_as_a_later_incarnation() -> None:
    world, watcher = World(0, Network(detection=None, refusal=constant(500))), Recorder(Connect(2, ""))
    world.add(1, watcher)
    world.add(2, Recorder())
    world.run_until(1_000)
    world.crash(2)
    world.run_until(2_000)
    world.add(2, Recorder(), incarnation=2)
    world.run_until(1_000_000)
    assert [event for _, event in watcher.heard] == [LinkBroken(2), PeerRefused(2), PeerRefused(2, later=2)]


def test_a_network_that_is_cut_refuses_nothing() -> None:
    world, watcher = World(0, Network(detection=None, refusal=constant(500))), Recorder(Connect(2, ""))
    world.add(1, watcher)
    world.add(2, Recorder())
    world.run_until(1_000)
    world.partition([[1], [2]])
    world.crash(2)
    world.run_until(1_000_000)
    assert not watcher.heard
