"""The greedy engine as a protocol node calls it: plain lists in, pairs out; loads compiled code when first called."""

from __future__ import annotations

from collections.abc import Sequence


def choose_links(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    centre: int = -1,
) -> list[tuple[int, int]]:
    """New links among nodes 0..n-1 that join, in every topic, all pieces named by `labels_of` (rho as in Low-ODA).

    `centre`: only pairs with that node, or -1 for all pairs. Labels may be any integers; equal means same piece.
    """
    import numpy as np

    from omen.kernels import engine

    subscribers: dict[int, list[int]] = {}
    pieces: dict[int, dict[int, int]] = {}
    labels: dict[int, list[int]] = {}
    for node, (topics, row) in enumerate(zip(topics_of, labels_of, strict=True)):
        for topic, label in zip(topics, row, strict=True):
            subscribers.setdefault(topic, []).append(node)
            names = pieces.setdefault(topic, {})
            labels.setdefault(topic, []).append(names.setdefault(label, len(names)))
    split = {topic: code for code, topic in enumerate(sorted(t for t, names in pieces.items() if len(names) > 1))}
    if not split:
        return []
    rows = [[split[topic] for topic in sorted(topics) if topic in split] for topics in topics_of]
    interests = engine.Rows(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array([code for row in rows for code in row], dtype=np.int32),
        np.cumsum([0, *(len(subscribers[topic]) for topic in split)], dtype=np.int64),
        np.array([node for topic in split for node in subscribers[topic]], dtype=np.int32),
    )
    instance = engine.Instance(
        interests,
        np.array([label for topic in split for label in labels[topic]], dtype=np.int32),
        np.array(degrees, dtype=np.int32),
    )
    chosen = engine.choose_links(instance, rho, centre)
    return [(int(one), int(other)) for one, other in chosen]
