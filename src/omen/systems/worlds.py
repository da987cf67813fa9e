"""What the systems in the simulator have in common: topics of nodes that come back, and a whole world as bytes."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

from omen.errors import InvalidInput
from omen.interests import Interests, Label

System = TypeVar("System")


def topics_by_node(workload: Interests) -> dict[Label, list[Label]]:
    """Where nodes that come without a list have their topics from."""
    return {
        label: workload.topics[workload.topics_of(code)].tolist() for code, label in enumerate(workload.nodes.tolist())
    }


def save_world(system: Any) -> bytes:
    """A system with its world, nodes and generators included, as a pickle."""
    return pickle.dumps(system, protocol=pickle.HIGHEST_PROTOCOL)


def load_world(data: bytes, kind: type[System]) -> System:
    """The system that was saved. A pickle can do anything: a checkpoint is only read where it is the user's own."""
    system = pickle.loads(data)
    if not isinstance(system, kind):
        raise InvalidInput(f"the checkpoint does not hold a {kind.__name__}")
    return system
