"""The greedy rule where its text is easily misread, and the edges of what the kernel accepts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from omen.interests import Interests
from omen.kernels.engine import TUNED, Instance, Tuning, choose_links, unlinked

PATHS = {
    "rows": Tuning(cache_length=2, dense_divisor=0, small_nodes=0),
    "dense rows": Tuning(dense_divisor=1000, small_nodes=0),
    "all pairs": Tuning(small_nodes=1000),
}


@pytest.fixture(params=PATHS.values(), ids=PATHS.keys())
def path(request):
    return request.param


def instance(*topics_of: str) -> Interests:
    """One node for each word; its letters are its topics."""
    topics = sorted(set("".join(topics_of)))
    pairs = [(node, topics.index(letter)) for node, word in enumerate(topics_of) for letter in word]
    nodes, codes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Interests.from_codes(np.arange(len(topics_of)), np.arange(len(topics)), nodes, codes)


def links(interests, rho, path, labels=None, degrees=None, max_degree=-1, centre=-1):
    fresh = unlinked(interests)
    given = Instance(
        interests,
        fresh.labels if labels is None else np.array(labels, dtype=np.int32),
        fresh.degrees if degrees is None else np.array(degrees, dtype=np.int32),
        max_degree,
    )
    return choose_links(given, rho, centre, path).tolist()


def test_no_nodes_and_no_shared_topics_need_no_links(path):
    assert links(instance(), 3.0, path) == []
    assert links(instance("", ""), 3.0, path) == []
    assert links(instance("a", "b", ""), math.inf, path) == []


def test_ties_go_to_the_lowest_pair(path):
    assert links(instance("ab", "ab", "ab"), 0.0, path) == [[0, 1], [0, 2]]


def test_with_maximum_degree_0_every_node_is_saturated(path):
    """Nothing is degree-friendly yet, so even MinMax-ODA takes the best pair of all first."""
    assert links(instance("a", "a", "bcd", "bcd"), math.inf, path) == [[2, 3], [0, 1]]


def test_links_that_contribute_nothing_are_never_degree_friendly_candidates(path):
    """After (0, 1) only the useless (2, 3) would not raise the maximum degree; MinMax-ODA must raise it."""
    chosen = links(instance("ab", "ab", "a", "b"), math.inf, path)
    assert chosen == [[0, 1], [0, 2], [1, 3]]


def test_friendly_link_wins_when_rho_times_its_contribution_just_reaches_the_best(path):
    """After (0, 1): the friendly (3, 4) contributes 2, the best (0, 2) contributes 3."""
    interests = instance("abcdexyz", "abcdemno", "xyz", "pq", "pq")
    assert links(interests, 1.5, path)[:2] == [[0, 1], [3, 4]]
    assert links(interests, 1.49, path)[:2] == [[0, 1], [0, 2]]
    assert links(interests, 0.0, path)[:2] == [[0, 1], [0, 2]]


def test_given_maximum_degree_makes_nodes_friendly_that_would_be_saturated(path):
    interests = instance("abc", "abc", "abc", "abc")
    assert links(interests, math.inf, path, degrees=[1, 0, 0, 0]) == [[1, 2], [0, 1], [2, 3]]
    assert links(interests, math.inf, path, degrees=[1, 0, 0, 0], max_degree=5) == [[0, 1], [0, 2], [0, 3]]


def test_given_maximum_degree_below_a_present_degree_is_ignored(path):
    interests = instance("abc", "abc", "abc", "abc")
    assert links(interests, math.inf, path, degrees=[2, 0, 0, 0], max_degree=1) == links(
        interests, math.inf, path, degrees=[2, 0, 0, 0]
    )


def test_subscribers_already_connected_are_not_linked_again(path):
    assert links(instance("a", "a", "a", "a"), 3.0, path, labels=[7, 7, 2, 2]) == [[0, 2]]
    assert links(instance("a", "a", "a"), 3.0, path, labels=[4, 4, 4]) == []


def test_labels_are_names_and_nothing_else(path):
    interests = instance("abc", "ab", "bc", "ac", "abc")
    fresh = unlinked(interests).labels.astype(np.int64)
    assert links(interests, 3.0, path, labels=1000 - 3 * fresh) == links(interests, 3.0, path)


def test_negative_labels_are_refused():
    for centre in (-1, 0):
        with pytest.raises(ValueError, match="negative"):
            links(instance("a", "a"), 3.0, Tuning(1, 0, 0), labels=[-1, 0], centre=centre)


def test_centre_is_an_end_of_every_link(path):
    interests = instance("ab", "abcd", "cd", "abcd")
    assert links(interests, 0.0, path, centre=2) == [[1, 2], [2, 3]]
    assert links(interests, 0.0, path, centre=0) == [[0, 1], [0, 3]]


def test_joining_a_connected_overlay_takes_one_link_a_topic_at_most(path):
    """Nodes 0 and 1 are connected in a, b, c; node 2 joins and needs one of them."""
    interests = instance("abc", "abc", "abc")
    labels = [0, 0, 1] * 3
    assert links(interests, 3.0, path, labels=labels, degrees=[1, 1, 0], centre=2) == [[0, 2]]
    assert links(interests, 3.0, path, labels=labels, degrees=[2, 1, 0], centre=2) == [[1, 2]]


def test_inputs_are_left_as_they_were(path):
    interests = instance("abc", "abc", "ab", "c")
    given = unlinked(interests)
    for centre in (-1, 1):
        choose_links(given, 3.0, centre, path)
    assert given.degrees.tolist() == [0, 0, 0, 0]
    assert given.labels.tolist() == unlinked(interests).labels.tolist()


def test_topic_of_70_000_becomes_a_path_of_degree_2():
    nodes = 70_000
    codes = np.arange(nodes)
    interests = Interests.from_codes(codes, np.arange(1), codes, np.zeros(nodes, dtype=np.int64))
    chosen = np.array(links(interests, 3.0, TUNED))
    assert chosen.shape == (nodes - 1, 2)
    assert np.bincount(chosen.ravel()).max() == 2


def test_dense_rows_of_more_members_than_16_bits_tell_apart_equal_sparse_ones():
    """All hold the first topic, few hold others too: only their pairs contribute more than 1 and are streamed."""
    nodes = 33_000
    holds = np.stack([np.arange(nodes) % step == 0 for step in (1, 70, 90)], axis=1)
    node_codes, topic_codes = np.nonzero(holds)
    interests = Interests.from_codes(np.arange(nodes), np.arange(3), node_codes, topic_codes)
    sparse = links(interests, 3.0, Tuning(dense_divisor=0))
    assert links(interests, 3.0, TUNED) == sparse
    assert links(interests, 3.0, Tuning(dense_divisor=1000)) == sparse


def test_more_than_255_shared_topics_are_counted():
    topics = 700
    nodes = 80
    node_codes = np.repeat(np.arange(nodes), topics)
    interests = Interests.from_codes(np.arange(nodes), np.arange(topics), node_codes, np.tile(np.arange(topics), nodes))
    for path in PATHS.values():
        assert links(interests, 0.0, path) == [[0, v] for v in range(1, nodes)]
