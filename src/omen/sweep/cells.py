"""One cell of a sweep: a workload, what is run on it, and how. Its name is made from its contents alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Value = int | float | str | bool
Pairs = tuple[tuple[str, Value], ...]

FORMATS = {"replay": 2, "lives": 2}
"""By kind, 1 for all others. Part of a cell's name: raised where the same cell would be measured otherwise, so that old
results are not reused.
"""


@dataclass(frozen=True)
class WorkloadSpec:
    """A synthetic workload, or, where `folder` is given, one on disk, with the synthetic fields left at nothing."""

    nodes: int = 0
    topics: int = 0
    popularity: str = ""
    sizes: str = ""
    seed: int = 0
    folder: str = ""

    @property
    def subscriptions(self) -> float:
        """How many to expect, roughly; for guessing how long a cell takes."""
        if self.folder:
            return 20_000.0
        first, *rest = self.sizes.replace("uniform:", "").replace("powerlaw:", "").split(":")
        numbers = [float(first), *(float(one) for one in rest[:1])]
        return self.nodes * sum(numbers) / len(numbers)


@dataclass(frozen=True)
class Cell:
    """`kind` says what is done (a key of `kinds.KINDS`) with the algorithm or system `name`."""

    kind: str
    workload: WorkloadSpec
    name: str
    options: Pairs = ()
    settings: Pairs = ()

    @property
    def id(self) -> str:
        words = json.dumps([FORMATS.get(self.kind, 1), self.to_plain()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(words.encode()).hexdigest()[:20]

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "kind": self.kind,
            "workload": {name: value for name, value in vars(self.workload).items() if value},
            "name": self.name,
            "options": {name: _json_value(value) for name, value in self.options},
            "settings": dict(self.settings),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Cell:
        return cls(
            plain["kind"],
            WorkloadSpec(**plain["workload"]),
            plain["name"],
            pairs(plain["options"]),
            pairs(plain["settings"]),
        )

    def setting(self, name: str, default: Value) -> Any:
        return dict(self.settings).get(name, default)


def pairs(values: Mapping[str, Value] | Iterable[tuple[str, Value]]) -> Pairs:
    """In the one order that equal cells have."""
    return tuple(sorted(dict(values).items()))


@dataclass(frozen=True)
class CellResult:
    """What a cell came to: numbers by name, and series of numbers. `error` is empty where it was run to its end."""

    cell: Cell
    values: Mapping[str, float]
    series: Mapping[str, list[float]]
    seconds: float = 0.0
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error


def _json_value(value: Value) -> Value:
    """JSON has no infinity: an option of that value is read from the word as well."""
    return str(value) if value == float("inf") else value
