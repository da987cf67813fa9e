"""Where a command runs: on one machine, or on Spark. Loads nothing of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import inf
from pathlib import Path

from omen.design.schedule import ROUNDS
from omen.errors import InvalidInput, InvalidTable
from omen.tables.parts import locate_table
from omen.tables.raw import UTF8

PER_TOPIC = ("ring-pt", "cycle-pt", "harary-pt")
IMPORT_FROM_BYTES = 500_000_000
EDGES_FROM_BYTES = 50_000_000
GZIP_RATIO = 4  # of edge lists, about
_READ_BY_SPARK = (".parquet", ".parq", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


@dataclass(frozen=True)
class Engine:
    """Where a command runs, and why: None where the user said so."""

    is_spark: bool
    why: str | None = None

    def __str__(self) -> str:
        name = "spark" if self.is_spark else "local"
        return f"{name} ({self.why})" if self.why else name

    def as_dict(self) -> dict[str, str | None]:
        """As `--json` tells it."""
        return {"engine": "spark" if self.is_spark else "local", "engine_why": self.why}


def choose_engine(asked: str, large: bool, what: str, limit: str) -> Engine:
    """As told, or by itself where Spark pays and is installed. `what` and `limit`: in words, for people."""
    if asked != "auto":
        return Engine(asked == "spark")
    if large and find_spec("pyspark") is None:
        return Engine(False, f"{what}; Spark would pay, and is not installed")
    return Engine(large, f"{what}; spark from {limit} on")


def engine_for_table(asked: str, path: str, encoding: str) -> Engine:
    """For an import; a table at an address counts as large."""
    if encoding != UTF8:
        if asked == "spark":
            raise InvalidInput(f"--engine spark reads UTF-8 alone, not {encoding}: --engine local reads it")
        return Engine(False, f"spark reads UTF-8 alone, not {encoding}" if asked == "auto" else None)
    size = _bytes_of(path)
    return choose_engine(asked, size >= IMPORT_FROM_BYTES, _say_size(size), _say_size(IMPORT_FROM_BYTES))


def engine_for_edges(asked: str, path: str) -> Engine:
    """For a sample of a social graph: one machine reads one file of text, gzipped or not."""
    is_plain = "://" not in path and Path(path).is_file() and not path.endswith(_READ_BY_SPARK)
    if not is_plain:
        if asked == "local":
            raise InvalidInput(f"{path}: --engine local reads one file of text, gzipped or not; --engine spark more")
        return Engine(True, "not one file of text" if asked == "auto" else None)
    size = _bytes_of(path) * (GZIP_RATIO if path.endswith(".gz") else 1)
    return choose_engine(asked, size >= EDGES_FROM_BYTES, _say_size(size), _say_size(EDGES_FROM_BYTES))


def require_readable(path: str) -> None:
    """Refuse a path on this machine that is not there, before a session is started for it."""
    if "://" in path or any(character in path for character in "*?[{"):
        return
    if not Path(path).exists():
        raise InvalidTable(f"{path}: there is no such file")
    try:
        if Path(path).is_file():
            with Path(path).open("rb") as file:
                head = file.read(2)
            if not head:
                raise InvalidTable(f"{path}: the file is empty")
            if path.endswith(".gz") and head != b"\x1f\x8b":
                raise InvalidTable(f"{path}: not a gzip file, although it is named like one")
    except OSError as error:
        raise InvalidTable(f"{path}: {error.strerror}") from None


def require_table(path: str, name: str) -> None:
    """Refuse a table of ours on this machine that is not there, before a session is started for it."""
    if "://" not in path:
        locate_table(Path(path), name)


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


def _say_size(size: float) -> str:
    if size == inf:
        return "at an address"
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def _bytes_of(path: str) -> float:
    if "://" in path:
        return inf
    files = Path(path).rglob("*") if Path(path).is_dir() else [Path(path)]
    return sum(file.stat().st_size for file in files if file.is_file())
