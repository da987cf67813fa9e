from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.errors import InvalidInput
from omen.interests import Interests
from omen.kernels.sweeps import bound_diameters
from omen.overlay import Overlay
from omen.workloads.profile import Distribution, Profile, lowest_keys, profile_workload

INSTANCES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=40).map(
    lambda pairs: Interests.from_pairs(pairs, nodes=range(10))
)


def tdi_by_definition(interests: Interests, d: int) -> float:
    """SpiderCast 3.5.2, word for word: the mean over nodes of the mean of the d highest intersections."""
    wants = [set(interests.topics_of(node).tolist()) for node in range(interests.node_count)]
    means = []
    for n, mine in enumerate(wants):
        values = [
            100 * len(mine & theirs) / min(len(mine), len(theirs)) if mine and theirs else 0.0
            for m, theirs in enumerate(wants)
            if m != n
        ]
        highest = sorted(values, reverse=True)[:d]
        means.append(sum(highest) / len(highest))
    return sum(means) / len(means)


@settings(max_examples=60, deadline=None)
@given(INSTANCES, st.integers(1, 12))
def test_top_d_intersection_is_the_papers(interests: Interests, d: int) -> None:
    assert profile_workload(interests, closest=d).likeness.tdi == pytest.approx(tdi_by_definition(interests, d))


@settings(max_examples=60, deadline=None)
@given(INSTANCES)
def test_likeness_counts_what_pairs_share(interests: Interests) -> None:
    wants = [set(interests.topics_of(node).tolist()) for node in range(interests.node_count)]
    shared = [len(a & b) for a, b in itertools.combinations(wants, 2)]
    likeness = profile_workload(interests).likeness
    assert likeness.mean_shared == pytest.approx(np.mean(shared))
    assert likeness.sharing_pairs == pytest.approx(np.mean([common > 0 for common in shared]))
    assert likeness.sampled == 10
    assert likeness.tdi_error == 0.0


def test_profile_counts_nodes_without_topics_and_names_the_largest_topics() -> None:
    pairs = [("ann", "tea"), ("bob", "tea"), ("bob", "rum"), ("cid", "ale")]
    profile = profile_workload(Interests.from_pairs(pairs, nodes=["ann", "bob", "cid", "dan"]), largest=2)
    assert (profile.nodes, profile.topics, profile.subscriptions, profile.nodes_without_topics) == (4, 3, 4, 1)
    assert profile.largest_topics == (("tea", 2), ("ale", 1))
    assert profile.sizes.histogram == ((0, 1), (1, 2), (2, 1))
    assert profile.sizes.ccdf() == ((0, 1.0), (1, 0.75), (2, 0.25))
    assert profile.popularity.summary() == {"minimum": 1, "median": 1, "mean": 4 / 3, "p99": 2, "maximum": 2}


def test_uniform_independent_interests_have_lift_one() -> None:
    rng = np.random.default_rng(3)
    pairs = [(n, int(t)) for n in range(400) for t in rng.choice(50, size=10, replace=False)]
    assert profile_workload(Interests.from_pairs(pairs)).likeness.lift == pytest.approx(1.0, abs=0.02)


def test_a_workload_without_subscriptions_has_a_profile() -> None:
    empty: Profile = profile_workload(Interests.from_pairs([], nodes=[1]))
    assert empty.likeness.tdi == 0.0
    assert empty.as_dict()["popularity"]["maximum"] == 0
    assert profile_workload(Interests.from_pairs([])).nodes == 0


def test_the_sample_is_the_same_however_nodes_are_split() -> None:
    labels = np.arange(1000, dtype=np.int64)
    whole = set(labels[lowest_keys(labels, 20, 5)].tolist())
    parts = np.concatenate([part[lowest_keys(part, 20, 5)] for part in np.array_split(labels, 7)])
    assert set(parts[lowest_keys(parts, 20, 5)].tolist()) == whole
    assert whole != set(labels[lowest_keys(labels, 20, 6)].tolist())


def test_quantiles_are_values_that_occur() -> None:
    distribution = Distribution.of(np.array([1, 1, 2, 9]))
    assert [distribution.quantile(share) for share in (0.0, 0.5, 0.51, 1.0)] == [1, 1, 2, 9]


def test_options_below_one_are_refused() -> None:
    with pytest.raises(InvalidInput, match="closest"):
        profile_workload(Interests.from_pairs([(1, 1)]), closest=0)


@pytest.mark.parametrize("seed", range(8))
def test_sweeps_bound_the_diameter_from_both_sides(seed: int) -> None:
    graphs = [nx.gnm_random_graph(30, 29 + 4 * seed, seed=seed + 100 * i) for i in range(4)]
    graphs = [graph.subgraph(max(nx.connected_components(graph), key=len)) for graph in graphs]
    graphs += [nx.path_graph(9), nx.star_graph(5), nx.empty_graph(1)]
    union = nx.disjoint_union_all(graphs)
    overlay = Overlay.from_links(range(union.number_of_nodes()), union.edges)
    offsets = np.cumsum([0, *(graph.number_of_nodes() for graph in graphs)]).astype(np.int64)
    low, high = np.empty((2, len(graphs)), dtype=np.int32)
    bound_diameters(offsets, *overlay.adjacency, low, high)
    exact = np.array([nx.diameter(graph) for graph in graphs])
    assert (low <= exact).all()
    assert (exact <= high).all()
    assert (low[-3:] == exact[-3:]).all()
