"""Where caps stop the greedy design short: links of full nodes are taken away and their topics led another way."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from omen.fleet.bypassing import bypass_within
from omen.fleet.certificates import split_topics
from omen.fleet.designing import FleetDesign, design_fleet, design_within_caps, without
from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import topic_components
from omen.rules import NO_CAP, FleetRules

MOST_TRIES = 2000
MOST_WORK = 4_000_000
"""Nodes times tries: what larger fleets get less of."""
MOST_NODES = 5000

Link = tuple[int, int]


def design_within(interests: Interests, rules: FleetRules, design: FleetDesign) -> Overlay:
    """`design_fleet`, and where caps leave it short a search for an overlay without split topics.

    The greedy design never takes a link back. Here, as in the routing of circuits, the rest is linked without caps
    first. Then each node above its cap gives up a link, and what that splits is linked again under the caps, until none
    is above. Where that does not succeed, the greedy overlay is the answer, with its split topics. With k = 2 the
    nodes that cut topics are then led around, as far as the rules allow.
    """
    overlay = _connect(interests, rules, design)
    return overlay if design.k == 1 else bypass_within(interests, rules, design, overlay)


def _connect(interests: Interests, rules: FleetRules, design: FleetDesign) -> Overlay:
    overlay = design_fleet(interests, rules, design)
    if not rules.has_caps or interests.node_count > MOST_NODES or not split_topics(interests, overlay):
        return overlay
    if rules.exceeding(rules.held.degrees).size:
        return overlay
    return _reroute(interests, rules, design, overlay) or overlay


def _reroute(interests: Interests, rules: FleetRules, design: FleetDesign, overlay: Overlay) -> Overlay | None:
    wider = design_within_caps(interests, rules, design, overlay, np.full_like(rules.caps, NO_CAP))
    if split_topics(interests, wider):
        return None
    tries = min(MOST_TRIES, MOST_WORK // max(interests.node_count, 1))
    found = bring_back(interests, rules, design, wider, tries)
    return None if rules.exceeding(found.degrees).size else found


def bring_back(interests: Interests, rules: FleetRules, design: FleetDesign, overlay: Overlay, tries: int) -> Overlay:
    """Nodes above their caps give up links, as far as that succeeds within so many tries.

    A link goes if its topics hold together without it, or if links among nodes below their caps take its place. No
    topic is in more pieces than before, no link that is required or kept goes, and no other node comes above its cap.
    """
    pieces = topic_components(interests, overlay)
    failed: set[Link] = set()
    since = 0  # how many links went since all were tried
    while (above := rules.exceeding(overlay.degrees)).size:
        for link, reduced in one_less(interests, rules, overlay, above, failed):
            if tries <= 0:
                return overlay
            tries -= 1
            linked = design_within_caps(interests, rules, design, reduced, np.maximum(rules.caps, reduced.degrees))
            if (topic_components(interests, linked) <= pieces).all():
                overlay = linked
                since += 1
                break
            failed.add(link)
        else:
            if not since:
                return overlay
            failed.clear()
            since = 0
    return overlay


def one_less(
    interests: Interests, rules: FleetRules, overlay: Overlay, nodes: npt.NDArray[Any], tried: Container[Link] = ()
) -> Iterator[tuple[Link, Overlay]]:
    """The overlay without a link of these nodes: those that share fewest topics first, none that is held or tried."""
    near = np.isin(overlay.u, nodes) | np.isin(overlay.v, nodes)
    held = links_of(rules.held)
    pairs = zip(overlay.u[near].tolist(), overlay.v[near].tolist(), strict=True)
    free = [link for link in pairs if link not in held and link not in tried]
    shared = {(u, v): np.intersect1d(interests.topics_of(u), interests.topics_of(v)).size for u, v in free}
    for u, v in sorted(free, key=lambda pair: (shared[pair], pair)):
        yield (u, v), without(overlay, u, v)


def links_of(overlay: Overlay) -> set[Link]:
    """The links by codes."""
    return set(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))
