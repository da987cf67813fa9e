"""Nodes of setting 2 are dispensable in random clusters, also beside others, within limits and where hosts refuse."""

from __future__ import annotations

import pytest

from simulation.dispensable import Case


@pytest.mark.parametrize("seed", range(3))
def test_nodes_are_dispensable_at_rest_and_nothing_is_proposed_any_more(seed: int) -> None:
    assert not Case(seed).go()
