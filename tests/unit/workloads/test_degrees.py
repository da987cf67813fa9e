from __future__ import annotations

import numpy as np
import pytest

from omen.workloads.degrees import Ccdf, distance


def test_distance_is_the_largest_gap_between_the_curves() -> None:
    def ccdf(graph: str, degrees: list[int], users: list[int]) -> Ccdf:
        return Ccdf(graph, "followers", np.array(degrees), np.array(users))

    original = ccdf("original", [0, 2, 4], [2, 4, 4])
    assert original.fraction.tolist() == [1.0, 0.8, 0.4]
    assert distance([original, ccdf("sample", [0, 2, 4], [1, 2, 2])])["followers"] == {"degree": 0.0, "shape": 0.0}
    halved = distance([original, ccdf("sample", [0, 1, 2], [2, 4, 4])])["followers"]
    assert halved == {"degree": pytest.approx(0.4), "shape": 0.0}
