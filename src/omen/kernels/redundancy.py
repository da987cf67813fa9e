"""What each link of a node is needed for: the topics whose subscribers only it holds together."""

from __future__ import annotations

import numpy as np

from omen.kernels.compiling import compiled
from omen.kernels.pieces import search_pieces
from omen.kernels.population import Codes, wants
from omen.kernels.repair import GRAPH, SCRATCH, Graph, Scratch
from omen.kernels.rows import POOL, append, remove


@compiled(f"{POOL}({GRAPH}, {SCRATCH}, int64, {POOL})")
def link_needs(graph: Graph, scratch: Scratch, node: int, neighbours: Codes) -> Codes:
    """For each of these neighbours, the number of topics that would split without its link to the node; 0: redundant.

    The link is taken out, and for each topic both ends share two searches go out from them until they meet or one is
    done. Afterwards it is put back. Cost: what the searches touch, some tens of nodes per topic.
    """
    topic_spans, topic_pool, _, _, link_spans, link_pool, bits, _ = graph
    clock, marks, _, queue, _ = scratch
    needs = np.zeros(neighbours.size, np.int32)
    seeds = np.empty(2, np.int32)
    parent = np.empty(2, np.int32)
    ends = np.empty(6, np.int32)
    seeds[0] = node
    for place in range(neighbours.size):
        other = neighbours[place]
        seeds[1] = other
        remove(link_spans, link_pool, node, other)
        remove(link_spans, link_pool, other, node)
        for seat in range(topic_spans[node, 0], topic_spans[node, 0] + topic_spans[node, 1]):
            topic = topic_pool[seat]
            if wants(bits, topic_spans, topic_pool, other, topic):
                pieces, _ = search_pieces(
                    topic,
                    seeds,
                    topic_spans,
                    topic_pool,
                    link_spans,
                    link_pool,
                    bits,
                    clock,
                    marks,
                    queue,
                    parent,
                    ends,
                )
                clock[0] += 2
                needs[place] += pieces > 1
        append(link_spans, link_pool, node, other)
        append(link_spans, link_pool, other, node)
    return needs
