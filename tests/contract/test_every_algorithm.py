"""What every algorithm owes its callers, on every tiny instance there is a reason to fear."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from omen.interests import Interests
from omen.quality import check_overlay, topic_diameters
from omen.systems import ALGORITHMS, design_overlay
from reference.greedy import Topics
from reference.instances import as_interests, random_interests, tiny_topics

INSTANCES = {
    "nothing": Interests.from_pairs([]),
    "one node without topics": Interests.from_pairs([], nodes=["alone"]),
    "nodes without topics": Interests.from_pairs([], nodes=range(5)),
    "one subscription": Interests.from_pairs([("ann", "tea")]),
    "two who share": Interests.from_pairs([("ann", "tea"), ("bob", "tea")]),
    "two who do not": Interests.from_pairs([("ann", "tea"), ("bob", "jazz")]),
    "three who share": Interests.from_pairs([(node, "tea") for node in ("ann", "bob", "cid")]),
    "identical nodes": Interests.from_pairs(list(product(range(7), range(4)))),
    "a chain": Interests.from_pairs([(node, topic) for topic in range(9) for node in (topic, topic + 1)]),
    "a star": Interests.from_pairs([(node, topic) for topic in range(1, 9) for node in (0, topic)]),
    "a topic nobody wants": as_interests({0: {1}, 1: {1, 2}, 2: {2}}, 4),
    "negative and large labels": Interests.from_pairs(list(product([-(2**62), -1, 0, 7, 2**62], [-5, 3]))),
    "labels beyond ASCII": Interests.from_pairs(list(product(["é", "z", "日本", ""], ["ß", "\U0001f600"]))),
    "forty nodes": random_interests(40, 15, 0, 6, 0.5, seed=6),
    "many shared topics": random_interests(12, 100, 60, 100, 0.0, seed=7),
}

SETTINGS: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ALGORITHMS] + [
    ("low-oda", {"rho": 1}),
    ("low-oda", {"rho": math.inf}),
    ("harary-pt", {"k": 1}),
    ("harary-pt", {"k": 3}),
    ("harary-pt", {"k": 5}),
    ("harary-pt", {"k": 1000}),
    ("cycle-pt", {"seed": 2**63 - 1}),
    ("spidercast", {"kg": 2, "kr": 1, "seed": 2**63 - 1}),
    ("spidercast", {"adaptive": 1}),
    ("spidercast", {"view": 0.3}),
    ("spidercast", {"kg": 0, "kr": 1}),
    ("similarity", {"x": 2, "y": 1}),
    ("random", {"y": 1}),
]


def links_anybody(name: str, options: dict[str, Any]) -> bool:
    return name == "random" or bool(options.get("y"))


def owes(interests: Interests, name: str, options: dict[str, Any]) -> None:
    overlay = design_overlay(interests, name, **options)
    assert np.array_equal(overlay.nodes, interests.nodes)
    promised = ALGORITHMS[name].promise(options)
    assert promised == 0 or check_overlay(interests, overlay, k=promised).holds
    for u, v in zip(overlay.u.tolist(), overlay.v.tolist(), strict=True):
        assert u < v
        shared = np.intersect1d(interests.topics_of(u), interests.topics_of(v))
        assert shared.size > 0 or links_anybody(name, options)
    keys = overlay.u.astype(np.int64) * interests.node_count + overlay.v
    assert np.all(np.diff(keys) > 0)
    assert design_overlay(interests, name, **options) == overlay


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize(("name", "options"), SETTINGS, ids=str)
def test_every_algorithm_keeps_its_promise_and_links_only_who_share_a_topic(
    name: str, options: dict[str, Any], instance: str
) -> None:
    owes(INSTANCES[instance], name, options)


@settings(max_examples=40, deadline=None)
@given(tiny_topics())
def test_every_algorithm_keeps_its_promise_on_drawn_instances(instance: tuple[Topics, int]) -> None:
    interests = as_interests(*instance)
    for name, options in SETTINGS:
        owes(interests, name, options)


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize("name", ["cd-oda", "cd-oda-i", "cd-oda-ii"])
def test_hub_algorithms_keep_every_topic_within_two_links(name: str, instance: str) -> None:
    interests = INSTANCES[instance]
    diameters = topic_diameters(interests, design_overlay(interests, name))
    assert all(0 <= diameter <= 2 for diameter in diameters.tolist())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_relabelling_in_the_same_order_changes_nothing_but_labels(name: str) -> None:
    if name == "cycle-pt":
        pytest.skip("its order is drawn from the labels")
    numbered = INSTANCES["forty nodes"]
    named = Interests.from_pairs(
        [(f"n{node:03}", f"t{topic:03}") for node, topic in numbered.pairs()],
        nodes=[f"n{node:03}" for node in range(numbered.node_count)],
    )
    expected = [(f"n{u:03}", f"n{v:03}") for u, v in design_overlay(numbered, name).links()]
    assert design_overlay(named, name).links() == expected
