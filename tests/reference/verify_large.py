"""Hold GM, Low-ODA and MinMax-ODA against their oracle on twenty instances of 300 nodes: many minutes, so no test.

PYTHONPATH=tests python -m reference.verify_large
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from omen.interests import Interests
from omen.kernels.greedy import CACHE_LENGTH, DENSE_DIVISOR, NO_CENTRE, NO_MAX_DEGREE, fresh_labels, greedy_links
from reference.greedy import all_pairs, construct_low_edges
from reference.instances import as_topics, random_interests

RHOS = {"gm": 0.0, "low-oda": 3.0, "minmax-oda": math.inf}
PATHS = [
    (CACHE_LENGTH, DENSE_DIVISOR, 0),
    (1, 0, 0),
    (2, 1000, 0),
    (3, -1000, 0),
    (CACHE_LENGTH, DENSE_DIVISOR, 1000),
]


def differences(interests: Interests) -> list[str]:
    """Which algorithms, on which paths, choose other links than the oracle, or the same in another order."""
    rows = (interests.node_offsets, interests.node_topics, interests.topic_offsets, interests.topic_nodes)
    unlinked = np.zeros(interests.node_count, dtype=np.int32)
    topics_of = as_topics(interests)
    found = []
    for name, rho in RHOS.items():
        expected = [list(link) for link in construct_low_edges(topics_of, [], all_pairs(topics_of), rho)]
        for path in PATHS:
            labels = fresh_labels(interests.topic_offsets)
            chosen = greedy_links(*rows, labels, unlinked, NO_MAX_DEGREE, rho, NO_CENTRE, *path)
            if chosen.tolist() != expected:
                found.append(f"{name} {path}")
    return found


def main() -> int:
    failed = 0
    for seed in range(20):
        topics, high, skew = [(60, 5, 0.0), (80, 5, 0.5), (120, 4, 1.0), (150, 8, 0.3)][seed % 4]
        started = time.process_time()
        found = differences(random_interests(300, topics, 2, high, skew, seed=2000 + seed))
        failed += bool(found)
        spent = time.process_time() - started
        print(f"{seed + 1}/20: 300 x {topics}, skew {skew}: {', '.join(found) or 'equal'} ({spent:.0f} s)", flush=True)
    print(f"{20 - failed} of 20 instances equal, link for link in order")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
