"""What a loss has split is linked again within the rules; where that cannot be, caps are exceeded by little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from omen.fleet.certificates import split_topics
from omen.fleet.designing import SIGMA, FleetDesign, design_within_caps, join, without_forbidden
from omen.fleet.rerouting import bring_back, design_within
from omen.interests import Interests, Label
from omen.overlay import Overlay
from omen.rules import NO_CAP, FleetRules

MOST_TRIES = 100
MOST_WORK = 100_000
"""Nodes times tries to bring a node below its cap again, with each repair."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Within:
    """What repairs stay within: the rules, and how many times as much a dearer link must contribute."""

    rules: FleetRules
    sigma: float = SIGMA


class AboveCap(NamedTuple):
    """A node that has more links than it may have."""

    node: Label
    links: int
    max_links: int


def repair_within(
    interests: Interests, rules: FleetRules, design: FleetDesign, survivors: Overlay, among: Mask | None = None
) -> Overlay:
    """The links that survived, those that are required, and what connects every topic; forbidden ones go.

    Links are made among the nodes of `among` where that is enough, else among all. Where the caps leave a topic split,
    every cap counts as one more, until it is connected or only bans are in the way. Then each node above its cap gives
    up links that its topics can do without, or that others can take over below their caps: see `bring_back`. No other
    link is taken away: a repair makes few changes. `redesign` is for more.
    """
    linked = join(without_forbidden(survivors, rules), rules.held)
    caps = np.maximum(rules.caps, linked.degrees)
    if among is not None:
        linked = design_within_caps(interests, rules, design, linked, np.where(among, caps, linked.degrees))
    linked = design_within_caps(interests, rules, design, linked, caps)
    if split_topics(interests, linked):
        linked = _exceed(interests, rules, design, linked, caps)
    tries = min(MOST_TRIES, MOST_WORK // max(interests.node_count, 1))
    return bring_back(interests, rules, design, linked, tries)


def _exceed(
    interests: Interests, rules: FleetRules, design: FleetDesign, linked: Overlay, caps: npt.NDArray[Any]
) -> Overlay:
    """Caps exceeded by as little as will do."""
    free = design_within_caps(interests, rules, design, linked, np.full_like(caps, NO_CAP))
    by_bans = set(split_topics(interests, free))
    while set(split_topics(interests, linked)) - by_bans:
        caps = np.where(caps == NO_CAP, NO_CAP, caps + 1)
        linked = design_within_caps(interests, rules, design, linked, caps)
    return linked


def begin_within(interests: Interests, rules: FleetRules, design: FleetDesign) -> Overlay:
    """An overlay to begin with: as designed, and where the rules leave it short, with caps exceeded by little."""
    designed = design_within(interests, rules, design)
    if not split_topics(interests, designed):
        return designed
    return repair_within(interests, rules, design, designed)


def above_caps(overlay: Overlay, rules: FleetRules) -> tuple[AboveCap, ...]:
    """The nodes that have more links than they may, in label order."""
    above = rules.exceeding(overlay.degrees)
    rows = (rules.nodes[above].tolist(), overlay.degrees[above].tolist(), rules.caps[above].tolist())
    return tuple(AboveCap(*row) for row in zip(*rows, strict=True))
