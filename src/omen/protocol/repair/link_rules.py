"""What nodes say of their links (`LinkRules`) as limits of one plan. Where none says anything there are none.

Beyond the papers. A cap is what an operator allows, so a repair keeps it while topics can be connected without more.
Bans are kept always: the node that says so refuses such a link as well, if another plans it (see `links`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omen.kernels.engine import NO_LIMIT, LinkLimits
from omen.protocol.events import NodeId
from omen.protocol.messages.base import LinkRules


def limits_of(
    nodes: Sequence[NodeId], rules: Mapping[NodeId, LinkRules], links: Mapping[NodeId, int], sigma: float
) -> LinkLimits | None:
    """The limits of a plan among these nodes; None where no rule concerns it. `links`: how many each has that stay."""
    if not rules:
        return None
    places = {node: place for place, node in enumerate(nodes)}
    room, zones = [NO_LIMIT] * len(nodes), [""] * len(nodes)
    banned = set()
    for node, rule in rules.items():
        place = places[node]
        zones[place] = rule.zone
        if rule.max_links:
            room[place] = rule.max_links - links.get(node, 0)
        for other in rule.forbid:
            if other in places and other != node:
                banned.add((min(place, places[other]), max(place, places[other])))
    if not banned and len(set(zones)) < 2 and all(free == NO_LIMIT for free in room):
        return None
    return LinkLimits(room, zones, frozenset(banned), sigma)


def are_apart(one: NodeId, rule: LinkRules | None, other: NodeId, far: LinkRules | None) -> bool:
    """Whether one of two nodes forbids a link between them."""
    return (rule is not None and other in rule.forbid) or (far is not None and one in far.forbid)
