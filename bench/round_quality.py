"""Designs in rounds beside exact ones, in the same run: links, maximum degree, processor time.

    python -m bench.round_quality [--seed 11] [--algorithms gm,low-oda,minmax-oda] [--data DIR] NAME ...

NAME is a case below; slashdot and citeulike need the folder with their files. Rows of the table of
docs/algorithms/rounds.md are printed as they are found. Rounds are as `--rounds auto` makes them, on all cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

KINDS = {"uniform": "uniform", "zipf": "zipf:1", "expo": "expo"}
SIZES = {"10k": 10_000, "20k": 20_000, "50k": 50_000, "100k": 100_000, "300k": 300_000}
SYNTHETIC = {
    **{f"{k}-{n}": (SIZES[n], SIZES[n] // 10, KINDS[k], "powerlaw:10:90") for k in KINDS for n in SIZES},
    **{f"{k}-{n}-small": (SIZES[n], SIZES[n] // 10, KINDS[k], "powerlaw:4:100") for k in KINDS for n in SIZES},
    **{f"social-{n}": (SIZES[n], SIZES[n], "zipf:0.8", "powerlaw:19:5200") for n in ("10k", "20k", "50k")},
}
REAL = {
    "slashdot": "social --edges {data}/soc-Slashdot0902.txt.gz --directed --nodes 80000 --seed {seed}",
    "citeulike": "import --table {data}/citeulike-a_users.dat.gz --format adjacency",
}


def workload(name: str, seed: int, data: str) -> Interests:
    """The workload of a case."""
    from omen.cli.main import main as omen
    from omen.tables import read_workload
    from omen.workloads import generate_interests

    if name in SYNTHETIC:
        return generate_interests(*SYNTHETIC[name], seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        command = REAL[name].format(data=data, seed=seed)
        with redirect_stdout(sys.stderr):
            failed = omen(["workload", *command.split(), "--out", f"{folder}/w"])
        if failed:
            raise SystemExit(f"{name}: no workload made of the files in {data}")
        return read_workload(f"{folder}/w").interests


def measure(build: Callable[[], Overlay]) -> tuple[Overlay, float]:
    """What is built, and the processor time of all threads."""
    started = time.process_time()
    overlay = build()
    return overlay, time.process_time() - started


def compare(interests: Interests, algorithm: str, options: dict[str, Any], part_nodes: int) -> str:
    """Cells of the table: exact and in rounds, and the ratios."""
    from omen.design import ALGORITHMS
    from omen.design.rounds import Rounds, design_in_rounds
    from omen.design.schedule import rho_of
    from omen.quality import check_overlay

    settings = Rounds(rho_of(algorithm, options), part_nodes)
    exact, exact_s = measure(lambda: ALGORITHMS[algorithm].build(interests, **options))
    rounds, rounds_s = measure(lambda: design_in_rounds(interests, settings).overlay)
    assert check_overlay(interests, rounds).topic_connected
    links, degrees = (exact.link_count, rounds.link_count), (exact.degrees.max(), rounds.degrees.max())
    return (
        f"{links[0]:,} | {links[1]:,} | {links[1] / links[0]:.3f} | {degrees[0]} | {degrees[1]} | "
        f"{degrees[1] / degrees[0]:.3f} | {exact_s:.1f} s | {rounds_s:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.round_quality", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="+", choices=(*SYNTHETIC, *REAL))
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--algorithms", default="gm,low-oda,minmax-oda")
    parser.add_argument("--part-nodes", type=int, default=0)
    parser.add_argument("--data", default=str(Path("data")))
    arguments = parser.parse_args()
    small = workload("uniform-10k-small", 0, arguments.data)
    for algorithm in arguments.algorithms.split(","):
        options: dict[str, Any] = {"rho": 3.0} if algorithm == "low-oda" else {}
        compare(small, algorithm, options, 5000)  # kernels are loaded
        for name in arguments.names:
            cells = compare(workload(name, arguments.seed, arguments.data), algorithm, options, arguments.part_nodes)
            print(f"| {name}, seed {arguments.seed} | `{algorithm}` | {cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
