"""GM, MinMax-ODA and Low-ODA under the rules of a fleet; what Low-ODA-2 adds to them is in `bypassing`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.design.schedule import ROUNDS
from omen.errors import InvalidInput
from omen.interests import Codes, Interests
from omen.kernels.engine import BARRED, Instance, InterestRows, PairRules, Rows, choose_ruled_links
from omen.overlay import Overlay
from omen.quality import component_labels
from omen.rules import FleetRules, PairRule

RULED = (*ROUNDS, "low-oda-2")
"""The algorithms that know rules."""
MOST_COSTS = 64
"""How many different costs links may have: each is a group of candidates."""
SIGMA = 2.0


@dataclass(frozen=True)
class FleetDesign:
    """What is asked for: `rho` as in Low-ODA (below 1: GM, infinity: MinMax-ODA), and the price of a dearer link.

    `k`: 2 where no single loss may cut a topic (Low-ODA-2), else 1.
    """

    rho: float
    sigma: float = SIGMA
    k: int = 1


def design_fleet(interests: Interests, rules: FleetRules, design: FleetDesign, start: Overlay | None = None) -> Overlay:
    """The overlay that the rules allow; topics that it cannot connect stay split.

    Ours: the papers know no rules. Links that are required or kept are there from the start, and so are those of
    `start`. Caps and bans take pairs out of the candidates. Candidates of one cost form a group. The rule of the
    algorithm picks one in each; from cheap to dear, a pick replaces the present one only if it contributes more than
    sigma times as much. Without costs there is one group; without rules this is the algorithm itself, link for link.
    """
    held = rules.held if start is None else join(rules.held, start)
    labels = component_labels(interests, held)
    rows: InterestRows = interests
    if start is not None:
        rows, labels = _split_rows(interests, labels)
        if not labels.size:
            return held
    instance = Instance(rows, labels, held.degrees, caps=rules.caps)
    links = choose_ruled_links(instance, design.rho, pair_rules(rules, design.sigma))
    return Overlay.from_codes(
        interests.nodes, np.concatenate((held.u, links[:, 0])), np.concatenate((held.v, links[:, 1]))
    )


def _split_rows(interests: Interests, labels: Codes) -> tuple[Rows, Codes]:
    """The rows of the split topics alone, of all nodes, and their labels: to others no link contributes anything."""
    sizes = np.diff(interests.topic_offsets)
    topics = np.repeat(np.arange(interests.topic_count), sizes)
    split = np.zeros(interests.topic_count, dtype=bool)
    split[topics[labels > 0]] = True
    nodes, wanted = interests.pair_codes
    kept, members = split[wanted], split[topics]
    counts = np.bincount(nodes[kept], minlength=interests.node_count)
    rows = Rows(
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        (np.cumsum(split) - 1)[wanted[kept]].astype(np.int32),
        np.concatenate(([0], np.cumsum(sizes[split]))).astype(np.int64),
        np.ascontiguousarray(interests.topic_nodes[members]),
    )
    return rows, np.ascontiguousarray(labels[members])


def design_within_caps(
    interests: Interests, rules: FleetRules, design: FleetDesign, start: Overlay, caps: npt.NDArray[Any]
) -> Overlay:
    """`design_fleet` from an overlay, with other caps than the rules have."""
    return design_fleet(interests, replace(rules, caps=caps.astype(np.int32)), design, start=start)


def join(one: Overlay, other: Overlay) -> Overlay:
    """The links of both."""
    return Overlay.from_codes(one.nodes, np.concatenate((one.u, other.u)), np.concatenate((one.v, other.v)))


def without(overlay: Overlay, u: int, v: int) -> Overlay:
    """The overlay without one link."""
    kept = (overlay.u != u) | (overlay.v != v)
    return Overlay.from_codes(overlay.nodes, overlay.u[kept], overlay.v[kept])


def without_forbidden(overlay: Overlay, rules: FleetRules) -> Overlay:
    """The overlay without the links that must not be there."""
    banned = Overlay.from_codes(rules.nodes, *rules.pairs_of(PairRule.FORBID))
    return _common(overlay, banned, False) if banned.link_count else overlay


def pair_rules(rules: FleetRules, sigma: float) -> PairRules:
    """The rules as the engine takes them: bans and costs as groups, from cheap to dear."""
    if not sigma >= 1:
        raise InvalidInput(f"sigma must be a number, at least 1, or inf, not {sigma!r}")
    has_cost = ~np.isnan(rules.cost)
    own_costs = rules.cost[has_cost] if has_cost.any() else np.empty(0)
    costs = np.unique(np.concatenate((rules.zone_costs.ravel(), own_costs)))
    if costs.size > MOST_COSTS:
        raise InvalidInput(f"links have {costs.size} different costs: at most {MOST_COSTS} make sense, round them")
    banned = rules.rule == PairRule.FORBID
    own: Any = slice(None) if banned.all() else banned | has_cost
    groups = np.full(rules.u.size, BARRED, dtype=np.int32)
    if own_costs.size:  # pairs without a cost are millions where many are forbidden
        priced = has_cost & ~banned
        groups[priced] = np.searchsorted(costs, rules.cost[priced])
    return PairRules(
        rules.zones,
        np.searchsorted(costs, rules.zone_costs).astype(np.int32),
        np.searchsorted(rules.u[own], np.arange(rules.nodes.size + 1, dtype=rules.u.dtype)).astype(np.int64),
        np.ascontiguousarray(rules.v[own]),
        np.ascontiguousarray(groups[own]),
        float(sigma),
    )


@dataclass(frozen=True)
class Violations:
    """Where an overlay is not within the rules."""

    above_cap: Codes  # nodes with more links than they may have
    forbidden: Overlay  # links that must not be there
    missing: Overlay  # links that must be there and are not

    def __bool__(self) -> bool:
        return bool(self.above_cap.size or self.forbidden.link_count or self.missing.link_count)


def find_violations(overlay: Overlay, rules: FleetRules) -> Violations:
    """Compare an overlay with the rules."""
    banned = Overlay.from_codes(rules.nodes, *rules.pairs_of(PairRule.FORBID))
    return Violations(
        rules.exceeding(overlay.degrees), _common(overlay, banned, True), _common(rules.held, overlay, False)
    )


def _common(links: Overlay, others: Overlay, there: bool) -> Overlay:
    """The links that are among the others, or those that are not."""
    span = max(links.node_count, 1)
    keys = links.u.astype(np.int64) * span + links.v
    chosen = np.isin(keys, others.u.astype(np.int64) * span + others.v, invert=not there)
    return Overlay.from_codes(links.nodes, links.u[chosen], links.v[chosen])


def describe_violations(overlay: Overlay, rules: FleetRules) -> list[str]:
    """For people, a line each."""
    found = find_violations(overlay, rules)
    above = [
        f"node {label} has {overlay.degrees[code]} links and may have {rules.caps[code]}"
        for code, label in zip(found.above_cap.tolist(), rules.nodes[found.above_cap].tolist(), strict=True)
    ]
    banned = [f"the link between {u} and {v} is forbidden" for u, v in found.forbidden.links()]
    return above + banned + [f"the link between {u} and {v} is missing" for u, v in found.missing.links()]
