"""Meshes drawn at random for each topic by itself: what an overlay that topics share is held against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omen.interests import Interests
from omen.kernels.counter_random import mix_array
from omen.overlay import Overlay
from omen.quality import check_overlay, degree_summary, per_topic_mesh_links

Places = npt.NDArray[np.int64]
ROUNDS = 40


def measure_meshes(interests: Interests, degree: int, k: int, seed: int) -> dict[str, float]:
    """Links a node where every topic has its own; with `k`, meshes are drawn, judged, and what they share counted once.

    A topic is judged by its own mesh alone: that is what its publications travel on.
    """
    counted = per_topic_mesh_links(interests, degree)
    values = {"mesh_avg_degree": counted.average, "mesh_max_degree": float(counted.maximum)}
    if not k:
        return values
    u, v = draw_meshes(interests, degree, seed)
    nodes, topics = interests.topic_nodes.astype(np.int64), _topic_of_place(interests)
    shared = Overlay.from_codes(interests.nodes, nodes[u], nodes[v])
    apart = Interests.from_pairs((np.arange(topics.size), topics))
    meshes = Overlay.from_codes(apart.nodes, u, v)
    return values | {
        "mesh_shared_avg_degree": degree_summary(shared).average,
        "mesh_k_holds": float(check_overlay(apart, meshes, k=k).holds),
    }


def draw_meshes(interests: Interests, degree: int, seed: int) -> tuple[Places, Places]:
    """The links of all meshes, as places in `topic_nodes`. At most degree + 1 subscribers are all linked.

    Each subscriber has `degree` ends, and ends are paired at random; pairs of a subscriber with itself or of two that
    are linked already are drawn again.
    """
    found: list[Places] = [np.empty(0, dtype=np.int64)]
    for topic in range(interests.topic_count):
        first, last = (int(place) for place in interests.topic_offsets[topic : topic + 2])
        links = _draw_mesh(last - first, degree, seed, topic)
        found.append(_keys(links[:, 0] + first, links[:, 1] + first, interests.subscription_count))
    u, v = np.divmod(np.concatenate(found), max(interests.subscription_count, 1))
    return u, v


def _draw_mesh(size: int, degree: int, seed: int, topic: int) -> Places:
    if size <= degree + 1:
        return np.stack(np.triu_indices(size, 1), axis=1)
    ends = np.repeat(np.arange(size), degree)
    links = np.empty(0, dtype=np.int64)
    for attempt in range(ROUNDS):
        stream = np.full(ends.size, topic * ROUNDS + attempt, dtype=np.uint64)
        ends = ends[np.argsort(mix_array(np.uint64(seed), stream, np.arange(ends.size, dtype=np.uint64)))]
        whole = ends.size // 2 * 2
        keys = _keys(ends[0:whole:2], ends[1:whole:2], size)
        _, firsts = np.unique(keys, return_index=True)
        good = np.zeros(keys.size, dtype=bool)
        good[firsts] = True
        good &= (keys // size != keys % size) & ~np.isin(keys, links)
        links = np.concatenate((links, keys[good]))
        ends = np.concatenate((ends[0:whole:2][~good], ends[1:whole:2][~good], ends[whole:]))
        if ends.size < 2:
            break
    return np.stack(np.divmod(links, size), axis=1)


def _keys(u: Places, v: Places, size: int) -> Places:
    keys: Places = np.minimum(u, v) * size + np.maximum(u, v)
    return keys


def _topic_of_place(interests: Interests) -> Places:
    return np.repeat(np.arange(interests.topic_count), np.diff(interests.topic_offsets))
