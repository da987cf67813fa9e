"""Low-ODA-2 under rules: after the design, links that lead around every node that cuts a topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from omen.design.dispensable import bypass_by
from omen.fleet.certificates import split_topics
from omen.fleet.designing import FleetDesign, pair_rules
from omen.interests import Codes, Interests
from omen.kernels.engine import Instance, PairRules, choose_ruled_links
from omen.overlay import Overlay
from omen.quality import topic_connectivity
from omen.rules import FleetRules


def bypass_within(interests: Interests, rules: FleetRules, design: FleetDesign, overlay: Overlay) -> Overlay:
    """The overlay, and the links that make its nodes dispensable as far as the rules allow: see `design_low_oda_2`.

    Ours. Nodes are taken in the order of Low-ODA-2. The pieces that the loss of one would leave are joined as
    `design_fleet` joins subscribers: within caps, among pairs that are not forbidden, from cheap to dear. Links of the
    node itself count for its neighbours' caps, though they are of no use there. What cannot be joined stays cut.
    """
    of_pairs = pair_rules(rules, design.sigma)

    def choose(instance: Instance, nodes: Sequence[int]) -> Codes:
        codes = np.array(nodes, dtype=np.int32)
        capped = replace(instance, caps=np.ascontiguousarray(rules.caps[codes]))
        return choose_ruled_links(capped, design.rho, _among(of_pairs, codes))

    links = list(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))
    links += bypass_by(interests, links, range(interests.topic_count), choose)
    ends = np.array(links, dtype=np.int64).reshape(-1, 2)
    return Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


def _among(rules: PairRules, nodes: Codes) -> PairRules:
    """The rules of the pairs among some nodes, ascending, by their places."""
    places = np.full(rules.zones.size, -1, dtype=np.int32)
    places[nodes] = np.arange(nodes.size, dtype=np.int32)
    begin, end = rules.offsets[nodes], rules.offsets[nodes + 1]
    rows = np.repeat(np.arange(nodes.size), end - begin)
    starts = np.cumsum(end - begin) - (end - begin)
    entries = np.arange(rows.size) + np.repeat(begin - starts, end - begin)
    others = places[rules.nodes[entries]]
    kept = others >= 0
    return PairRules(
        np.ascontiguousarray(rules.zones[nodes]),
        rules.zone_groups,
        np.searchsorted(rows[kept], np.arange(nodes.size + 1)).astype(np.int64),
        np.ascontiguousarray(others[kept]),
        np.ascontiguousarray(rules.groups[entries][kept]),
        rules.sigma,
    )


def short_topics(interests: Interests, overlay: Overlay, k: int) -> list[int]:
    """The codes of the topics that are split, or with k = 2 that a single loss would split."""
    if k == 1:
        return split_topics(interests, overlay)
    wanted = np.minimum(k, np.maximum(np.diff(interests.topic_offsets) - 1, 0))
    found: list[int] = np.flatnonzero(topic_connectivity(interests, overlay, k) < wanted).tolist()
    return found
