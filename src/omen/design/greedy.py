"""GM, MinMax-ODA, Low-ODA: one greedy engine, told how much a link may cost in degree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

IGNORE_DEGREES = 0.0


def design_gm(interests: Interests) -> Overlay:
    """GM (Greedy Merge): add the link that removes most topic components, until every topic is connected.

    Paper: Chockler, Melamed, Tock, Vitenberg, as stated by Onus and Richa (Low-ODA). Guarantee: topic-connected,
    average degree within O(log |V||T|) of the least; the maximum degree may be |V| where a constant one is possible.
    Cost: a lazy search by row, a few evaluations of each node's row; O(subscriptions + 64 |V|) memory. Deviation: none
    in the result; ties, which the papers leave open, go to the lowest pair, here and in the two others.
    """
    return _design_greedily(interests, IGNORE_DEGREES)


def design_minmax_oda(interests: Interests) -> Overlay:
    """MinMax-ODA: as GM, but only among the links that raise the maximum degree least.

    Paper: Onus and Richa, as stated in Low-ODA. Guarantee: topic-connected, maximum degree within O(log |V||T|) of the
    least; the average may be |V| times the least. Cost: as Low-ODA. Reading: a link that removes no component is never
    added; if none that spares the maximum degree removes any, the best of all is taken.
    """
    return _design_greedily(interests, math.inf)


def design_low_oda(interests: Interests, rho: float) -> Overlay:
    """Low-ODA(rho): the best link that spares the maximum degree, unless the best of all is over rho times better.

    Paper: Onus and Richa, Low-ODA(k), whose k the later papers and we call rho. Guarantee: topic-connected, average
    degree within O(rho log |V||T|) and maximum degree within O(|V|/rho log |V||T|) of the least. Low-ODA(1) is GM with
    ties broken towards low degree, Low-ODA(inf) is MinMax-ODA. Cost: the paper's bound is O(|V|^4 |T|); ours is that of
    GM with two bounds for each row. Reading: as MinMax-ODA.
    """
    return _design_greedily(interests, rho)


def _design_greedily(interests: Interests, rho: float) -> Overlay:
    from omen.kernels.engine import choose_links, unlinked
    from omen.overlay import Overlay

    links = choose_links(unlinked(interests), rho)
    return Overlay.from_codes(interests.nodes, links[:, 0], links[:, 1])
