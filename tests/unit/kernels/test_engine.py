"""The way in to the greedy engine: what it takes, and what it costs to import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError
from threading import Event

import numpy as np
import pytest

from omen.interests import Interests
from omen.kernels import engine, small
from omen.kernels.engine import (
    ALL_PAIRS,
    TUNED,
    Instance,
    Rows,
    choose_block_links,
    choose_links,
    choose_pairs,
    choose_small,
    is_large,
    unlinked,
)

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


LARGE = ([list(range(40))] * 100, [[node] * 40 for node in range(100)], [0] * 100, 3.0)
"""A hundred nodes of forty topics: more than half of SMALL_STEPS in pairs of subscribers alone."""


@pytest.mark.parametrize(("loaded", "wanted"), [(False, "small"), (True, "compiled")])
def test_a_large_case_waits_for_no_compiler(loaded: bool, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    event = Event()
    if loaded:
        event.set()
    monkeypatch.setattr(engine, "_loaded", event)
    monkeypatch.setattr(small, "choose_links", lambda *_: used.append("small") or [])
    monkeypatch.setattr(engine, "choose_pairs", lambda *_: used.append("compiled") or [])
    assert is_large(LARGE[0])
    choose_small(*LARGE)
    choose_small([[0], [0]], [[0], [1]], [0, 0], 3.0)
    assert used == [wanted, "small"]


def test_both_engines_choose_the_same_links_of_a_large_case() -> None:
    topics_of = [[topic for topic in range(40) if (node * 7 + topic * 11) % 3] for node in range(100)]
    case = (topics_of, [[-node] * len(row) for node, row in enumerate(topics_of)], [node % 5 for node in range(100)])
    assert small.choose_links(*case, 3.0) == choose_pairs(*case, 3.0)
    assert small.choose_links(*case, 3.0, 7) == choose_pairs(*case, 3.0, 7)
