"""The state of a maintainer as bytes, and back. Plain values alone: reading a file runs no code from it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from omen.interests import Interests, Labels
from omen.maintain.state import Snapshot
from omen.overlay import Overlay


class SavedSnapshot(msgspec.Struct):
    """Labels as lists, arrays of codes as their bytes, and all counters by name."""

    nodes: list[int | str]
    topics: list[int | str]
    node_offsets: bytes
    node_topics: bytes
    topic_offsets: bytes
    topic_nodes: bytes
    u: bytes
    v: bytes
    primary: bytes
    backup: bytes
    counters: dict[str, int]


def encode_snapshot(snapshot: Snapshot) -> bytes:
    interests, overlay = snapshot.interests, snapshot.overlay
    values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    return msgspec.msgpack.encode(
        SavedSnapshot(
            interests.nodes.tolist(),
            interests.topics.tolist(),
            interests.node_offsets.tobytes(),
            interests.node_topics.tobytes(),
            interests.topic_offsets.tobytes(),
            interests.topic_nodes.tobytes(),
            overlay.u.tobytes(),
            overlay.v.tobytes(),
            snapshot.primary.astype(np.int32).tobytes(),
            snapshot.backup.astype(np.int32).tobytes(),
            {name: value for name, value in values.items() if isinstance(value, int)},
        )
    )


def decode_snapshot(data: bytes) -> Snapshot:
    saved = msgspec.msgpack.decode(data, type=SavedSnapshot)
    interests = Interests(
        _labels(saved.nodes),
        _labels(saved.topics),
        _array(saved.node_offsets, np.int64),
        _array(saved.node_topics, np.int32),
        _array(saved.topic_offsets, np.int64),
        _array(saved.topic_nodes, np.int32),
    )
    overlay = Overlay(interests.nodes, _array(saved.u, np.int32), _array(saved.v, np.int32))
    primary, backup = _array(saved.primary, np.int32), _array(saved.backup, np.int32)
    return Snapshot(interests, overlay, primary, backup, **saved.counters)


def _labels(values: list[Any]) -> Labels:
    if values and isinstance(values[0], str):
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    return np.array(values, dtype=np.int64)


def _array(data: bytes, dtype: type[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(data, dtype=dtype).copy()
