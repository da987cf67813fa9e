"""The identifier circle: places, distances, who comes after whom (omen 3.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from omen.protocol.events import NodeId

SPACE = 1 << 64


def place_of(name: str) -> NodeId:
    """Where a name stands on the circle."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def clockwise(start: NodeId, end: NodeId) -> int:
    """How far `end` lies after `start`, walking from node to successor."""
    return (end - start) % SPACE


def nearest_after(place: NodeId, nodes: Iterable[NodeId], count: int) -> list[NodeId]:
    """The first `count` nodes met walking clockwise from `place`, itself excluded."""
    return sorted((node for node in nodes if node != place), key=lambda node: (node - place) % SPACE)[:count]


def nearest_before(place: NodeId, nodes: Iterable[NodeId], count: int) -> list[NodeId]:
    """The first `count` nodes met walking counter-clockwise from `place`, itself excluded."""
    return sorted((node for node in nodes if node != place), key=lambda node: (place - node) % SPACE)[:count]
