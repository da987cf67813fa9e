"""The rules of a fleet: columns `max_links` and `zone` of the table `nodes`, and the tables `links` and `zone_costs`.

Strict, as tables of a design are: the first row that is not as it should be is an error that names file and row.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidTable
from omen.interests import Codes, Interests
from omen.rules import NO_CAP, NO_ZONE, FleetRules, PairRule
from omen.tables.cells import Cells, node_codes, read_cells
from omen.tables.parts import find_table, locate_table, shown

RULES = {rule.name.lower(): rule for rule in PairRule if rule is not PairRule.NONE}
NODE_COLUMNS = ("max_links", "zone")
LINK_COLUMNS = ("rule", "cost")

_NUMBER = re.compile(r"\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"\+?[0-9]{1,10}")


@dataclass(frozen=True)
class RuleTables:
    """Where the rules of a fleet stand; None where there is no such table."""

    nodes: Path | None = None
    links: Path | None = None
    zone_costs: Path | None = None


def find_rules(workload: str | Path) -> RuleTables:
    """The tables of rules in a workload folder. A table of interests alone has none."""
    folder = Path(workload)
    if locate_table(folder, "interests") == folder or not folder.is_dir():
        return RuleTables()
    return RuleTables(*(find_table(folder, name) for name in ("nodes", "links", "zone_costs")))


def read_rules(tables: RuleTables, interests: Interests) -> FleetRules:
    """The rules of a fleet, over the nodes of `interests`."""
    count = interests.node_count
    caps, zones = np.full(count, NO_CAP, dtype=np.int32), [NO_ZONE] * count
    if tables.nodes is not None:
        _read_nodes(locate_table(tables.nodes), interests, caps, zones)
    names = sorted(set(zones))
    codes = {name: code for code, name in enumerate(names)}
    costs = {} if tables.zone_costs is None else _read_zone_costs(locate_table(tables.zone_costs), codes)
    empty = np.empty(0, dtype=np.int32)
    pairs = (empty, empty, empty.astype(np.int8), empty.astype(np.float64))
    if tables.links is not None:
        pairs = _read_links(locate_table(tables.links), interests)
    zone_codes = np.array([codes[zone] for zone in zones], dtype=np.int32)
    return FleetRules.from_codes(interests.nodes, caps, zone_codes, names, costs, pairs)


def _read_nodes(path: Path, interests: Interests, caps: Codes, zones: list[str]) -> None:
    cells = read_cells(path, ("node",), NODE_COLUMNS, strict_names=False)
    (codes,) = node_codes(cells, interests)
    told: dict[int, tuple[int, int, str]] = {}
    limits = cells.more.get("max_links", [None] * codes.size)
    places = cells.more.get("zone", [None] * codes.size)
    for place, (code, limit, zone) in enumerate(zip(codes.tolist(), limits, places, strict=True)):
        cap = NO_CAP if limit is None else _as_cap(limit, cells, place)
        name = NO_ZONE if zone is None else str(zone)
        first, *before = told.setdefault(code, (place, cap, name))
        if before != [cap, name]:
            raise InvalidTable(
                f"{cells.where(place)}: node {shown(interests.nodes[code])!r} stands otherwise in {cells.where(first)}"
            )
        caps[code], zones[code] = cap, name


def _read_links(path: Path, interests: Interests) -> tuple[Codes, Codes, npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    cells = read_cells(path, ("u", "v"), LINK_COLUMNS)
    one, other = node_codes(cells, interests)
    loops = np.flatnonzero(one == other)
    if loops.size:
        place = int(loops[0])
        raise InvalidTable(f"{cells.where(place)}: node {shown(interests.nodes[one[place]])!r} is linked to itself")
    rule = np.array([_as_rule(word, cells, place) for place, word in enumerate(_more(cells, "rule"))], dtype=np.int8)
    cost = np.array([_as_cost(value, cells, place) for place, value in enumerate(_more(cells, "cost"))], dtype=float)
    silent = np.flatnonzero((rule == PairRule.NONE) & np.isnan(cost))
    if silent.size:
        raise InvalidTable(
            f"{cells.where(int(silent[0]))}: says nothing: give a rule ({', '.join(RULES)}), a cost, or both"
        )
    keys = np.minimum(one, other) * max(interests.node_count, 1) + np.maximum(one, other)
    order = np.argsort(keys, kind="stable")
    doubled = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    differs = [
        place
        for place in doubled.tolist()
        if rule[order[place]] != rule[order[place + 1]]
        or not np.array_equal(cost[order[place]], cost[order[place + 1]], equal_nan=True)
    ]
    if differs:
        first, second = min((int(order[place]), int(order[place + 1])) for place in differs)
        u, v = (shown(interests.nodes[end[second]]) for end in (one, other))
        raise InvalidTable(f"{cells.where(second)}: the pair {u!r}, {v!r} stands otherwise in {cells.where(first)}")
    kept = np.delete(order, doubled + 1)
    low, high = np.minimum(one, other)[kept], np.maximum(one, other)[kept]
    return low.astype(np.int32), high.astype(np.int32), rule[kept], cost[kept]


def _read_zone_costs(path: Path, zones: dict[str, int]) -> dict[tuple[str, str], float]:
    cells = read_cells(path, (), ("zone_u", "zone_v", "cost"), needed=("zone_u", "zone_v", "cost"))
    costs: dict[tuple[str, str], float] = {}
    rows: dict[tuple[str, str], int] = {}
    columns = (cells.more[name] for name in ("zone_u", "zone_v", "cost"))
    for place, (one, other, value) in enumerate(zip(*columns, strict=True)):
        for zone in (one, other):
            if str(zone) not in zones:
                known = ", ".join(name for name in zones if name) or "none: nodes have no column 'zone'"
                where = cells.where(place)
                raise InvalidTable(f"{where}: no node is in zone {shown(zone)!r}: zones are {shown(known)}")
        pair = (min(str(one), str(other)), max(str(one), str(other)))
        cost = _as_cost(value, cells, place)
        if costs.setdefault(pair, cost) != cost:
            raise InvalidTable(
                f"{cells.where(place)}: zones {shown(pair[0])!r}, {shown(pair[1])!r} cost otherwise"
                f" in {cells.where(rows[pair])}"
            )
        rows.setdefault(pair, place)
    return costs


def _more(cells: Cells, name: str) -> list[Any]:
    return cells.more.get(name) or [None] * cells.columns[0].rows


def _as_cap(value: Any, cells: Cells, place: int) -> int:
    whole = isinstance(value, float) and value.is_integer()
    text = str(int(value)) if whole else str(value)
    if isinstance(value, bool) or not _WHOLE.fullmatch(text) or int(text) >= NO_CAP:
        raise InvalidTable(f"{cells.where(place)}: max_links {shown(value)!r} is not a whole number, 0 or more")
    return int(text)


def _as_cost(value: Any, cells: Cells, place: int) -> float:
    if value is None:
        return math.nan
    cost = float(value) if isinstance(value, (int, float)) or _NUMBER.fullmatch(str(value)) else math.nan
    if isinstance(value, bool) or not 0 <= cost < math.inf:
        raise InvalidTable(f"{cells.where(place)}: cost {shown(value)!r} is not a number, 0 or more")
    return cost


def _as_rule(word: Any, cells: Cells, place: int) -> PairRule:
    if word is None:
        return PairRule.NONE
    if word not in RULES:
        raise InvalidTable(f"{cells.where(place)}: rule {shown(word)!r} is not one of {', '.join(RULES)}")
    return RULES[word]


def read_addresses(path: str | Path, interests: Interests) -> dict[int, tuple[str, str]]:
    """The table node, address: by node code the address, and where it stands."""
    cells = read_cells(locate_table(Path(path)), ("node",), ("address",), needed=("address",))
    (codes,) = node_codes(cells, interests)
    found: dict[int, tuple[str, str]] = {}
    for place, (code, address) in enumerate(zip(codes.tolist(), cells.more["address"], strict=True)):
        known, where = found.setdefault(code, (str(address), cells.where(place)))
        if known != str(address):
            raise InvalidTable(
                f"{cells.where(place)}: node {shown(interests.nodes[code])!r} has another address in {where}"
            )
    return found
