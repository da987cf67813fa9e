"""The rules of a fleet into tables, as `rules_table` reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omen.rules import NO_CAP, FleetRules, PairRule
from omen.tables.arrow_arrays import from_numpy, from_words
from omen.tables.writing import label_column, labels_at


def rules_as_tables(rules: FleetRules) -> dict[str, Any]:
    """The tables `nodes`, `links` and `zone_costs`, each where it says anything. Zones without a node have no cost."""
    tables: dict[str, Any] = {}
    if rules.has_caps or rules.has_zones:
        limits = [None if cap == NO_CAP else cap for cap in rules.caps.tolist()]
        zones = [rules.zone_names[zone] or None for zone in rules.zones.tolist()]
        tables["nodes"] = pa.table(
            {
                "node": label_column(rules.nodes),
                "max_links": _nullable(limits),
                "zone": pa.array(zones, pa.large_string()),
            }
        )
    if rules.u.size:
        words = [None if rule == PairRule.NONE else PairRule(rule).name.lower() for rule in rules.rule.tolist()]
        tables["links"] = pa.table(
            {
                "u": labels_at(rules.nodes, rules.u),
                "v": labels_at(rules.nodes, rules.v),
                "rule": pa.array(words, pa.large_string()),
                "cost": pa.array([None if np.isnan(cost) else cost for cost in rules.cost.tolist()], pa.float64()),
            }
        )
    there = sorted(set(rules.zones.tolist()))
    pairs = [(i, j) for i in there for j in there if i <= j and rules.zone_names[i] and rules.zone_names[j]]
    if rules.has_zones and pairs:
        tables["zone_costs"] = pa.table(
            {
                "zone_u": from_words([rules.zone_names[i] for i, _ in pairs]),
                "zone_v": from_words([rules.zone_names[j] for _, j in pairs]),
                "cost": from_numpy(np.array([rules.zone_costs[i, j] for i, j in pairs])),
            }
        )
    return tables


def _nullable(values: list[int | None]) -> Any:
    return pa.array(values, pa.int64())
