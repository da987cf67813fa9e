"""GM2: overlays in which no single loss cuts a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay


def design_gm2(interests: Interests) -> Overlay:
    """GM2: add the link whose ends lack a common block in most topics, until every topic is one block.

    Paper: Chen, Vitenberg, Jacobsen (kTCO), Alg. 1. Guarantee: 2-topic-connected; links within O(U + log |V||T|) of the
    fewest possible, U being the most subscribers of a topic. Cost: the paper's bound is O(|V|^4 |T|); ours is lazy by
    row over block-cut forests and evaluates each node's row a few times in the whole run; O(subscriptions + 64 |V|)
    memory. Deviation: none in the result; ties, which the paper leaves open, go to the lowest pair.
    """
    from omen.kernels.engine import choose_block_links
    from omen.overlay import Overlay

    links = choose_block_links(interests)
    return Overlay.from_codes(interests.nodes, links[:, 0], links[:, 1])
