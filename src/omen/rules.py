"""What a fleet allows: how many links a node may have, which pairs may, must or must not be linked, what links cost.

A noun like `Interests`, over the same nodes: codes inside, labels at the edge. Nothing in it is needed. A fleet without
rules is designed as if there were none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput
from omen.interests import Codes, Label, Labels, encode, label_array, plain
from omen.overlay import Overlay

NO_CAP = 2**31 - 1
NO_ZONE = ""
MOST_ZONES = 1000
PLAIN_COST = 1.0
"""What a link costs where nothing is said of it."""

Costs = npt.NDArray[np.float64]


class PairRule(IntEnum):
    """What is said of a pair of nodes. A link that is required or kept is there from the start, and stays."""

    NONE = 0
    FORBID = 1
    REQUIRE = 2
    KEEP = 3


class LinkRule(NamedTuple):
    """A row of the table `links`: a rule, a cost, or both."""

    u: Label
    v: Label
    rule: PairRule = PairRule.NONE
    cost: float | None = None


@dataclass(frozen=True, eq=False)
class FleetRules:
    """Make one with `from_labels`, or read it with `omen.tables.read_rules`."""

    nodes: Labels
    caps: Codes  # NO_CAP where a node has none
    zones: Codes  # of each node, into zone_names
    zone_names: tuple[str, ...]
    zone_costs: Costs  # zones x zones, symmetric
    u: Codes  # pairs with a rule or a cost of their own, u < v, sorted
    v: Codes
    rule: npt.NDArray[np.int8]  # PairRule
    cost: Costs  # nan: that of the zones

    @classmethod
    def from_labels(
        cls,
        nodes: Iterable[Label] | Labels,
        caps: Mapping[Label, int] | None = None,
        zones: Mapping[Label, str] | None = None,
        zone_costs: Mapping[tuple[str, str], float] | None = None,
        links: Iterable[LinkRule] = (),
    ) -> FleetRules:
        """From labels; a pair may stand once in `links` and in `zone_costs`, in either order.

        >>> rules = FleetRules.from_labels(["ann", "bob"], caps={"ann": 1}, links=[LinkRule("bob", "ann", cost=5)])
        >>> rules.costs_of(rules.u, rules.v).tolist()
        [5.0]
        """
        labels = np.unique(label_array(nodes, "node"))
        capped = np.full(labels.size, NO_CAP, dtype=np.int32)
        for code, cap in zip(_codes(labels, caps or {}), (caps or {}).values(), strict=True):
            if isinstance(cap, bool) or not 0 <= cap <= NO_CAP:
                raise InvalidInput(f"a node may have 0 links or more, not {cap!r}")
            capped[code] = cap
        placed = np.full(labels.size, NO_ZONE, dtype=object)
        for code, zone in zip(_codes(labels, zones or {}), (zones or {}).values(), strict=True):
            placed[code] = zone
        names, zone_codes = np.unique(placed, return_inverse=True)
        between = {}
        for (one, other), cost in (zone_costs or {}).items():
            for zone in (one, other):
                if zone not in names:
                    raise InvalidInput(f"there is no node in zone {zone!r}")
            if (other, one) in (zone_costs or {}) and other != one:
                raise InvalidInput(f"zones {one!r} and {other!r} have two costs")
            between[one, other] = _require_cost(cost)
        pairs = _pairs(labels, links)
        return cls.from_codes(labels, capped, zone_codes.astype(np.int32), names.tolist(), between, pairs)

    @classmethod
    def from_codes(
        cls,
        nodes: Labels,
        caps: Codes,
        zones: Codes,
        zone_names: Iterable[str],
        zone_costs: Mapping[tuple[str, str], float],
        pairs: tuple[Codes, Codes, npt.NDArray[np.int8], Costs],
    ) -> FleetRules:
        """From codes that were checked; pairs are (u, v, rule, cost), u < v, each once."""
        names = tuple(zone_names)
        if len(names) > MOST_ZONES:
            raise InvalidInput(f"the nodes are in {len(names)} zones: at most {MOST_ZONES} make sense")
        table = np.full((max(len(names), 1),) * 2, PLAIN_COST)
        for (one, other), between in zone_costs.items():
            i, j = names.index(one), names.index(other)
            table[i, j] = table[j, i] = between
        u, v, rule, cost = pairs
        order = np.lexsort((v, u))
        return cls(nodes, caps, zones, names, table, u[order], v[order], rule[order], cost[order])

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing is said: neither caps nor rules nor a cost."""
        return not (self.has_caps or self.u.size or self.has_costs)

    @property
    def has_caps(self) -> bool:
        """Whether any node has a cap."""
        return bool((self.caps != NO_CAP).any())

    @property
    def has_zones(self) -> bool:
        """Whether any node is in a zone."""
        return any(self.zone_names)

    @cached_property
    def has_costs(self) -> bool:
        """Whether links differ in cost."""
        return bool(np.unique(self.zone_costs).size > 1 or self.has_costs_of_pairs)

    @property
    def has_costs_of_pairs(self) -> bool:
        """Whether any pair has a cost of its own."""
        return not bool(np.isnan(self.cost).all())

    def pairs_of(self, *rules: PairRule) -> tuple[Codes, Codes]:
        """The pairs under one of these rules."""
        chosen = np.isin(self.rule, [int(rule) for rule in rules])
        return self.u[chosen], self.v[chosen]

    @cached_property
    def held(self) -> Overlay:
        """The links that are required or kept."""
        return Overlay.from_codes(self.nodes, *self.pairs_of(PairRule.REQUIRE, PairRule.KEEP))

    def cap_of(self, node: int) -> int | None:
        """The most links of a node code; None where nothing limits them."""
        cap = int(self.caps[node])
        return None if cap == NO_CAP else cap

    def costs_of(self, u: npt.NDArray[Any], v: npt.NDArray[Any]) -> Costs:
        """What the links between these codes cost."""
        low, high = np.minimum(u, v).astype(np.int64), np.maximum(u, v).astype(np.int64)
        costs: Costs = self.zone_costs[self.zones[low], self.zones[high]].astype(np.float64)
        known = self.u.astype(np.int64) * max(self.nodes.size, 1) + self.v
        places = np.searchsorted(known, low * max(self.nodes.size, 1) + high)
        places[places == known.size] = 0
        if known.size:
            own = np.where(known[places] == low * max(self.nodes.size, 1) + high, self.cost[places], np.nan)
            costs = np.where(np.isnan(own), costs, own)
        return costs

    def restricted(self, nodes: Labels) -> FleetRules:
        """The rules for these nodes, sorted labels; of one that is not known here nothing is said."""
        codes = encode(self.nodes, nodes)
        known = codes >= 0
        caps = np.where(known, self.caps[codes], NO_CAP).astype(np.int32)
        names = (*self.zone_names, NO_ZONE) if NO_ZONE not in self.zone_names else self.zone_names
        zones = np.where(known, self.zones[codes], names.index(NO_ZONE)).astype(np.int32)
        places = np.full(self.nodes.size, -1, dtype=np.int64)
        places[codes[known]] = np.flatnonzero(known)
        both = (places[self.u] >= 0) & (places[self.v] >= 0)
        u, v = places[self.u[both]].astype(np.int32), places[self.v[both]].astype(np.int32)
        costs = {
            (one, other): float(self.zone_costs[i, j])
            for i, one in enumerate(self.zone_names)
            for j, other in enumerate(self.zone_names)
        }
        return FleetRules.from_codes(nodes, caps, zones, names, costs, (u, v, self.rule[both], self.cost[both]))

    def exceeding(self, degrees: Codes) -> Codes:
        """The codes of the nodes that have more links than they may."""
        return np.flatnonzero(degrees > self.caps).astype(np.int32)

    def __repr__(self) -> str:
        caps = int((self.caps != NO_CAP).sum())
        return f"FleetRules({self.nodes.size} nodes, {caps} caps, {len(self.zone_names)} zones, {self.u.size} pairs)"


