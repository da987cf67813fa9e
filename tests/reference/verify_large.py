"""Hold GM, Low-ODA, MinMax-ODA, GM2 and the hub rules against their oracles on twenty instances of 300 nodes each.

Many minutes, so no test: PYTHONPATH=tests python -m reference.verify_large [greedy|blocks]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from omen.interests import Interests
from omen.kernels.engine import TUNED, Tuning, choose_block_links, choose_links, unlinked
from omen.kernels.hubs import HIGHEST_DENSITY, MOST_NEIGHBOURS, MOST_WEIGHTED_NEIGHBOURS, hub_links
from reference.gm2 import gm2
from reference.greedy import all_pairs, construct_low_edges
from reference.hubs import density, neighbours, stars, weighted_neighbours
from reference.instances import as_topics, random_interests

RHOS = {"gm": 0.0, "low-oda": 3.0, "minmax-oda": math.inf}
PATHS = [Tuning(small_nodes=0), Tuning(1, 0, 0), Tuning(2, 1000, 0), Tuning(3, -1000, 0), Tuning(small_nodes=1000)]
GM2_PATHS = [TUNED, Tuning(1, 0), Tuning(2, 1000), Tuning(3, 8)]
RULES = {MOST_NEIGHBOURS: neighbours, MOST_WEIGHTED_NEIGHBOURS: weighted_neighbours, HIGHEST_DENSITY: density}


def greedy_differences(interests: Interests) -> list[str]:
    """Which algorithms, on which paths, choose other links than the oracle, or the same in another order."""
    topics_of = as_topics(interests)
    found = []
    for name, rho in RHOS.items():
        expected = [list(link) for link in construct_low_edges(topics_of, [], all_pairs(topics_of), rho)]
        for path in PATHS:
            if choose_links(unlinked(interests), rho, tuning=path).tolist() != expected:
                found.append(f"{name} {path}")
    return found


def block_differences(interests: Interests) -> list[str]:
    """Which algorithms, on which paths, choose other links than their oracles, or the same in another order."""
    rows = (interests.node_offsets, interests.node_topics, interests.topic_offsets, interests.topic_nodes)
    topics_of = as_topics(interests)
    expected = [list(link) for link in gm2(topics_of)]
    found = [f"gm2 {path}" for path in GM2_PATHS if choose_block_links(interests, path).tolist() != expected]
    for rule, score in RULES.items():
        if hub_links(*rows, rule).tolist() != [list(link) for link in stars(topics_of, score)]:
            found.append(f"hub rule {rule}")
    return found


# What is held against its oracle, on which instances: (topics, most topics a node, skew), and the first seed.
GROUPS: dict[str, tuple[Callable[[Interests], list[str]], list[tuple[int, int, float]], int]] = {
    "greedy": (greedy_differences, [(60, 5, 0.0), (80, 5, 0.5), (120, 4, 1.0), (150, 8, 0.3)], 2000),
    "blocks": (block_differences, [(60, 8, 0.0), (60, 8, 0.5), (80, 7, 1.0), (120, 10, 0.3)], 1000),
}


def verify(group: str) -> bool:
    """Whether all twenty instances are equal; each is told."""
    differences, shapes, first_seed = GROUPS[group]
    failed = 0
    for seed in range(20):
        topics, high, skew = shapes[seed % 4]
        started = time.process_time()
        found = differences(random_interests(300, topics, 2, high, skew, seed=first_seed + seed))
        failed += bool(found)
        spent = time.process_time() - started
        print(f"{seed + 1}/20: 300 x {topics}, skew {skew}: {', '.join(found) or 'equal'} ({spent:.0f} s)", flush=True)
    print(f"{group}: {20 - failed} of 20 instances equal, link for link in order")
    return not failed


if __name__ == "__main__":
    sys.exit(sum(not verify(group) for group in sys.argv[1:] or GROUPS))
