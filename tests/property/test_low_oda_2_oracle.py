"""Low-ODA-2 chooses the links of the literal algorithm, in the same order, and no single loss cuts a topic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen import check_overlay, design_overlay
from omen.design.dispensable import make_dispensable
from omen.design.greedy import design_low_oda
from omen.interests import Interests
from reference.greedy import Link, Topics
from reference.instances import as_interests, as_topics, random_interests, tiny_topics
from reference.low_oda_2 import low_oda_2


def added(interests: Interests, rho: float) -> list[Link]:
    """The links after those of Low-ODA, in order."""
    overlay = design_low_oda(interests, rho)
    return make_dispensable(interests, overlay, rho)[overlay.u.size :]


def expected(topics_of: Topics, interests: Interests, rho: float) -> list[Link]:
    return low_oda_2(topics_of, rho)[design_low_oda(interests, rho).u.size :]


@settings(max_examples=150, deadline=None)
@given(tiny_topics(), st.sampled_from([1.0, 3.0, 10.0]))
def test_low_oda_2_equals_its_oracle_in_order_on_tiny_instances(instance: tuple[Topics, int], rho: float) -> None:
    topics_of, topic_count = instance
    interests = as_interests(topics_of, topic_count)
    assert added(interests, rho) == expected(topics_of, interests, rho)
    assert check_overlay(interests, design_overlay(interests, "low-oda-2", rho=rho), k=2).holds


LARGER = {
    "60 nodes, uniform": random_interests(60, 12, 3, 6, 0.0, seed=1),
    "60 nodes, skewed": random_interests(60, 20, 2, 6, 1.0, seed=2),
}


@pytest.mark.parametrize("name", LARGER)
def test_low_oda_2_equals_its_oracle_in_order_on_larger_instances(name: str) -> None:
    interests = LARGER[name]
    assert added(interests, 3.0) == expected(as_topics(interests), interests, 3.0)


def test_low_oda_2_spares_the_hubs_that_gm2_makes() -> None:
    interests = random_interests(200, 20, 3, 6, 0.0, seed=3)
    ours, gm2 = design_overlay(interests, "low-oda-2"), design_overlay(interests, "gm2")
    assert check_overlay(interests, ours, k=2).holds
    assert ours.degrees.max() * 2 < gm2.degrees.max()
