"""`--polish` takes the steps of the literal search, keeps topics connected, and never makes anything worse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen import check_overlay, design_overlay
from omen.design.polishing import polish_overlay
from omen.interests import Interests
from omen.overlay import Overlay
from reference.greedy import Link, Topics
from reference.instances import as_interests, as_topics, random_interests, tiny_topics
from reference.polish import polish

GREEDY = ("gm", "low-oda", "minmax-oda")


def links_of(overlay: Overlay) -> set[Link]:
    return set(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))


def require_same(interests: Interests, topics_of: Topics, algorithm: str) -> tuple[Overlay, Overlay]:
    before = design_overlay(interests, algorithm)
    after = polish_overlay(interests, before)
    assert links_of(after) == polish(topics_of, links_of(before))
    assert check_overlay(interests, after).holds
    assert after.link_count <= before.link_count
    assert after.degrees.max(initial=0) <= before.degrees.max(initial=0)
    return before, after


@settings(max_examples=80, deadline=None)
@given(tiny_topics(), st.sampled_from(GREEDY))
def test_polish_equals_its_oracle_on_tiny_instances(instance: tuple[Topics, int], algorithm: str) -> None:
    topics_of, topic_count = instance
    require_same(as_interests(topics_of, topic_count), topics_of, algorithm)


@pytest.mark.parametrize("algorithm", GREEDY)
def test_polish_equals_its_oracle_on_a_larger_instance(algorithm: str) -> None:
    interests = random_interests(14, 5, 2, 3, 0.5, seed=4)
    require_same(interests, as_topics(interests), algorithm)


@pytest.mark.parametrize("algorithm", GREEDY)
def test_polish_lowers_degrees_and_is_the_same_each_time(algorithm: str) -> None:
    interests = random_interests(120, 20, 3, 6, 1.0, seed=2)
    before = design_overlay(interests, algorithm)
    after = polish_overlay(interests, before)
    assert check_overlay(interests, after).holds
    assert after.link_count <= before.link_count
    assert (after.degrees.max(), after.link_count) < (before.degrees.max(), before.link_count)
    assert links_of(polish_overlay(interests, before)) == links_of(after)
    assert links_of(polish_overlay(interests, after)) == links_of(after)
