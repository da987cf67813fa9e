"""How much of their interests nodes share with those closest to them (SpiderCast 3.5.2, top-d-intersection)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.kernels.compiling import compiled

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@compiled()
def keep_highest(best: Floats, value: float) -> None:
    """Put `value` into the descending row `best` if it belongs there; the lowest falls out."""
    place = best.size - 1
    if value <= best[place]:
        return
    while place > 0 and best[place - 1] < value:
        best[place] = best[place - 1]
        place -= 1
    best[place] = value


@compiled(
    "int64[::1](int64[::1], int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], float64[:,::1])"
)
def highest_overlaps(
    sample_offsets: Int64s,
    sample_topics: Int32s,
    sample_sizes: Int64s,
    sample_places: Int64s,
    topic_offsets: Int64s,
    topic_nodes: Int32s,
    sizes: Int64s,
    best: Floats,
) -> Int64s:
    """Fill best[a] with the highest overlaps of sampled node a, in percent of the smaller list, in descending order.

    The nodes compared with have `sizes` topics, and stand in the rows of the topics they want. sample_places[a] is
    where a itself stands among them, or -1. Returns how many others share a topic with a. `best` may already hold what
    was found among other nodes. Costs the subscribers of the sampled nodes' topics.
    """
    counts = np.zeros(sizes.size, np.int32)
    met = np.empty(sizes.size, np.int32)
    sharing = np.zeros(sample_sizes.size, np.int64)
    for a in range(sample_sizes.size):
        reached = 0
        for place in range(sample_offsets[a], sample_offsets[a + 1]):
            topic = sample_topics[place]
            for slot in range(topic_offsets[topic], topic_offsets[topic + 1]):
                node = topic_nodes[slot]
                if counts[node] == 0:
                    met[reached] = node
                    reached += 1
                counts[node] += 1
        for index in range(reached):
            node = met[index]
            if node != sample_places[a]:
                sharing[a] += 1
                keep_highest(best[a], 100.0 * counts[node] / min(sizes[node], sample_sizes[a]))
            counts[node] = 0
    return sharing
