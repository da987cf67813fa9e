"""HararyPT, CyclePT and RingPT build what their definitions say."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.interests import Interests, label_keys
from omen.kernels.counter_random import mix
from omen.systems import design_overlay
from reference.greedy import Topics
from reference.instances import as_interests, tiny_topics
from reference.per_topic import by_label, harary, per_topic


@settings(max_examples=120, deadline=None)
@given(tiny_topics(), st.integers(1, 9))
def test_harary_pt_equals_its_oracle(instance: tuple[Topics, int], k: int) -> None:
    topics_of, topic_count = instance
    overlay = design_overlay(as_interests(topics_of, topic_count), "harary-pt", k=k)
    assert set(overlay.links()) == per_topic(topics_of, k, by_label)


@settings(max_examples=60, deadline=None)
@given(tiny_topics())
def test_ring_pt_equals_its_oracle(instance: tuple[Topics, int]) -> None:
    topics_of, topic_count = instance
    overlay = design_overlay(as_interests(topics_of, topic_count), "ring-pt")
    assert set(overlay.links()) == per_topic(topics_of, 2, by_label)


@settings(max_examples=60, deadline=None)
@given(tiny_topics(), st.integers(0, 2**63 - 1))
def test_cycle_pt_orders_each_topic_by_draws_from_labels_alone(instance: tuple[Topics, int], seed: int) -> None:
    topics_of, topic_count = instance
    keys = label_keys(np.arange(max(topic_count, len(topics_of))))

    def drawn(topic: int, subscribers: list[int]) -> list[int]:
        return sorted(subscribers, key=lambda node: (int(mix(np.uint64(seed), keys[topic], keys[node])), node))

    overlay = design_overlay(as_interests(topics_of, topic_count), "cycle-pt", seed=seed)
    assert set(overlay.links()) == per_topic(topics_of, 2, drawn)


@pytest.mark.parametrize("k", range(1, 9))
def test_harary_graphs_are_k_connected_with_the_fewest_links(k: int) -> None:
    for n in range(k + 1, 16):
        links = harary(k, range(n))
        assert len(links) == (n - 1 if k == 1 else (k * n + 1) // 2)
        assert networkx.node_connectivity(networkx.Graph(sorted(links))) == k


def test_cycle_pt_gives_a_topic_the_same_order_whatever_else_there_is() -> None:
    pairs = [(f"node {i}", "shared") for i in range(12)]
    alone = Interests.from_pairs(pairs)
    among_others = Interests.from_pairs(
        [*pairs, *((f"a stranger {i}", "another") for i in range(5)), ("node 3", "zebras")]
    )
    links = set(design_overlay(alone, "cycle-pt", seed=9).links())
    assert len(links) == 12
    assert links <= set(design_overlay(among_others, "cycle-pt", seed=9).links())


def test_cycle_pt_draws_topics_independently_and_seeds_differ() -> None:
    interests = Interests.from_pairs([(node, topic) for node in range(30) for topic in range(2)])
    overlay = design_overlay(interests, "cycle-pt", seed=1)
    assert overlay.link_count > 45
    assert overlay == design_overlay(interests, "cycle-pt", seed=1)
    assert overlay != design_overlay(interests, "cycle-pt", seed=2)
