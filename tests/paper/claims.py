"""What the papers claim in numbers (docs/claims.csv), and when a number of ours agrees."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "docs" / "claims.csv"


@dataclass(frozen=True)
class Claim:
    """A row of the table. A relation `order` is a trend stated in words: it has no value, and ours is yes or no."""

    id: str
    paper: str
    where: str
    setting: str
    quantity: str
    relation: str
    value: float | None
    tolerance: float
    absolute: bool

    @property
    def slack(self) -> float:
        return self.tolerance if self.absolute or self.value is None else self.tolerance * abs(self.value)

    def agrees(self, ours: float | bool) -> bool:
        """Whether a measured number is what the paper says, within the tolerance fixed beforehand."""
        if self.relation == "order":
            return bool(ours)
        assert self.value is not None
        match self.relation:
            case "approx":
                return abs(ours - self.value) <= self.slack
            case "at-most":
                return ours <= self.value + self.slack
            case "at-least":
                return ours >= self.value - self.slack
            case "greater-than":
                return ours > self.value
        raise ValueError(f"claim {self.id}: there is no relation {self.relation!r}")

    @property
    def shown(self) -> str:
        """The paper's side as a person reads it: 5 ± 25%."""
        if self.value is None:
            return "holds"
        sign = {"approx": "", "at-most": "≤ ", "at-least": "≥ ", "greater-than": "> "}[self.relation]
        slack = f" ± {self.tolerance:g}" if self.absolute else f" ± {self.tolerance:.0%}"
        return f"{sign}{self.value:g}{slack if self.tolerance else ''}"


@dataclass(frozen=True)
class Measured:
    """Our side of a claim: the number the relation is asked of (or yes and no), and what it was made from, in words.

    Where an order is claimed, `excess` is by how much the worst pair is out of it; not above 0 where the order holds.
    """

    ours: float | bool
    note: str = ""
    excess: float | None = None

    @property
    def shown(self) -> str:
        if isinstance(self.ours, bool):
            return "holds" if self.ours else f"off by {self.excess:.2g}" if self.excess is not None else "does not hold"
        return f"{self.ours:.4g}"

    @property
    def compared(self) -> float:
        """What a band around our own number is about."""
        return self.excess if self.excess is not None else float(self.ours)


def ordered(rows: Iterable[Sequence[float]], note: str) -> Measured:
    """Whether every row is in ascending order; equal neighbours are."""
    excess = max(earlier - later for row in rows for earlier, later in pairwise(row))
    return Measured(excess <= 0, note, excess)


@dataclass(frozen=True)
class Deviation:
    """A claim we know not to agree: where our own number lies instead, and why, as far as we know.

    Of an order, the number is its excess. The band holds for the tests' small sizes as well as for the papers' own.
    """

    low: float
    high: float
    reason: str


Measure = Callable[[Any], Measured]


class Measures(Mapping[str, Measure]):
    """A paper's measurements by claim; each takes an effort (what sizes, how many seeds) of that paper's own kind."""

    def __init__(self) -> None:
        self._by_id: dict[str, Measure] = {}

    def of(self, *ids: str) -> Callable[[Callable[..., Measured]], Callable[..., Measured]]:
        """Registers a function of (effort), or of (claim id, effort) where it measures several claims."""

        def register(function: Callable[..., Measured]) -> Callable[..., Measured]:
            for one in ids:
                self._by_id[one] = function if len(ids) == 1 else _bind(function, one)
            return function

        return register

    def __getitem__(self, claim_id: str) -> Measure:
        return self._by_id[claim_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)


def _bind(function: Callable[..., Measured], claim_id: str) -> Measure:
    return lambda effort: function(claim_id, effort)


@cache
def claims() -> dict[str, Claim]:
    """All claims of all papers, in the order of the table."""
    with TABLE.open(newline="", encoding="utf-8") as table:
        return {row["id"]: _claim(row) for row in csv.DictReader(table)}


def _claim(row: dict[str, str]) -> Claim:
    number, _, kind = row["tolerance"].partition(" ")
    return Claim(
        row["id"],
        row["paper"],
        row["where"],
        row["setting"],
        row["quantity"],
        row["relation"],
        float(row["value"]) if row["value"] else None,
        float(number or 0),
        kind == "absolute",
    )
