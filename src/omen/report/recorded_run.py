"""A small overlay for the page: where its nodes stand, who wants what, and what happens when each of them is lost.

Every loss is a real run of the shadow repair; its links are recorded in the order they were made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from omen.interests import Interests
from omen.maintain import start_maintainer
from omen.overlay import Overlay
from omen.quality import topic_components
from omen.systems import design_overlay
from omen.workloads import generate_interests

NODES, TOPICS, POPULARITY, SIZES, SEED = 36, 10, "zipf:0.7", "uniform:2:4", 5
LAYOUT_STEPS = 400


def record_run() -> dict[str, Any]:
    """As the page's script reads it: nodes with places and topics, links, and for each node the repair of its loss."""
    interests = generate_interests(NODES, TOPICS, POPULARITY, SIZES, seed=SEED)
    overlay = design_overlay(interests, "low-oda")
    places = lay_out(overlay)
    return {
        "made": f"{NODES} nodes, {TOPICS} topics, {POPULARITY}, {SIZES}, seed {SEED}; Low-ODA, repaired by Shadow",
        "nodes": [
            {"x": round(float(x), 1), "y": round(float(y), 1), "topics": _topics(interests, node)}
            for node, (x, y) in enumerate(places)
        ],
        "topics": [int(label) for label in interests.topics.tolist()],
        "links": _links(overlay),
        "losses": [_repair(interests, overlay, node) for node in range(NODES)],
    }


def _topics(interests: Interests, node: int) -> list[int]:
    return [int(topic) for topic in interests.topics_of(node)]


def _links(overlay: Overlay) -> list[list[int]]:
    return [[int(u), int(v)] for u, v in zip(overlay.u, overlay.v, strict=True)]


def _repair(interests: Interests, overlay: Overlay, node: int) -> dict[str, Any]:
    maintainer = start_maintainer("shadow", interests, overlay, seed=SEED)
    change = maintainer.leave(node)
    connected = bool((topic_components(maintainer.interests(), maintainer.overlay()) <= 1).all())
    return {
        "shadow": sorted(int(one) for one in change.shadow),
        "added": [[int(u), int(v)] for u, v in change.added],
        "removed": [[int(u), int(v)] for u, v in change.removed],
        "microseconds": round(1e6 * change.repair_s),
        "connected": connected,
    }


def lay_out(overlay: Overlay, steps: int = LAYOUT_STEPS) -> npt.NDArray[np.float64]:
    """Places in 0..1000 by 0..700: links pull, nodes push, from a circle; the same for the same overlay."""
    count = overlay.node_count
    turn = 2 * np.pi * np.arange(count) / count
    places = np.stack((np.cos(turn), np.sin(turn)), axis=1)
    u, v = overlay.u, overlay.v
    wanted = 1.6 / np.sqrt(count)
    for step in range(steps):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-3)
        push = (apart * (wanted**2 / distance**2)[..., None]).sum(axis=1)
        pull = np.zeros_like(places)
        along = (places[u] - places[v]) * (np.hypot(*(places[u] - places[v]).T) / wanted)[:, None]
        np.add.at(pull, u, -along)
        np.add.at(pull, v, along)
        move = push + pull
        length = np.maximum(np.hypot(move[:, 0], move[:, 1]), 1e-9)
        places += move / length[:, None] * np.minimum(length, 0.1 * (1 - step / steps))[:, None]
    low, high = places.min(axis=0), places.max(axis=0)
    span = np.maximum(high - low, 1e-9)
    scaled: npt.NDArray[np.float64] = (places - low) / span * (940, 640) + (30, 30)
    return scaled
