"""Cut nodes, against another implementation."""

from __future__ import annotations

import random

import networkx

from omen.quality.cut_nodes import cut_nodes


def test_cut_nodes_are_those_that_networkx_finds() -> None:
    for seed in range(60):
        drawn = random.Random(seed)
        nodes = drawn.randrange(2, 14)
        links = {tuple(sorted(drawn.sample(range(nodes), 2))) for _ in range(drawn.randrange(1, 2 * nodes))}
        assert cut_nodes(links) == sorted(networkx.articulation_points(networkx.Graph(links)))  # type: ignore[arg-type]
