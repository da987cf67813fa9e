"""Whatever comes in, nothing raises out of a node, and what it breaks in others' minds is put right."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.simulation.hostile import Recorder, attack

from omen.sim.running import Run
from omen.sim.scenario import BoundsSpec, ConfigSpec, EventSpec, NodeSpec, Scenario

WORLDS, MESSAGES = 20, 500
SCENARIO = Scenario(
    nodes={
        f"n{node}": NodeSpec(tuple(f"t{topic}" for topic in range(6) if (node >> topic % 3) % 2)) for node in range(10)
    },
    config=ConfigSpec(
        resilience=2,
        coverage=2,
        gossip_ms=200.0,
        standby_timeout_ms=1000.0,
        detector=True,
        heartbeat_ms=200.0,
        suspicion_ms=400.0,
        audit=True,
        audit_ms=2000.0,
        label_refresh=7,  # a label that is a lie lives for three times as many periods
        tombstone_life_ms=5000.0,
        offence_limit=0,  # it is the wire that lies here, in the names of honest nodes
    ),
    bounds=BoundsSpec(
        connected_s=60.0, handled_s=0.0, one_sided_s=40.0, idle_s=80.0
    ),  # who lies may say that it is handled
    events=(EventSpec(at=0.5, crash="n3"), EventSpec(at=1.5, join="x", topics=("t1", "t4"))),
)
received = 0


def test_ten_thousand_mutated_messages_raise_nothing_and_corrupt_nothing() -> None:
    before = received
    mutated_messages_raise_nothing_and_corrupt_nothing()
    assert received - before >= WORLDS * MESSAGES >= 10_000


@settings(max_examples=WORLDS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def mutated_messages_raise_nothing_and_corrupt_nothing(seed: int) -> None:
    global received
    run = Run(SCENARIO, seed % 7)
    recorder = Recorder()
    run.world.tracer = recorder
    draw = random.Random(seed)

    def strike() -> None:
        global received
        run.monitors.note_burst()
        received += attack(run.world, recorder, draw, MESSAGES)

    run.world.call(4_000_000, strike)
    for moment in range(40, 160):  # topics may be split for a while, and must not be in the end
        run.world.call(moment * 100_000 + 1, run.monitors.note_burst)
    run.hold_open(16_000_000)
    outcome = run.go()
    assert outcome.went_well, outcome.complaints()
    assert outcome.settled
    assert sum(outcome.refused.values()) > MESSAGES // 4
