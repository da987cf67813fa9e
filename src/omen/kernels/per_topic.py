"""A fixed graph on each topic's subscribers, laid over one another. Links of several topics come several times.

Links are single numbers u * n + v, u < v: they sort fast, and equal ones then stand side by side.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@compiled("int64(int64, int64)")
def harary_size(k: int, n: int) -> int:
    """Links of H(k, n); of a clique where n <= k, of a path where k = 1."""
    if n <= k:
        return n * (n - 1) // 2
    if k == 1:
        return n - 1
    return (k * n + 1) // 2


@compiled("int64(int32, int32, int64)")
def link_key(a: int, b: int, n: int) -> int:
    return min(a, b) * n + max(a, b)


@compiled()
def join_at_distance(members: Codes, distance: int, starts: int, n: int, keys: Offsets, found: int) -> int:
    """Join the first `starts` members to the member `distance` places on, round and round."""
    for i in range(starts):
        j = i + distance
        if j >= members.size:
            j -= members.size
        keys[found + i] = link_key(members[i], members[j], n)
    return found + starts


@compiled("int64[::1](int64[::1], int32[::1], int64, int64)")
def harary_keys(topic_offsets: Offsets, topic_nodes: Codes, n: int, k: int) -> Offsets:
    """The links of H(k, n_t) on each topic's subscribers, taken in the order they stand in topic_nodes.

    Everyone is joined to the k // 2 next ones, round and round. Odd k adds the chords across the circle, one from each
    of the first half of the members; an odd number of members rounds the half up and the chord's length down.
    """
    total = 0
    for t in range(topic_offsets.size - 1):
        total += harary_size(k, topic_offsets[t + 1] - topic_offsets[t])
    keys = np.empty(total, np.int64)
    found = 0
    for t in range(topic_offsets.size - 1):
        members = topic_nodes[topic_offsets[t] : topic_offsets[t + 1]]
        size = members.size
        if k == 1 or size <= k:
            last_distance = 1 if k == 1 else size - 1
            for distance in range(1, last_distance + 1):
                found = join_at_distance(members, distance, max(size - distance, 0), n, keys, found)
            continue
        for distance in range(1, k // 2 + 1):
            found = join_at_distance(members, distance, size, n, keys, found)
        if k % 2 == 1:
            found = join_at_distance(members, size // 2, (size + 1) // 2, n, keys, found)
    return keys
