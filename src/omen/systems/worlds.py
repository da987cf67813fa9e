"""A system in the simulator as bytes, its whole world included, and back."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

from omen.errors import InvalidInput

System = TypeVar("System")


def save_world(system: Any) -> bytes:
    """A system with its world, nodes and generators included, as a pickle."""
    return pickle.dumps(system, protocol=pickle.HIGHEST_PROTOCOL)


def load_world(data: bytes, kind: type[System]) -> System:
    """The system that was saved. A pickle can do anything: a checkpoint is only read where it is the user's own."""
    system = pickle.loads(data)
    if not isinstance(system, kind):
        raise InvalidInput(f"the checkpoint does not hold a {kind.__name__}")
    return system
