"""Components that were merged in several places, brought together: union-find over pairs of names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.components import find_root

Codes = npt.NDArray[np.int32]


@compiled("int32[::1](int32[::1], int32[::1], int64)")
def join_pairs(ones: Codes, others: Codes, count: int) -> Codes:
    """The lowest code that each of the codes 0..count-1 is joined to by the pairs, itself where by none."""
    parents = np.arange(count).astype(np.int32)
    for k in range(ones.size):
        one, other = find_root(parents, ones[k]), find_root(parents, others[k])
        if one != other:
            parents[max(one, other)] = min(one, other)
    for code in range(count):
        parents[code] = parents[parents[code]]
    return parents
