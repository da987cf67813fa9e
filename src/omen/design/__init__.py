"""Overlays from scratch: a plain dict of the static algorithms, each with what it may be told and what it promises."""

from __future__ import annotations

import math

from omen.design.blocks import design_gm2
from omen.design.dispensable import design_low_oda_2
from omen.design.greedy import design_gm, design_low_oda, design_minmax_oda
from omen.design.hubs import design_cd_oda, design_cd_oda_i, design_cd_oda_ii
from omen.design.options import Algorithm, Option, resolve_options, suggest
from omen.design.per_topic import design_cycle_pt, design_harary_pt, design_ring_pt

__all__ = ["ALGORITHMS", "Algorithm", "Option", "resolve_options", "suggest"]

_RHO = Option(
    name="rho",
    type=float,
    default=3.0,
    minimum=1.0,
    maximum=math.inf,
    help="how many times better a link must be to be allowed to raise the maximum degree",
)
_K = Option(
    name="k",
    type=int,
    default=2,
    minimum=1,
    maximum=2**31 - 1,
    help="topic-connectivity to reach: any k - 1 nodes may fail and no topic is cut",
)
_SEED = Option(
    name="seed",
    type=int,
    default=0,
    minimum=0,
    maximum=2**63 - 1,
    help="what the order of each topic's subscribers is drawn from",
)

_LOW_ODA = "Onus, Richa: Parameterized maximum and average degree approximation in topic-based pub/sub overlays"
_KTCO = "Chen, Vitenberg, Jacobsen: Constructing fault-tolerant overlay networks for topic-based publish/subscribe"
_SPIDERCAST = "Chockler, Melamed, Tock, Vitenberg: SpiderCast"
_GM = "Chockler, Melamed, Tock, Vitenberg: Constructing scalable overlays for pub-sub with many topics"
_MINMAX = "Onus, Richa: Minimum maximum degree publish-subscribe overlay network design"

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("gm", design_gm, (), 1, "fewest links, greedily; a few nodes carry most of them", _GM),
        Algorithm(
            "minmax-oda",
            design_minmax_oda,
            (),
            1,
            "each link raises the maximum degree as little as it can; more links",
            _MINMAX,
        ),
        Algorithm("low-oda", design_low_oda, (_RHO,), 1, "few links and a low maximum degree at once", _LOW_ODA),
        Algorithm("cd-oda", design_cd_oda, (), 1, "topic diameter 2; hubs by number of neighbours", _MINMAX),
        Algorithm("cd-oda-i", design_cd_oda_i, (), 1, "topic diameter 2; hubs by weighted neighbours", _LOW_ODA),
        Algorithm("cd-oda-ii", design_cd_oda_ii, (), 1, "topic diameter 2; hubs by density", _LOW_ODA),
        Algorithm(
            "low-oda-2", design_low_oda_2, (_RHO,), 2, "no single loss cuts a topic; a low maximum degree", "ours"
        ),
        Algorithm("gm2", design_gm2, (), 2, "no single loss cuts a topic; fewest links, greedily", _KTCO),
        Algorithm(
            "harary-pt",
            design_harary_pt,
            (_K,),
            lambda options: int(options["k"]),
            "no k - 1 losses cut a topic; a Harary graph for each topic in one node order",
            _KTCO,
        ),
        Algorithm("cycle-pt", design_cycle_pt, (_SEED,), 2, "a ring for each topic, each in a random order", _KTCO),
        Algorithm("ring-pt", design_ring_pt, (), 2, "a ring for each topic, in label order", _SPIDERCAST),
    )
}
"""The static algorithms by name. `omen.ALGORITHMS` holds these and those of SpiderCast."""
