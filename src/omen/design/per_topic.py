"""HararyPT, CyclePT, RingPT: one fixed graph for each topic, laid over one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.interests import Codes, Interests
    from omen.overlay import Overlay


def design_harary_pt(interests: Interests, k: int) -> Overlay:
    """HararyPT(k): the Harary graph H(k, n_t) on each topic's subscribers, all topics in one node order.

    Paper: Chen, Vitenberg, Jacobsen (kTCO), Alg. 2. Guarantee: k-topic-connected; no bound on links, few where
    interests are alike, since a common order makes topics share links. Cost: a sort of O(k subscriptions) links.
    Reading: the order, arbitrary in the paper, is that of the labels; at most k subscribers form a clique, k = 1 gives
    paths, and where k and n_t are both odd the chords start at the first of the order.
    """
    return _lay_over(interests, interests.topic_nodes, k)


def design_ring_pt(interests: Interests) -> Overlay:
    """RingPT: a ring through each topic's subscribers in label order.

    Paper: Chockler, Melamed, Tock, Vitenberg (SpiderCast), as a rival. Guarantee: 2-topic-connected. Cost: as
    HararyPT(2), which it equals.
    """
    return _lay_over(interests, interests.topic_nodes, 2)


def design_cycle_pt(interests: Interests, seed: int) -> Overlay:
    """CyclePT: a ring through each topic's subscribers, in an order drawn for each topic by itself.

    Paper: Chen, Vitenberg, Jacobsen (kTCO), section VIII, as the practice to improve on. Guarantee: 2-topic-connected.
    Cost: a sort of the subscriptions. A subscriber's place is drawn from (seed, topic label, node label) alone, so the
    same links come out wherever and in whatever pieces this is computed; equal draws stand in label order.
    """
    import numpy as np

    from omen.interests import label_keys
    from omen.kernels.counter_random import mix_array

    topics = np.repeat(np.arange(interests.topic_count), np.diff(interests.topic_offsets))
    draws = mix_array(
        np.uint64(seed), label_keys(interests.topics)[topics], label_keys(interests.nodes)[interests.topic_nodes]
    )
    return _lay_over(interests, interests.topic_nodes[np.lexsort((draws, topics))], 2)


def _lay_over(interests: Interests, ordered_members: Codes, k: int) -> Overlay:
    """The union of H(k, n_t) over all topics; `ordered_members` are each topic's subscribers in their order."""
    import numpy as np

    from omen.kernels.per_topic import harary_keys
    from omen.overlay import Overlay

    count = max(interests.node_count, 1)
    keys = harary_keys(interests.topic_offsets, ordered_members, count, k)
    keys.sort()
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: keys.size]]  # np.unique hashes first: a hundred times slower
    u, v = np.divmod(keys, count)
    return Overlay(interests.nodes, u.astype(np.int32), v.astype(np.int32))
