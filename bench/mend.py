"""Overlays under churn: how long repairs take, whether that and memory stay flat, what rebalancing is worth.

python -m bench mend, or python -m bench.mend --json FILE.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measure import RESULTS, Row, machine_facts, peak_mb, run_apart, time_command, write_result

TITLE = "Overlays under churn"
INTRODUCTION = (
    "Single process, kernels compiled and warm. The workload of the papers: 2000 nodes, 200 topics, uniform popularity,"
    " sizes powerlaw:10:90, then rounds of one join or leave each. Repairs are in processor time of the repair alone;"
    " building backups is told by itself."
)
NODES, TOPICS, POPULARITY, SIZES = 2000, 200, "uniform", "powerlaw:10:90"
WARM_UP = 200
BUDGETS = (0, 1, 2, 3, 4, 5, 7, 10)
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "rebalance.svg"


def papers_churn(rounds: int, seed: int = 1) -> tuple[Any, Any]:
    """The papers' workload and random rounds of churn on it."""
    from omen.workloads import Distribution, Popularity, Sizes, generate_interests, random_rounds

    interests = generate_interests(NODES, TOPICS, POPULARITY, SIZES, seed=seed)
    distribution = Distribution(TOPICS, Popularity.parse(POPULARITY), Sizes.parse(SIZES))
    return interests, random_rounds(interests, rounds, 0.5, seed, distribution)


def run_repairs() -> dict[str, Any]:
    """Each step of each round of Shadow and Naive, and Low-ODA from scratch now and then."""
    from omen.churn import Join
    from omen.maintain import start_maintainer
    from omen.systems import design_overlay

    interests, trace = papers_churn(WARM_UP + 1000)
    found: dict[str, Any] = {"rebuild": []}
    for system in ("shadow", "naive"):
        maintainer = start_maintainer(system, interests)
        steps: dict[str, list[float]] = {}
        for number, event in enumerate(trace):
            change = maintainer.apply([event])
            if number < WARM_UP:
                continue
            kind = "join" if isinstance(event, Join) else "leave"
            for step in ("prepare", "links", "backups"):
                steps.setdefault(f"{kind} {step}", []).append(getattr(change, f"{step}_s"))
            if system == "shadow" and number % 50 == 0:
                present = maintainer.interests()
                started = time.thread_time()
                design_overlay(present, "low-oda")
                found["rebuild"].append(time.thread_time() - started)
        found[system] = steps
    return found


def run_social() -> dict[str, Any]:
    """Leaves on a workload like a social graph: a million subscriptions, the largest topics wanted by thousands."""
    import numpy as np

    from omen.maintain import start_maintainer
    from omen.workloads import generate_interests

    interests = generate_interests(10_000, 10_000, "zipf:0.8", "powerlaw:19:5200", seed=1)
    started = time.perf_counter()
    maintainer = start_maintainer("shadow", interests)
    prepared = time.perf_counter() - started
    leaving = np.random.default_rng(1).permutation(interests.nodes)[:400].tolist()
    changes = [maintainer.leave(node) for node in leaving]
    return {
        "links": [change.links_s for change in changes[100:]],
        "backups": [change.backups_s for change in changes[100:]],
        "subscriptions": interests.subscription_count,
        "prepared_s": prepared,
        "peak_mb": peak_mb(),
    }


def run_long(rounds: int = 100_000, blocks: int = 20) -> dict[str, Any]:
    """Memory and processor time by block of rounds. The trace is made beforehand; nothing is kept of the rounds."""
    from omen.maintain import start_maintainer

    interests, trace = papers_churn(rounds)
    maintainer = start_maintainer("shadow", interests)
    size = rounds // blocks
    found: dict[str, list[float]] = {"resident_mb": [], "round_s": [], "nodes": [], "maximum": [], "average": []}
    for block in range(blocks):
        started = time.process_time()
        for event in trace.events[block * size : (block + 1) * size]:
            maintainer.apply([event])
        found["round_s"].append((time.process_time() - started) / size)
        found["resident_mb"].append(resident_mb())
        found["nodes"].append(maintainer.node_count)
        found["maximum"].append(maintainer.max_degree)
        found["average"].append(maintainer.average_degree)
    return found


