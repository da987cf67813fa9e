"""The price of constraints: python -m bench.fleet [--nodes 2000 --topics 200] [--times] [--write].

What caps, zones and bans cost in links, against the same design without them, for two sizes of fleets or the one that
is given. `--write` puts the tables into docs/fleets.md, with sizes and commit. `--times` adds processor time, as a
multiple of that of the design without rules: medians of runs by turns, so that what else runs there weighs on both.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from bench.history import code_now
from bench.measure import ROOT

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay
    from omen.rules import FleetRules

PAGE = ROOT / "docs" / "fleets.md"
MARKS = re.compile(r"(<!-- price of constraints -->\n).*?(<!-- end of price -->)", re.DOTALL)
SIZES = ((2_000, 200), (10_000, 1_000))
TURNS = 7
RHO = 3.0
FORBIDDEN = 0.1
ZONE_COST = 10.0


@dataclass(frozen=True)
class Case:
    """A set of rules: caps as a multiple of the maximum degree without rules, 0 for none."""

    what: str
    caps: float = 0.0
    zones: int = 1
    sigma: float = 1.0
    forbidden: float = 0.0


CASES = (
    *(Case(f"caps at {caps} times the maximum", caps=caps) for caps in (1.0, 1.2, 1.5)),
    Case("10% of pairs forbidden", forbidden=FORBIDDEN),
    *(Case(f"{zones} zones, sigma {sigma}", zones=zones, sigma=sigma) for zones in (3, 10) for sigma in (1, 2, 4, 8)),
    Case("all: caps at 1.2, 10% forbidden, 3 zones, sigma 2", 1.2, 3, 2.0, FORBIDDEN),
    Case("all: caps at 1.2, 10% forbidden, 10 zones, sigma 4", 1.2, 10, 4.0, FORBIDDEN),
)


def rules_of(case: Case, interests: Interests, highest: int) -> FleetRules:
    """Zones and forbidden pairs are drawn, the same ones for the same numbers."""
    import numpy as np

    from omen.rules import NO_CAP, FleetRules, PairRule

    nodes = interests.node_count
    draw = np.random.default_rng(1)
    zones = draw.integers(0, case.zones, nodes).astype(np.int32)
    names = [f"z{zone:02}" for zone in range(case.zones)]
    caps = np.full(nodes, int(case.caps * highest) if case.caps else NO_CAP, dtype=np.int32)
    ends = draw.integers(0, nodes, (int(case.forbidden * nodes * (nodes - 1) / 2), 2))
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique((low * nodes + high)[low < high])
    u, v = (keys // nodes).astype(np.int32), (keys % nodes).astype(np.int32)
    banned = np.full(keys.size, PairRule.FORBID, dtype=np.int8)
    costs = dict.fromkeys(combinations(names, 2), ZONE_COST)
    return FleetRules.from_codes(interests.nodes, caps, zones, names, costs, (u, v, banned, np.full(keys.size, np.nan)))


def measure(nodes: int, topics: int, times: bool) -> Iterator[list[str]]:
    """The rows of the table."""
    from omen.fleet import FleetDesign, design_fleet, design_within
    from omen.systems import design_overlay
    from omen.workloads import generate_interests

    interests = generate_interests(nodes, topics, "uniform", "powerlaw:10:90", seed=1)
    plain = design_overlay(interests, "low-oda", rho=RHO)
    highest = int(plain.degrees.max())
    yield ["none", f"{plain.link_count:,}", "", str(highest), "", "", "0", *(["1.00"] if times else [])]
    for case in CASES:
        rules = rules_of(case, interests, highest)
        design = FleetDesign(RHO, case.sigma)
        overlay = design_within(interests, rules, design)
        spent = []
        if times:
            run: Callable[[], object] = partial(design_fleet, interests, rules, design)
            spent = [f"{_ratio(lambda: design_overlay(interests, 'low-oda', rho=RHO), run):.2f}"]
        yield [case.what, *_row(interests, rules, plain, overlay), *spent]
        print(f"{case.what}: done", file=sys.stderr, flush=True)


def _ratio(plain: Callable[[], object], ruled: Callable[[], object]) -> float:
    """Processor time of the second by that of the first."""
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURNS):
        for run, times in zip((plain, ruled), spent, strict=True):
            started = time.process_time()
            run()
            times.append(time.process_time() - started)
    return statistics.median(spent[1]) / statistics.median(spent[0])


def _row(interests: Interests, rules: FleetRules, plain: Overlay, overlay: Overlay) -> list[str]:
    from omen.quality import check_overlay

    more = overlay.link_count / plain.link_count - 1
    before, after = (int((rules.zones[one.u] != rules.zones[one.v]).sum()) for one in (plain, overlay))
    between = [f"{before:,}", f"{after:,}"] if before else ["", ""]
    split = len(check_overlay(interests, overlay).failing)
    return [f"{overlay.link_count:,}", f"{more:+.1%}", str(int(overlay.degrees.max())), *between, str(split)]


def as_table(rows: list[list[str]], times: bool) -> str:
    header = ["rules", "links", "more", "maximum degree", "between zones without rules", "with", "split topics"]
    header += ["time"] if times else []
    marks = ["---", *(["---:"] * (len(header) - 1))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, marks, *rows))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, help="with --topics: of one fleet alone (two sizes)")
    parser.add_argument("--topics", type=int)
    parser.add_argument("--times", action="store_true", help="processor time, as a multiple of that without rules")
    parser.add_argument("--write", action="store_true", help="put the table into docs/fleets.md")
    told = parser.parse_args()
    if (told.nodes is None) != (told.topics is None):
        parser.error("--nodes and --topics go together")
    written = []
    for nodes, topics in SIZES if told.nodes is None else ((told.nodes, told.topics),):
        table = as_table(list(measure(nodes, topics, told.times)), told.times)
        print(table)
        written.append(
            f"Low-ODA, rho 3, {nodes:,} nodes, {topics:,} topics, uniform, sizes powerlaw:10:90, seed 1;"
            f" links between zones cost 10, others 1. Commit {code_now()[0][:7]}.\n\n{table}"
        )
    if told.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MARKS.sub(lambda found: found[1] + "\n".join(written) + found[2], page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
