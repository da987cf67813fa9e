"""Pairs of numbers spread over buckets by a hash, and those of a bucket merged where equal.

Equal pairs meet in one bucket, so buckets can be merged apart from each other, in any order, in any process.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled
from omen.kernels.counter_random import scramble

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_READ_ONLY = "Array(int64, 1, 'C', readonly=True)"
_ODD = np.uint64(0x9E3779B97F4A7C15)
_BUCKET_SHIFT = np.uint64(40)  # buckets by other bits than the places within one


@compiled()
def hash_pair(left: np.int64, right: np.int64) -> np.uint64:
    return scramble(scramble(np.uint64(left)) + np.uint64(right) * _ODD)


@compiled(f"void({_READ_ONLY}, {_READ_ONLY}, int64[::1], int64[:,::1])")
def spread_pairs(left: Int64s, right: Int64s, offsets: Int64s, pairs: Int64s) -> None:
    """Fill `pairs` bucket after bucket; those of bucket b then stand at offsets[b]:offsets[b + 1].

    The number of buckets, one less than the length of `offsets`, is a power of two.
    """
    buckets = offsets.size - 1
    mask = np.uint64(buckets - 1)
    home = np.empty(left.size, dtype=np.int32)
    offsets[:] = 0
    for i in range(left.size):
        home[i] = np.int32((hash_pair(left[i], right[i]) >> _BUCKET_SHIFT) & mask)
        offsets[home[i] + 1] += 1
    for bucket in range(buckets):
        offsets[bucket + 1] += offsets[bucket]
    free = offsets[:-1].copy()
    for i in range(left.size):
        place = free[home[i]]
        pairs[place, 0], pairs[place, 1] = left[i], right[i]
        free[home[i]] = place + 1


@compiled("int64(int64[:,::1], int32[::1])")
def merge_pairs(pairs: Int64s, table: Int32s) -> int:
    """Move the different pairs to the front, in the order they first came; returns how many they are.

    `table` is scratch: a power of two, at least twice the number of pairs, all 0.
    """
    mask = np.uint64(table.size - 1)
    kept = 0
    for i in range(pairs.shape[0]):
        left, right = pairs[i, 0], pairs[i, 1]
        place = hash_pair(left, right) & mask
        while table[place] != 0:
            other = table[place] - 1
            if pairs[other, 0] == left and pairs[other, 1] == right:
                break
            place = (place + np.uint64(1)) & mask
        else:
            table[place] = kept + 1
            pairs[kept, 0], pairs[kept, 1] = left, right
            kept += 1
    return kept
