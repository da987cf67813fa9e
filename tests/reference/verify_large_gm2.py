"""Hold GM2 and the hub algorithms against their oracles on twenty instances of 300 nodes: minutes, so no test.

PYTHONPATH=tests python -m reference.verify_large_gm2
"""

from __future__ import annotations

import sys
import time

from omen.interests import Interests
from omen.kernels.biconnected import CACHE_LENGTH, DENSE_DIVISOR, gm2_links
from omen.kernels.hubs import HIGHEST_DENSITY, MOST_NEIGHBOURS, MOST_WEIGHTED_NEIGHBOURS, hub_links
from reference.gm2 import gm2
from reference.hubs import density, neighbours, stars, weighted_neighbours
from reference.instances import as_topics, random_interests

PATHS = [(CACHE_LENGTH, DENSE_DIVISOR), (1, 0), (2, 1000), (3, 8)]
RULES = {MOST_NEIGHBOURS: neighbours, MOST_WEIGHTED_NEIGHBOURS: weighted_neighbours, HIGHEST_DENSITY: density}


def differences(interests: Interests) -> list[str]:
    """Which algorithms, on which paths, choose other links than their oracles, or the same in another order."""
    rows = (interests.node_offsets, interests.node_topics, interests.topic_offsets, interests.topic_nodes)
    topics_of = as_topics(interests)
    expected = [list(link) for link in gm2(topics_of)]
    found = [f"gm2 {path}" for path in PATHS if gm2_links(*rows, *path).tolist() != expected]
    for rule, score in RULES.items():
        if hub_links(*rows, rule).tolist() != [list(link) for link in stars(topics_of, score)]:
            found.append(f"hub rule {rule}")
    return found


def main() -> int:
    failed = 0
    for seed in range(20):
        topics, high, skew = [(60, 8, 0.0), (60, 8, 0.5), (80, 7, 1.0), (120, 10, 0.3)][seed % 4]
        started = time.process_time()
        found = differences(random_interests(300, topics, 2, high, skew, seed=1000 + seed))
        failed += bool(found)
        spent = time.process_time() - started
        print(f"{seed + 1}/20: 300 x {topics}, skew {skew}: {', '.join(found) or 'equal'} ({spent:.0f} s)", flush=True)
    print(f"{20 - failed} of 20 instances equal, link for link in order")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
