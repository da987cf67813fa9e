"""CD-ODA, CD-ODA-I, CD-ODA-II: every topic a star, so that no two subscribers are further apart than two links."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay


def design_cd_oda(interests: Interests) -> Overlay:
    """CD-ODA: the next hub is the node with most neighbours n_u.

    Paper: Onus and Richa (Low-ODA), section VI, from an earlier paper of theirs. Guarantee: topic-connected, topic
    diameters at most 2; no bound on degrees. Repeatedly choose a hub, link it to every other node that shares a topic
    not yet covered, and call the hub's topics covered. Cost: the paper's O(|V|^2 |T|) at worst; a node's neighbours are
    counted again only when it leads on its bound. Reading: u is no neighbour of itself, only topics not yet covered
    count, ties go to the lowest node, and we stop once no uncovered topic has two subscribers.
    """
    from omen.kernels.hubs import MOST_NEIGHBOURS

    return _design_stars(interests, MOST_NEIGHBOURS)


def design_cd_oda_i(interests: Interests) -> Overlay:
    """CD-ODA-I: the next hub is the node with most weighted neighbours w_u, each counted once for each shared topic.

    Paper: Onus and Richa, section VI-A. Guarantee, cost and reading as for CD-ODA.
    """
    from omen.kernels.hubs import MOST_WEIGHTED_NEIGHBOURS

    return _design_stars(interests, MOST_WEIGHTED_NEIGHBOURS)


def design_cd_oda_ii(interests: Interests) -> Overlay:
    """CD-ODA-II: the next hub is the node of the highest density w_u / n_u, compared without rounding.

    Paper: Onus and Richa, section VI-B. Guarantee, cost and reading as for CD-ODA.
    """
    from omen.kernels.hubs import HIGHEST_DENSITY

    return _design_stars(interests, HIGHEST_DENSITY)


def _design_stars(interests: Interests, rule: int) -> Overlay:
    from omen.kernels.hubs import hub_links
    from omen.overlay import Overlay

    links = hub_links(
        interests.node_offsets, interests.node_topics, interests.topic_offsets, interests.topic_nodes, rule
    )
    return Overlay.from_codes(interests.nodes, links[:, 0], links[:, 1])
