"""Whatever comes in, nothing raises out of a node, and what it breaks in others' minds is put right."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.simulation.hostile import strike_world

WORLDS, MESSAGES = 20, 500
received = 0


def test_ten_thousand_mutated_messages_raise_nothing_and_corrupt_nothing() -> None:
    before = received
    mutated_messages_raise_nothing_and_corrupt_nothing()
    assert received - before >= WORLDS * MESSAGES >= 10_000


@settings(max_examples=WORLDS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
@example(seed=23842905)  # a forged incarnation at the successor: no request of the node was taken any more
def mutated_messages_raise_nothing_and_corrupt_nothing(seed: int) -> None:
    global received
    outcome = strike_world(seed, MESSAGES)
    received += MESSAGES
    assert outcome.went_well, outcome.complaints()
    assert outcome.settled
    assert sum(outcome.refused.values()) > MESSAGES // 4
