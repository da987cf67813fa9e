"""Both greedy engines, compiled and small, choose the links of the literal algorithm, in the same order."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from omen.interests import Interests
from omen.kernels import small
from omen.kernels.engine import ALL_PAIRS, TUNED, Instance, Tuning, choose_links, unlinked
from reference.greedy import Limits, Link, all_pairs, construct_low_edges, pairs_with
from reference.instances import (
    as_interests,
    as_topics,
    component_labels,
    partial_links,
    random_interests,
    tiny_topics,
)

RHOS = [0.0, 1.0, 1.5, 2.0, 3.0, 8.0, math.inf]
SPARSE, DENSE, DENSE_AND_WIDE = 0, 1000, -1000

paths = st.builds(
    Tuning,
    st.sampled_from([1, 2, 3, 64]),
    st.sampled_from([SPARSE, 2, 4, DENSE, -4, DENSE_AND_WIDE]),
    st.sampled_from([0, 0, 64]),
)


def links_of_engine(
    instance: Instance, rho: float, centre: int = ALL_PAIRS, path: Tuning = TUNED, least: int = 1, raising: int = 1
) -> list[Link]:
    return [(u, v) for u, v in choose_links(instance, rho, centre, path, least, raising).tolist()]


def links_of_small(instance: Instance, rho: float, centre: int = ALL_PAIRS) -> list[Link]:
    """The same instance as plain lists, to the engine that needs no compiler."""
    offsets, members = instance.rows.topic_offsets.tolist(), instance.rows.topic_nodes.tolist()
    topics_of: list[list[int]] = [[] for _ in instance.degrees]
    labels_of: list[list[int]] = [[] for _ in instance.degrees]
    for topic, (start, end) in enumerate(pairwise(offsets)):
        for node, label in zip(members[start:end], instance.labels[start:end].tolist(), strict=True):
            topics_of[node].append(topic)
            labels_of[node].append(label)
    return small.choose_links(topics_of, labels_of, instance.degrees.tolist(), rho, centre, instance.max_degree)


def design(interests: Interests, rho: float, path: Tuning) -> list[Link]:
    return links_of_engine(unlinked(interests), rho, path=path)


def degree_array(nodes: int, links: set[Link]) -> np.ndarray:
    ends = np.array([end for link in links for end in link], dtype=np.int64)
    return np.bincount(ends, minlength=nodes).astype(np.int32)


@settings(max_examples=150, deadline=None)
@given(tiny_topics(), st.sampled_from(RHOS), paths)
def test_design_from_nothing_equals_the_literal_algorithm(instance, rho, path):
    topics_of, topic_count = instance
    expected = construct_low_edges(topics_of, [], all_pairs(topics_of), rho)
    interests = as_interests(topics_of, topic_count)
    assert design(interests, rho, path) == expected
    assert links_of_small(unlinked(interests), rho) == expected


@settings(max_examples=150, deadline=None)
@given(tiny_topics(), st.data(), st.sampled_from(RHOS), paths, st.integers(-1, 8))
def test_completing_an_overlay_equals_the_literal_algorithm(instance, data: DataObject, rho, path, max_degree):
    topics_of, topic_count = instance
    existing = data.draw(partial_links(topics_of))
    interests = as_interests(topics_of, topic_count)
    expected = construct_low_edges(topics_of, existing, all_pairs(topics_of) - existing, rho, max_degree=max_degree)
    labels = component_labels(interests, topics_of, existing)
    degrees = degree_array(len(topics_of), existing)
    whole = Instance(interests, labels, degrees, max_degree)
    assert links_of_engine(whole, rho, path=path) == expected
    assert links_of_small(whole, rho) == expected


@settings(max_examples=100, deadline=None)
@given(tiny_topics(), st.data(), st.sampled_from(RHOS), st.booleans(), st.integers(-1, 8))
def test_linking_one_node_equals_the_literal_algorithm(instance, data: DataObject, rho, alone, max_degree):
    topics_of, topic_count = instance
    existing = data.draw(partial_links(topics_of))
    centre = data.draw(st.integers(0, len(topics_of) - 1))
    if alone:
        existing = {link for link in existing if centre not in link}
    interests = as_interests(topics_of, topic_count)
    expected = construct_low_edges(
        topics_of, existing, pairs_with(centre, topics_of) - existing, rho, max_degree=max_degree
    )
    labels = component_labels(interests, topics_of, existing)
    degrees = degree_array(len(topics_of), existing)
    whole = Instance(interests, labels, degrees, max_degree)
    assert links_of_engine(whole, rho, centre) == expected
    assert links_of_small(whole, rho, centre) == expected


@settings(max_examples=100, deadline=None)
@given(tiny_topics(), st.data(), st.sampled_from(RHOS), paths, st.booleans())
def test_repair_within_a_set_equals_the_literal_algorithm(instance, data: DataObject, rho, path, degree_of_all):
    """The set's own instance, with the components and degrees of the whole overlay."""
    topics_of, topic_count = instance
    existing = data.draw(partial_links(topics_of))
    inside = sorted(data.draw(st.sets(st.sampled_from(sorted(topics_of)))))
    wanted = data.draw(st.sets(st.integers(0, topic_count - 1)))
    topics_of = {node: topics & wanted for node, topics in topics_of.items()}
    whole = as_interests(topics_of, topic_count)
    label_of = dict(
        zip(
            [(t, int(v)) for t in range(topic_count) for v in whole.subscribers_of(t)],
            component_labels(whole, topics_of, existing).tolist(),
            strict=True,
        )
    )
    degree = degree_array(len(topics_of), existing)
    highest = int(degree.max()) if degree_of_all else max([0, *degree[inside].tolist()])
    nobody = {node: (int(degree[node]) if node in inside else 0) for node in topics_of}
    expected = construct_low_edges(topics_of, existing, all_pairs(inside) - existing, rho, nobody, highest)
    part = as_interests({i: topics_of[node] for i, node in enumerate(inside)}, topic_count)
    labels = np.array(
        [label_of[t, inside[i]] for t in range(topic_count) for i in part.subscribers_of(t)], dtype=np.int32
    )
    of_set = Instance(part, labels, degree[inside].astype(np.int32), highest)
    for chosen in (links_of_engine(of_set, rho, path=path), links_of_small(of_set, rho)):
        assert [(inside[u], inside[v]) for u, v in chosen] == expected


