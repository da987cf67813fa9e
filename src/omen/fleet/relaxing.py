"""What would be enough, where rules leave topics split: caps to raise and pairs to allow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from omen.fleet.bypassing import bypass_within, short_topics
from omen.fleet.designing import FleetDesign, design_fleet, find_violations
from omen.fleet.rerouting import design_within
from omen.interests import Codes, Interests, Label
from omen.overlay import Overlay
from omen.rules import NO_CAP, FleetRules, PairRule

_TRIES = 6


@dataclass(frozen=True)
class Relaxation:
    """Changes of the rules under which the same design connects every topic."""

    caps: tuple[tuple[Label, int, int], ...]  # node, its cap now, the cap that is enough
    pairs: tuple[tuple[Label, Label], ...]  # forbidden pairs to allow
    rules: FleetRules

    def lines(self) -> list[str]:
        """For people, a line each."""
        raised = [f"raise max_links of node {node} from {now} to {enough}" for node, now, enough in self.caps]
        return raised + [f"allow a link between {u} and {v}" for u, v in self.pairs]


def find_relaxation(interests: Interests, rules: FleetRules, design: FleetDesign) -> Relaxation | None:
    """Go on without caps, and where that is not enough without bans, and see what was exceeded; then try it.

    The design takes other links under other rules, so that a first answer may leave a topic split again. Whatever is
    missing then is added; None where that does not end soon.
    """
    relaxed = rules
    for _ in range(_TRIES):
        relaxed = _cap_at_least(relaxed, relaxed.held.degrees)
        overlay = design_within(interests, relaxed, design)
        if not short_topics(interests, overlay, design.k):
            return _difference(rules, relaxed)
        relaxed = _relax(interests, relaxed, design, overlay)
    return None


def _relax(interests: Interests, rules: FleetRules, design: FleetDesign, overlay: Overlay) -> FleetRules:
    free = replace(rules, caps=np.full_like(rules.caps, NO_CAP))
    wider = _extend(interests, free, design, overlay)
    if short_topics(interests, wider, design.k):
        allowed = replace(free, rule=np.where(rules.rule == PairRule.FORBID, PairRule.NONE, rules.rule).astype(np.int8))
        wider = _extend(interests, allowed, design, wider)
    taken = find_violations(wider, rules).forbidden
    span = max(rules.nodes.size, 1)
    lifted = np.isin(rules.u.astype(np.int64) * span + rules.v, taken.u.astype(np.int64) * span + taken.v)
    kept = np.where(lifted & (rules.rule == PairRule.FORBID), PairRule.NONE, rules.rule).astype(np.int8)
    return _cap_at_least(replace(rules, rule=kept), wider.degrees)


def _extend(interests: Interests, rules: FleetRules, design: FleetDesign, start: Overlay) -> Overlay:
    overlay = design_fleet(interests, rules, design, start=start)
    return overlay if design.k == 1 else bypass_within(interests, rules, design, overlay)


def _cap_at_least(rules: FleetRules, degrees: Codes) -> FleetRules:
    return replace(rules, caps=np.maximum(rules.caps, degrees).astype(np.int32))


def _difference(rules: FleetRules, relaxed: FleetRules) -> Relaxation:
    raised = np.flatnonzero(relaxed.caps > rules.caps)
    labels = rules.nodes[raised].tolist()
    lifted = rules.rule != relaxed.rule
    return Relaxation(
        tuple(zip(labels, rules.caps[raised].tolist(), relaxed.caps[raised].tolist(), strict=True)),
        tuple(zip(rules.nodes[rules.u[lifted]].tolist(), rules.nodes[rules.v[lifted]].tolist(), strict=True)),
        relaxed,
    )
