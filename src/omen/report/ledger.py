"""What the papers claim in numbers (claims.csv), and what our own numbers make of each claim."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("claims.csv")

VERDICTS = ("reproduced", "close", "not reproduced", "other data", "not run at this scale")
CLOSE_BOUND = 0.10
"""Of the value: by how much a bound without a tolerance may be missed and still be called close."""
CLOSE_ORDER = 0.02
"""Of the values compared: by how much an order may be missed and still be called close."""

PAPERS = {
    "low-oda": "Onus, Richa: Low-ODA and the constant-diameter family",
    "ktco": "Chen, Vitenberg, Jacobsen: GM2 and HararyPT",
    "shadows": "Chen, Jacobsen, Vitenberg: repairs among shadows",
    "omen": "Chen, Vitenberg, Jacobsen: OMen",
    "spidercast": "Chockler, Melamed, Tock, Vitenberg: SpiderCast",
}


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
        return bool(ours) if self.relation == "order" else self._within(float(ours), self.slack)

    def is_near(self, measured: Measured) -> bool:
        """Outside the tolerance by no more than as much again, or, where there is none, by a tenth."""
        if self.relation == "order":
            if measured.excess is None or measured.scale is None:
                return False
            return measured.excess <= CLOSE_ORDER * abs(measured.scale)
        assert self.value is not None
        slack = 2 * self.slack or CLOSE_BOUND * abs(self.value)
        return self.relation != "greater-than" and self._within(float(measured.ours), slack)

    def _within(self, ours: float, slack: float) -> bool:
        assert self.value is not None
        match self.relation:
            case "approx":
                return abs(ours - self.value) <= slack
            case "at-most":
                return ours <= self.value + slack
            case "at-least":
                return ours >= self.value - slack
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

    Where an order is claimed, `excess` is by how much the worst pair is out of it, not above 0 where the order holds,
    and `scale` the size of what is compared.
    """

    ours: float | bool
    note: str = ""
    excess: float | None = None
    scale: float | None = None

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
    kept = [tuple(row) for row in rows]
    excess = max(earlier - later for row in kept for earlier, later in pairwise(row))
    scale = min(abs(value) for row in kept for value in row)
    return Measured(excess <= 0, note, excess, scale)


@dataclass(frozen=True)
class Deviation:
    """A claim we know not to agree: where our own number lies instead, and why, as far as we know.

    Of an order, the number is its excess. The band holds for the tests' small sizes as well as for the papers' own.
    """

    low: float
    high: float
    reason: str


Measure = Callable[..., Measured]


class Measures(Mapping[str, Measure]):
    """A paper's measurements by claim; each takes what its paper's module says it takes."""

    def __init__(self) -> None:
        self._by_id: dict[str, Measure] = {}

    def of(self, *ids: str) -> Callable[[Measure], Measure]:
        """Registers a function; one that measures several claims is handed the claim's id first."""

        def register(function: Measure) -> Measure:
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


def _bind(function: Measure, claim_id: str) -> Measure:
    return lambda *found: function(claim_id, *found)


@cache
def claims() -> dict[str, Claim]:
    """All claims of all papers, in the order of the table."""
    with TABLE.open(newline="", encoding="utf-8") as table:
        return {row["id"]: _claim(row) for row in csv.DictReader(table)}


def _claim(row: Mapping[str, str]) -> Claim:
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


@dataclass(frozen=True)
class Entry:
    """A line of the ledger: a claim, ours (None: not run), each seed's own number, the verdict and why it is so."""

    claim: Claim
    measured: Measured | None
    by_seed: tuple[float, ...]
    verdict: str
    reason: str = ""
    stand_in: str = ""

    @property
    def spread(self) -> tuple[float, float] | None:
        return (min(self.by_seed), max(self.by_seed)) if len(self.by_seed) > 1 else None

    @property
    def shown(self) -> str:
        """Ours as a person reads it: 5.1 (4.8 to 5.3)."""
        if self.measured is None:
            return ""
        if isinstance(self.measured.ours, bool) or self.spread is None:
            return self.measured.shown
        low, high = self.spread
        return f"{self.measured.shown} ({low:.3g} to {high:.3g})"


def judge(
    claim: Claim,
    measured: Measured | None,
    by_seed: Sequence[float] = (),
    deviation: Deviation | None = None,
    stand_in: str = "",
    not_run: str = "",
) -> Entry:
    """The verdict on a claim. `stand_in`: what was measured on instead of the paper's data, in words."""
    if measured is None:
        return Entry(claim, None, (), "not run at this scale", not_run, stand_in)
    agrees, near = claim.agrees(measured.ours), claim.is_near(measured)
    if stand_in:
        found = "agrees with the claim" if agrees else "is close to it" if near else "does not agree with it"
        why = f" {deviation.reason}" if deviation and not agrees else ""
        return Entry(claim, measured, tuple(by_seed), "other data", f"On {stand_in}, ours {found}.{why}", stand_in)
    if agrees:
        return Entry(claim, measured, tuple(by_seed), "reproduced")
    reason = deviation.reason if deviation else "Not known why."
    return Entry(claim, measured, tuple(by_seed), "close" if near else "not reproduced", reason)


def summary_line(entries: Iterable[Entry]) -> str:
    """All verdicts in one line: 133 claims: 80 reproduced, 9 close, ..."""
    counts = Counter(entry.verdict for entry in entries)
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{sum(counts.values())} claims: {listed}"


def ledger_columns(entries: Iterable[Entry]) -> dict[str, list[Any]]:
    """The ledger as a table: what the paper says, what we found, and what follows."""
    rows = [
        {
            "id": one.claim.id,
            "paper": one.claim.paper,
            "where": one.claim.where,
            "setting": one.claim.setting,
            "quantity": one.claim.quantity,
            "relation": one.claim.relation,
            "value": one.claim.value,
            "tolerance": f"{one.claim.tolerance:g}{' absolute' if one.claim.absolute else ''}",
            "ours": None if one.measured is None else float(one.measured.ours),
            "lowest_seed": one.spread[0] if one.spread else None,
            "highest_seed": one.spread[1] if one.spread else None,
            "verdict": one.verdict,
            "stand_in": one.stand_in,
            "reason": one.reason,
            "note": one.measured.note if one.measured else "",
        }
        for one in entries
    ]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