def no_rules(nodes: Labels) -> FleetRules:
    """The rules of a fleet that has none, over these sorted labels."""
    return FleetRules.from_labels(nodes)


def _codes(labels: Labels, named: Iterable[Label]) -> list[int]:
    values = label_array(named, "node")
    codes = encode(labels, values)
    if codes.size and codes.min() < 0:
        raise InvalidInput(f"node {plain(values, int(np.argmin(codes)))!r} is not among the nodes")
    found: list[int] = codes.tolist()
    return found


def _require_cost(cost: float) -> float:
    if isinstance(cost, bool) or not 0 <= cost < float("inf"):
        raise InvalidInput(f"a cost is a number, 0 or more, not {cost!r}")
    return float(cost)


def _pairs(labels: Labels, links: Iterable[LinkRule]) -> tuple[Codes, Codes, npt.NDArray[np.int8], Costs]:
    rows = list(links)
    ends = np.array(_codes(labels, [end for row in rows for end in row[:2]]), dtype=np.int64).reshape(-1, 2)
    seen: set[tuple[int, int]] = set()
    for row, (one, other) in zip(rows, ends.tolist(), strict=True):
        if one == other:
            raise InvalidInput(f"node {row.u!r} is linked to itself")
        if (min(one, other), max(one, other)) in seen:
            raise InvalidInput(f"the pair {row.u!r}, {row.v!r} stands twice among the links")
        seen.add((min(one, other), max(one, other)))
    costs = [np.nan if row.cost is None else _require_cost(row.cost) for row in rows]
    return (
        ends.min(axis=1).astype(np.int32),
        ends.max(axis=1).astype(np.int32),
        np.array([int(row.rule) for row in rows], dtype=np.int8),
        np.array(costs, dtype=np.float64),
    )
