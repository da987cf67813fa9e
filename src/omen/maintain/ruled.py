"""Repairs within the rules of a fleet: which links a state gets and gives up."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from omen.fleet.designing import FleetDesign
from omen.fleet.repairing import AboveCap, Within, above_caps, repair_within
from omen.fleet.rerouting import links_of
from omen.interests import Codes
from omen.maintain.engine import NO_LINKS
from omen.maintain.state import Pairs, State
from omen.overlay import Overlay


@dataclass(frozen=True)
class RuledRepair:
    """Links to make and to drop, as pairs of slots, and the nodes that are above their caps then."""

    made: Pairs
    dropped: Pairs
    above: tuple[AboveCap, ...]


def repair_in_fleet(state: State, within: Within, rho: float, asked: Collection[int] | None, keep: bool) -> RuledRepair:
    """What connects every topic of a state as far as the rules allow, and beyond caps where they do not.

    `asked`: the slots among which links are looked for first; None: all. `keep`: whether the links there are stay.
    """
    interests, present = state.interests(), state.overlay()
    slots = state.nodes.sorted_slots()
    rules = within.rules.restricted(interests.nodes)
    among = None if asked is None else np.isin(slots, np.fromiter(asked, np.int32, len(asked)))
    survivors = present if keep else Overlay.from_codes(interests.nodes, slots[:0], slots[:0])
    linked = repair_within(interests, rules, FleetDesign(rho, within.sigma), survivors, among)
    before, after = links_of(present), links_of(linked)
    return RuledRepair(as_pairs(slots, after - before), as_pairs(slots, before - after), above_caps(linked, rules))


def as_pairs(slots: Codes, links: set[tuple[int, int]]) -> Pairs:
    """Links by code as pairs of slots."""
    if not links:
        return NO_LINKS
    pairs: Pairs = slots[np.array(sorted(links), np.int64)]
    return pairs
