"""The greedy engine as maintainers call it."""

from __future__ import annotations

import numpy as np

from omen.interests import Codes
from omen.kernels import greedy, repair
from omen.maintain.state import Pairs, State

NO_LINKS = np.empty((0, 2), np.int32)


def reconnect(
    state: State,
    former: Codes,
    helpers: Codes,
    topics: Codes,
    everyone: bool,
    components: int,
    max_degree: int,
    enough: int | None,
    rho: float,
) -> tuple[Pairs, Codes]:
    """The links that connect these topics again, in the order chosen, and the shadow set: see `split_instance`.

    `enough`: whoever has so many links is spared, not only those of the largest degree. Links are pairs of slots.
    """
    shadow, nodes, node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, most = repair.split_instance(
        state.graph, state.scratch, former, helpers, topics, everyone, components, max_degree
    )
    if nodes.size == 0:
        return NO_LINKS, shadow
    if enough is not None:
        degrees, most = np.minimum(degrees, np.int32(enough)), enough
    links = greedy.greedy_links(
        node_offsets,
        node_topics,
        topic_offsets,
        topic_nodes,
        labels,
        degrees,
        most,
        rho,
        greedy.NO_CENTRE,
        greedy.CACHE_LENGTH,
        greedy.DENSE_DIVISOR,
        greedy.SMALL_NODES,
    )
    pairs: Pairs = nodes[links]
    return pairs, shadow
