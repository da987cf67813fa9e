"""SpiderCast's nodes to quiescence, message by message, with full views: python -m bench spidercast."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from bench.measure import Row, machine_facts, peak_mb, run_apart, write_result

TITLE = "SpiderCast to quiescence"
INTRODUCTION = (
    "One core, kernels compiled. All nodes start together and know each other; the clock runs from the first message"
    " until no node has anything left to do. 100 topics, each node wants 10, popularity as in RSS (Zipf 0.5)."
)
NODES = (1_000, 10_000)
TARGETS = {10_000: (180.0, 4096.0)}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "SpiderCast (3, 0)": ("spidercast", {}),
    "SpiderCast (3, 1)": ("spidercast", {"kr": 1}),
    "similarity(10, 0)": ("similarity", {"x": 10, "y": 0}),
    "random(10)": ("random", {"y": 10}),
}


def run_case(nodes: int, case: str) -> dict[str, Any]:
    from omen.quality import check_overlay, degree_summary
    from omen.systems import design_overlay
    from omen.workloads import generate_interests

    algorithm, options = CASES[case]
    interests = generate_interests(nodes, 100, "zipf:0.5", "10", seed=1)
    design_overlay(generate_interests(20, 5, "uniform", "2", seed=1), algorithm, **options)
    started, worked = time.perf_counter(), time.process_time()
    overlay = design_overlay(interests, algorithm, **options)
    wall, processor = time.perf_counter() - started, time.process_time() - worked
    degrees = degree_summary(overlay)
    return {
        "wall_s": wall,
        "processor_s": processor,
        "peak_mb": peak_mb(),
        "links": overlay.link_count,
        "average degree": round(degrees.average, 2),
        "topics split": len(check_overlay(interests, overlay).failing),
    }


def measure() -> None:
    """Every case at 10,000 nodes, the first also at 1,000; kept as bench/results/spidercast.json."""
    before = machine_facts()
    rows = []
    for case in CASES:
        for nodes in NODES if case == next(iter(CASES)) else NODES[-1:]:
            found = run_apart("bench.spidercast", "--case", case, "--nodes", str(nodes))
            target_s, target_mb = TARGETS[nodes] if nodes in TARGETS and case == next(iter(CASES)) else (None, None)
            timing = [found.pop(name) for name in ("wall_s", "processor_s", "peak_mb")]
            row = Row(f"{case}, {nodes:,} nodes", timing[0], timing[1], 1, target_s, timing[2], target_mb, found)
            rows.append(row)
            print(f"{row.what}: {row.wall_s:.1f} s, {row.processor_s:.1f} s of processor time, {found}", flush=True)
    write_result("spidercast", TITLE, INTRODUCTION, before, rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spidercast", description=__doc__)
    parser.add_argument("--case", choices=tuple(CASES), help="run one case in this process and print it as JSON")
    parser.add_argument("--nodes", type=int, default=NODES[-1], help="how many (10000)")
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(run_case(arguments.nodes, arguments.case)))
    else:
        measure()
    return 0


if __name__ == "__main__":
    sys.exit(main())