@settings(max_examples=150, deadline=None)
@given(tiny_topics(), st.data(), st.sampled_from(RHOS), paths, st.integers(1, 4), st.booleans())
def test_least_and_caps_equal_the_literal_algorithm_with_them(instance, data: DataObject, rho, path, least, alone):
    topics_of, topic_count = instance
    existing = data.draw(partial_links(topics_of))
    caps = data.draw(st.lists(st.integers(0, 5), min_size=len(topics_of), max_size=len(topics_of)))
    centre = data.draw(st.integers(0, len(topics_of) - 1)) if alone else ALL_PAIRS
    pairs = pairs_with(centre, topics_of) if alone else all_pairs(topics_of)
    limits = Limits(least, dict(enumerate(caps)))
    expected = construct_low_edges(topics_of, existing, pairs - existing, rho, limits=limits)
    interests = as_interests(topics_of, topic_count)
    whole = Instance(
        interests,
        component_labels(interests, topics_of, existing),
        degree_array(len(topics_of), existing),
        caps=np.array(caps, np.int32),
    )
    assert links_of_engine(whole, rho, centre, path, least) == expected


@settings(max_examples=150, deadline=None)
@given(tiny_topics(), st.data(), st.sampled_from(RHOS), paths, st.integers(1, 3), st.integers(1, 9), st.integers(-1, 8))
def test_links_that_raise_the_maximum_degree_contribute_as_much(instance, data, rho, path, least, raising, max_degree):
    topics_of, topic_count = instance
    existing = data.draw(partial_links(topics_of))
    limits = Limits(least, raising=raising)
    expected = construct_low_edges(
        topics_of, existing, all_pairs(topics_of) - existing, rho, max_degree=max_degree, limits=limits
    )
    interests = as_interests(topics_of, topic_count)
    labels = component_labels(interests, topics_of, existing)
    whole = Instance(interests, labels, degree_array(len(topics_of), existing), max_degree)
    assert links_of_engine(whole, rho, ALL_PAIRS, path, least, raising) == expected


LARGER = {
    "100 nodes": random_interests(100, 40, 2, 5, 0.0, seed=1),
    "100 nodes, some topics popular": random_interests(100, 30, 2, 5, 1.5, seed=2),
    "100 nodes of many topics": random_interests(100, 20, 3, 10, 0.7, seed=3),
    "20 nodes sharing 300 topics": random_interests(20, 330, 290, 310, 0.0, seed=4),
}

LARGER_PATHS = [
    Tuning(small_nodes=0),
    Tuning(3, SPARSE, 0),
    Tuning(5, DENSE, 0),
    Tuning(1, DENSE_AND_WIDE, 0),
    Tuning(small_nodes=1000),
]


@pytest.mark.parametrize("rho", [0.0, 3.0, math.inf])
@pytest.mark.parametrize("name", LARGER)
def test_larger_instances_equal_the_literal_algorithm(name, rho):
    interests = LARGER[name]
    topics_of = as_topics(interests)
    expected = construct_low_edges(topics_of, [], all_pairs(topics_of), rho)
    for path in LARGER_PATHS:
        assert design(interests, rho, path) == expected
    assert links_of_small(unlinked(interests), rho) == expected


@pytest.mark.parametrize("rho", [0.0, 3.0, math.inf])
@pytest.mark.parametrize("name", LARGER)
def test_larger_instances_with_least_and_caps_equal_the_literal_algorithm(name, rho):
    interests = LARGER[name]
    topics_of = as_topics(interests)
    caps = {node: 2 + node % 3 for node in topics_of}
    expected = construct_low_edges(topics_of, [], all_pairs(topics_of), rho, limits=Limits(2, caps))
    fresh = unlinked(interests)
    capped = Instance(interests, fresh.labels, fresh.degrees, caps=np.array(list(caps.values()), np.int32))
    for path in LARGER_PATHS:
        assert links_of_engine(capped, rho, path=path, least=2) == expected


@pytest.mark.parametrize("raising", [2, 4, 7])
@pytest.mark.parametrize("name", LARGER)
def test_larger_instances_with_links_that_must_not_raise_equal_the_literal_algorithm(name, raising):
    interests = LARGER[name]
    topics_of = as_topics(interests)
    limits = Limits(2, raising=raising)
    expected = construct_low_edges(topics_of, [], all_pairs(topics_of), 3.0, max_degree=2, limits=limits)
    fresh = unlinked(interests)
    whole = Instance(interests, fresh.labels, fresh.degrees, 2)
    for path in LARGER_PATHS:
        assert links_of_engine(whole, 3.0, path=path, least=2, raising=raising) == expected
