"""Maintainers with k = 2: after every batch no loss of a single node cuts a topic."""

from __future__ import annotations

import pytest

from omen import check_overlay, design_overlay, start_maintainer
from omen.churn import Event, Join, Leave, Resubscribe
from omen.errors import InvalidInput
from omen.maintain import resume_maintainer
from reference.instances import random_interests

INTERESTS = random_interests(40, 8, 2, 5, 0.5, seed=11)
NODES = INTERESTS.nodes.tolist()
TOPICS = INTERESTS.topics.tolist()
BATCHES: list[list[Event]] = [
    [Leave(0.0, NODES[3])],
    [Leave(0.0, NODES[7]), Leave(0.0, NODES[8]), Join(0.0, NODES[3], tuple(TOPICS[:4]))],
    [Resubscribe(0.0, NODES[12], tuple(TOPICS[2:7])), Resubscribe(0.0, NODES[13], (TOPICS[0],))],
    [Join(0.0, NODES[7], None), Leave(0.0, NODES[20])],
    [Leave(0.0, node) for node in NODES[25:30]],
]


@pytest.mark.parametrize("system", ["shadow", "naive"])
def test_after_every_batch_the_overlay_is_two_connected(system: str) -> None:
    maintainer = start_maintainer(system, INTERESTS, k=2)
    for batch in BATCHES:
        maintainer.apply(batch)
        assert check_overlay(maintainer.interests(), maintainer.overlay(), k=2).holds


def test_with_k_1_it_is_not() -> None:
    maintainer = start_maintainer("shadow", INTERESTS)
    assert not check_overlay(maintainer.interests(), maintainer.overlay(), k=2).holds


def test_links_that_are_counted_on_are_not_rebalanced_away() -> None:
    maintainer = start_maintainer("shadow", INTERESTS, k=2)
    with pytest.raises(InvalidInput, match="k = 2 counts on"):
        maintainer.rebalance(50)
    assert check_overlay(maintainer.interests(), maintainer.overlay(), k=2).holds


def test_what_was_changed_is_told() -> None:
    maintainer = start_maintainer("shadow", INTERESTS, k=2)
    before = set(maintainer.overlay().links())
    change = maintainer.apply(BATCHES[0])
    assert (before | set(change.added)) - set(change.removed) == set(maintainer.overlay().links())


def test_an_overlay_with_cut_nodes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="would cut topic"):
        start_maintainer("shadow", INTERESTS, design_overlay(INTERESTS, "low-oda"), k=2)


def test_a_snapshot_of_a_maintainer_with_k_1_is_not_gone_on_with_at_k_2() -> None:
    maintainer = start_maintainer("shadow", INTERESTS)
    with pytest.raises(InvalidInput, match="would cut topic"):
        resume_maintainer("shadow", maintainer.snapshot(), k=2)


def test_a_snapshot_of_a_maintainer_with_k_2_is_gone_on_with() -> None:
    maintainer = start_maintainer("shadow", INTERESTS, k=2)
    maintainer.apply(BATCHES[0])
    resumed = resume_maintainer("shadow", maintainer.snapshot(), k=2)
    for batch in BATCHES[1:]:
        assert resumed.apply(batch).added == maintainer.apply(batch).added
        assert check_overlay(resumed.interests(), resumed.overlay(), k=2).holds


def test_links_are_not_rebalanced_away() -> None:
    with pytest.raises(InvalidInput, match="rebalance"):
        start_maintainer("naive", INTERESTS, k=2, rebalance=3)