def resident_mb() -> float:
    """Memory held now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not tell the memory of a process")


def run_rebalancing() -> dict[str, Any]:
    """The papers' 1000 rounds with several budgets, next to Low-ODA from scratch at the end and on the way."""
    from omen.maintain import start_maintainer
    from omen.quality import check_overlay
    from omen.systems import design_overlay

    interests, trace = papers_churn(1000)
    curve = []
    fresh: dict[str, list[float]] = {"round": [], "average": [], "maximum": []}
    for budget in BUDGETS:
        maintainer = start_maintainer("shadow", interests, rebalance=budget)
        swapped = count_swaps(maintainer)
        averages, maxima, seconds = [], [], 0.0
        for number, event in enumerate(trace, start=1):
            change = maintainer.apply([event])
            seconds += change.rebalance_s
            averages.append(maintainer.average_degree)
            maxima.append(maintainer.max_degree)
            if budget == 0 and number % 50 == 0:
                degrees = design_overlay(maintainer.interests(), "low-oda").degrees
                fresh["round"].append(number)
                fresh["average"].append(float(degrees.mean()))
                fresh["maximum"].append(int(degrees.max()))
        assert check_overlay(maintainer.interests(), maintainer.overlay()).holds
        curve.append(
            {
                "budget": budget,
                "changed_a_round": swapped() / len(trace),
                "rebalance_s": seconds / len(trace),
                "average": averages,
                "maximum": maxima,
                "average_above": averages[-1] - fresh["average"][-1],
                "maximum_above": maxima[-1] - fresh["maximum"][-1],
            }
        )
    return {"curve": curve, "fresh": fresh}


def count_swaps(maintainer: Any) -> Callable[[], int]:
    """Counts the links a maintainer changes to rebalance, which a `Change` tells together with those of the repair."""
    swap, counted = maintainer._swap, 0

    def counting(*arguments: Any) -> int:
        nonlocal counted
        changed: int = swap(*arguments)
        counted += changed
        return changed

    maintainer._swap = counting
    return lambda: counted


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "repairs": run_repairs,
    "social": run_social,
    "long": run_long,
    "rebalancing": run_rebalancing,
}


def measure_repairs(ratios: dict[str, Any]) -> Iterator[Row]:
    found = run_apart("bench.mend", "--case", "repairs")
    for kind, target in (("leave", 100e-6), ("join", 50e-6)):
        links, backups = found["shadow"][f"{kind} links"], found["shadow"][f"{kind} backups"]
        details = {"95%": microseconds(quantile(links, 0.95))}
        if kind == "leave":
            details["to reach there"] = "400 µs"
        yield step_row(f"Shadow, repair of a {kind}", links, target, details)
        prepared = found["shadow"][f"{kind} prepare"]
        built = backups if kind == "leave" else prepared
        what = "backups of those that lost one" if kind == "leave" else "backups of the newcomer"
        yield step_row(f"Shadow, {what}", built, None, {"95%": microseconds(quantile(built, 0.95))})
        naive = found["naive"][f"{kind} links"]
        yield step_row(f"Naive, repair of a {kind}", naive, None, {"95%": microseconds(quantile(naive, 0.95))})
    rebuild = mean(found["rebuild"])
    yield step_row("Low-ODA from scratch, for comparison", found["rebuild"], None, {})
    for claim, system, kind in (
        ("S16", "shadow", "join"),
        ("S17", "shadow", "leave"),
        ("S18", "naive", "join"),
        ("S19", "naive", "leave"),
    ):
        steps = found[system]
        links, prepared, backups = (mean(steps[f"{kind} {step}"]) for step in ("links", "prepare", "backups"))
        ratios[claim] = {
            "ratio": (links + prepared) / rebuild,
            "note": f"{microseconds(links + prepared)} to {rebuild * 1000:.0f} ms;"
            f" with the backups of others {(links + prepared + backups) / rebuild:.2g}",
        }


def measure_social() -> Iterator[Row]:
    found = run_apart("bench.mend", "--case", "social")
    details = {"95%": microseconds(quantile(found["links"], 0.95)), "subscriptions": found["subscriptions"]}
    yield step_row("Shadow, repair of a leave, social-like 10k x 10k", found["links"], 2e-3, details, found["peak_mb"])
    yield step_row("Shadow, backups of those that lost one, social-like", found["backups"], None, {})


