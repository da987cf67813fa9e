"""The way in to the greedy engine: what it takes, and what it costs to import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from omen.interests import Interests
from omen.kernels.engine import ALL_PAIRS, TUNED, Instance, Rows, choose_block_links, choose_links, unlinked

CHAIN = Interests.from_pairs([("ann", "tea"), ("bob", "tea"), ("bob", "jazz"), ("cid", "jazz")])


def test_importing_the_engine_loads_neither_numba_nor_numpy() -> None:
    code = "import sys, omen.kernels.engine; print(sorted({'numba', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_rows_of_their_own_and_interests_give_the_same_links() -> None:
    rows = Rows(CHAIN.node_offsets, CHAIN.node_topics, CHAIN.topic_offsets, CHAIN.topic_nodes)
    assert choose_links(unlinked(rows), 3.0).tolist() == choose_links(unlinked(CHAIN), 3.0).tolist() == [[0, 1], [1, 2]]
    assert choose_block_links(rows).tolist() == choose_block_links(CHAIN).tolist() == [[0, 1], [1, 2]]


def test_an_unlinked_instance_has_a_component_for_each_subscriber_and_no_degrees() -> None:
    fresh = unlinked(CHAIN)
    assert fresh.labels.tolist() == [0, 1, 0, 1]
    assert fresh.degrees.tolist() == [0, 0, 0]


def test_what_is_connected_already_is_not_linked_again() -> None:
    joined = Instance(CHAIN, np.array([0, 1, 0, 0], np.int32), np.array([1, 1, 0], np.int32))
    assert choose_links(joined, 3.0, ALL_PAIRS, TUNED).tolist() == [[1, 2]]


def test_instance_and_tuning_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TUNED.cache_length = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        unlinked(CHAIN).max_degree = 1  # type: ignore[misc]
