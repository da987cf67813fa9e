"""What a loss has split is linked again within the rules; where that cannot be, caps are exceeded by little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.fleet.certificates import split_topics
from omen.fleet.designing import FleetDesign, design_fleet, join
from omen.interests import Interests
from omen.overlay import Overlay
from omen.rules import NO_CAP, FleetRules


def repair_within(interests: Interests, rules: FleetRules, design: FleetDesign, survivors: Overlay) -> Overlay:
    """All links that survived, those that are required, and what connects every topic.

    Where the caps leave a topic split, every cap counts as one more, until it is connected or only bans are in the way.
    No link is taken away: a repair makes few changes. `redesign` is for more.
    """
    linked = join(survivors, rules.held)
    caps = np.maximum(rules.caps, linked.degrees)
    linked = design_fleet(interests, _with_caps(rules, caps), design, start=linked)
    if not split_topics(interests, linked):
        return linked
    free = design_fleet(interests, _with_caps(rules, np.full_like(caps, NO_CAP)), design, start=linked)
    by_bans = set(split_topics(interests, free))
    while set(split_topics(interests, linked)) - by_bans:
        caps = np.where(caps == NO_CAP, NO_CAP, caps + 1)
        linked = design_fleet(interests, _with_caps(rules, caps), design, start=linked)
    return linked


def _with_caps(rules: FleetRules, caps: npt.NDArray[Any]) -> FleetRules:
    return replace(rules, caps=caps.astype(np.int32))
