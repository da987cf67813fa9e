"""What is published after a node was linked reaches it or is told, in random neighbourhoods too."""

from __future__ import annotations

import pytest

from simulation.neighbourhoods import Case


@pytest.mark.parametrize("seed", [*range(40), 102, 478, 709, 1488])
def test_nothing_is_passed_over_in_silence(seed: int) -> None:
    """Those beyond 40 failed while newcomers guessed where they had to begin."""
    assert Case(seed).go() == []