def measure_replay() -> Iterator[Row]:
    omen = str(Path(sys.executable).parent / "omen")
    with tempfile.TemporaryDirectory(prefix="omen-bench-") as folder:
        made = ["--nodes", "2000", "--topics", "200", "--sizes", SIZES, "--seed", "1", "--out", f"{folder}/W"]
        time_command([omen, "workload", "synth", *made], 0)
        churn = ["--workload", f"{folder}/W", "--rounds", "1000", "--seed", "1", "--out", f"{folder}/C"]
        time_command([omen, "churn", "random", *churn], 0)
        paths = ["--workload", f"{folder}/W", "--churn", f"{folder}/C", "--out", f"{folder}/R"]
        timing = time_command([omen, "replay", "--system", "shadow", "--verify", "every", *paths], 3)
    yield Row(
        "`omen replay`, 1000 rounds, judged after every one",
        round(timing.median_wall_s, 3),
        round(timing.median_processor_s, 3),
        3,
        30.0,
    )


def measure_long(kept: dict[str, Any]) -> Iterator[Row]:
    found = kept["long"] = run_apart("bench.mend", "--case", "long")
    memory, rounds = found["resident_mb"], found["round_s"]
    warm = len(memory) // 10
    details = {
        "memory": f"{memory[warm]:.0f} to {memory[-1]:.0f} MB, {memory[-1] / memory[warm] - 1:+.1%} (within 5%)",
        "time of a round": f"{milliseconds(rounds[warm])} to {milliseconds(rounds[-1])}",
        "average degree": f"{found['average'][warm]:.1f} to {found['average'][-1]:.1f}",
    }
    yield Row(
        "A round of Shadow, over 100,000 rounds", mean(rounds), mean(rounds), 100_000, None, max(memory), None, details
    )


def measure_rebalancing(kept: dict[str, Any]) -> Iterator[Row]:
    found = kept["rebalancing"] = run_apart("bench.mend", "--case", "rebalancing")
    for one in found["curve"]:
        details = {
            "links changed per round": round(one["changed_a_round"], 2),
            "d above Low-ODA": round(one["average_above"], 2),
            "D above Low-ODA": one["maximum_above"],
        }
        what = f"Rebalancing, at most {one['budget']} links per repair" if one["budget"] else "Rebalancing off"
        yield Row(what, one["rebalance_s"], one["rebalance_s"], 1000, None, None, None, details)


def step_row(
    what: str, seconds: list[float], target: float | None, details: dict[str, Any], peak: float | None = None
) -> Row:
    """Repairs are timed in processor time: the clock on the wall would show who else is at work."""
    middle = quantile(seconds, 0.5)
    return Row(what, middle, middle, len(seconds), target, peak, None, details)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def measure(path: Path = RESULTS / "mend.json") -> None:
    """Everything, kept as bench/results/mend.json, and the figure of rebalancing."""
    from bench.rebalance_figure import draw_rebalance

    before = machine_facts()
    kept: dict[str, Any] = {"ratios": {}}
    rows = []
    for row in (
        *measure_repairs(kept["ratios"]),
        *measure_social(),
        *measure_replay(),
        *measure_long(kept),
        *measure_rebalancing(kept),
    ):
        rows.append(row)
        print(f"{row.what}: {row.wall_s:.6f} s {row.details}", flush=True)
    write_result("mend", TITLE, INTRODUCTION, before, rows)
    written = RESULTS / "mend.json"
    found = json.loads(written.read_text(encoding="utf-8")) | kept
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    for place in {path, written}:
        place.write_text(text, encoding="utf-8")
    draw_rebalance(FIGURE, found["rebalancing"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mend", description=__doc__)
    parser.add_argument("--case", choices=tuple(CASES), help="run one case in this process and print it as JSON")
    parser.add_argument(
        "--json", metavar="FILE", type=Path, default=RESULTS / "mend.json", help="where to keep results"
    )
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(CASES[arguments.case]()))
    else:
        measure(arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
