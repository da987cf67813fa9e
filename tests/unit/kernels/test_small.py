"""The greedy rule in plain Python: its edges; that it is the compiled one's equal is held by tests/property."""

from __future__ import annotations

import subprocess
import sys

from omen.kernels.small import choose_links, count_steps


def test_it_needs_neither_numba_nor_numpy() -> None:
    code = "import sys, omen.kernels.small; print(sorted({'numba', 'numpy', 'llvmlite'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_nothing_split_needs_no_link() -> None:
    assert choose_links([], [], [], 3.0) == []
    assert choose_links([[1, 2], [1]], [[5, 5], [5]], [1, 1], 3.0) == []
    assert choose_links([[], [4]], [[], [0]], [0, 0], 3.0, 0) == []


def test_topics_and_labels_may_be_any_integers_in_any_order() -> None:
    topics_of = [[1 << 63, 7], [7, 1 << 63], [7]]
    assert choose_links(topics_of, [[-4, 9], [9, 1 << 60], [3]], [0, 0, 0], 3.0) == [(0, 1), (0, 2)]


def test_a_node_at_the_maximum_degree_is_spared_up_to_rho() -> None:
    topics_of, labels_of = [[1, 2, 3], [1, 2, 3], [1], [1]], [[0, 0, 0], [1, 1, 1], [2], [3]]
    assert choose_links(topics_of, labels_of, [5, 0, 0, 0], 3.0)[0] == (1, 2)
    assert choose_links(topics_of, labels_of, [5, 0, 0, 0], 2.0)[0] == (0, 1)


def test_only_pairs_with_the_centre_are_candidates() -> None:
    topics_of = [[1], [1, 2], [2], [1]]
    assert choose_links(topics_of, [[0], [1, 1], [2], [3]], [0] * 4, 0.0, 1) == [(0, 1), (1, 2), (1, 3)]


def test_what_is_given_stays_as_it_was() -> None:
    topics_of, labels_of, degrees = [[1], [1]], [[0], [1]], [0, 0]
    assert choose_links(topics_of, labels_of, degrees, 3.0) == choose_links(topics_of, labels_of, degrees, 3.0)
    assert (topics_of, labels_of, degrees) == ([[1], [1]], [[0], [1]], [0, 0])


def test_steps_grow_with_pairs_of_nodes_and_of_subscribers() -> None:
    assert count_steps([[1, 2], [1], [1]]) == (9 + 9 + 1) // 2
    assert count_steps([[1, 2], [1], [1]], centre=0) == 4
