"""Where a command runs: on one machine, or on Spark. Loads nothing of Spark."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf
from pathlib import Path

from omen.design.schedule import ROUNDS
from omen.errors import InvalidInput

PER_TOPIC = ("ring-pt", "cycle-pt", "harary-pt")
IMPORT_FROM_BYTES = 500_000_000


def wants_spark(engine: str, large: bool) -> bool:
    """Whether to start Spark: as told, or by itself where it pays and is installed."""
    return engine == "spark" or (engine == "auto" and large and find_spec("pyspark") is not None)


def is_large_table(path: str) -> bool:
    """Whether Spark imports this table faster than one machine does; one at an address counts as large."""
    return _bytes_of(path) >= IMPORT_FROM_BYTES


def require_per_topic(algorithm: str) -> None:
    """Refuse an algorithm that Spark does not build."""
    if algorithm not in PER_TOPIC:
        raise InvalidInput(f"{algorithm} is not built on Spark: {', '.join(PER_TOPIC)} are, the rest on one machine")


def require_built_on_spark(algorithm: str, in_rounds: bool) -> None:
    """Refuse what Spark does not build: the exact greedy algorithms look at all pairs, on one machine."""
    if in_rounds:
        return
    if algorithm in ROUNDS:
        raise InvalidInput(f"{algorithm} is not built on Spark but in rounds: give --rounds auto")
    require_per_topic(algorithm)


def _bytes_of(path: str) -> float:
    if "://" in path:
        return inf
    files = Path(path).rglob("*") if Path(path).is_dir() else [Path(path)]
    return sum(file.stat().st_size for file in files if file.is_file())
