"""The compiled CD-ODA family chooses the hubs and links of the literal algorithms, in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from omen.interests import Interests
from omen.kernels.hubs import HIGHEST_DENSITY, MOST_NEIGHBOURS, MOST_WEIGHTED_NEIGHBOURS, hub_links
from reference.greedy import Link, Topics
from reference.hubs import Score, density, neighbours, stars, weighted_neighbours
from reference.instances import as_interests, as_topics, random_interests, tiny_topics

RULES = {
    "cd-oda": (MOST_NEIGHBOURS, neighbours),
    "cd-oda-i": (MOST_WEIGHTED_NEIGHBOURS, weighted_neighbours),
    "cd-oda-ii": (HIGHEST_DENSITY, density),
}


def links_of_kernel(interests: Interests, rule: int) -> list[Link]:
    chosen = hub_links(
        interests.node_offsets, interests.node_topics, interests.topic_offsets, interests.topic_nodes, rule
    )
    return [(u, v) for u, v in chosen.tolist()]


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=120, deadline=None)
@given(tiny_topics())
def test_hubs_equal_their_oracle_in_order_on_tiny_instances(name: str, instance: tuple[Topics, int]) -> None:
    rule, score = RULES[name]
    topics_of, topic_count = instance
    assert links_of_kernel(as_interests(topics_of, topic_count), rule) == stars(topics_of, score)


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("name", RULES)
def test_hubs_equal_their_oracle_in_order_on_larger_instances(name: str, skew: float) -> None:
    rule: int
    score: Score
    rule, score = RULES[name]
    interests = random_interests(70, 60, 2, 9, skew, seed=5)
    expected = stars(as_topics(interests), score)
    assert links_of_kernel(interests, rule) == expected
    assert len(set(expected)) == len(expected)
