"""Static design: how long the algorithms, the judge and the commands take. python -m bench design."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import Row, Timing, machine_facts, peak_mb, run_apart, time_command, time_runs, write_result

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay

TITLE = "Design, judge, commands"
INTRODUCTION = (
    "Single process, kernels compiled beforehand, one run to warm up and then the median of the others. Peak memory is"
    " that of the whole process: interpreter, compiled kernels, making the workload and designing."
)


@dataclass(frozen=True)
class Case:
    """A synthetic workload, an algorithm for it, and what is timed: the design or a question to the judge."""

    what: str
    nodes: int
    topics: int
    popularity: str
    sizes: str
    algorithm: str
    options: dict[str, Any]
    runs: int
    target_s: float
    target_mb: float | None = None
    question: str = "design"
    rounds: bool = False  # in rounds, on all cores, instead of exact
    seed: int = 1


def _low_oda(label: str, nodes: int, topics: int, popularity: str, runs: int, target_s: float) -> Case:
    what = f"Low-ODA, {label}, {popularity}"
    return Case(what, nodes, topics, popularity, "powerlaw:10:90", "low-oda", {"rho": 3}, runs, target_s)


CASES = {
    **{
        f"low-oda-2k-{kind.partition(':')[0]}": _low_oda("2000 x 200", 2000, 200, kind, 15, 0.2)
        for kind in ("uniform", "zipf:2", "expo:0.05")
    },
    **{
        f"low-oda-10k-{kind.partition(':')[0]}": _low_oda("10k x 1k", 10_000, 1000, kind, 5, 2.5)
        for kind in ("uniform", "zipf:2", "expo:0.01")
    },
    "low-oda-social": Case(
        "Low-ODA, social-like 10k x 10k, zipf:0.8, sizes powerlaw:19:5200",
        *(10_000, 10_000, "zipf:0.8", "powerlaw:19:5200"),
        *("low-oda", {"rho": 3}, 3, 20, 400),
    ),
    "low-oda-100k": Case(
        "Low-ODA, 100k x 10k, uniform",
        *(100_000, 10_000, "uniform", "powerlaw:10:90"),
        *("low-oda", {"rho": 3}, 3, 60, 500),
    ),
    **{
        f"{algorithm}-{nodes}k-{kind.partition(':')[0]}-{'rounds' if rounds else 'exact'}": Case(
            f"{algorithm}, {nodes}k x {nodes // 10}k, {kind}, {'in rounds' if rounds else 'exact'}",
            *(nodes * 1000, nodes * 100, kind, "powerlaw:10:90"),
            *(algorithm, {}, 1, in_rounds_s if rounds else exact_s, 1000),
            rounds=rounds,
        )
        for algorithm, nodes, kind, exact_s, in_rounds_s in (
            ("gm", 100, "zipf:1", 60, 60),  # one part: as exact
            ("low-oda", 100, "zipf:1", 60, 12),
            ("minmax-oda", 100, "zipf:1", 60, 20),
            ("low-oda", 300, "uniform", 90, 60),
        )
        for rounds in (False, True)
    },
    "low-oda-1m-rounds": Case(
        "low-oda, 1m x 100k, uniform, in rounds",
        *(1_000_000, 100_000, "uniform", "powerlaw:10:90"),
        *("low-oda", {}, 1, 150, 3000),
        rounds=True,
    ),
    **{
        f"gm2-{kind.partition(':')[0]}": Case(
            f"GM2, 800 x 200, s=30, {kind}", 800, 200, kind, "30", "gm2", {}, 15, 0.25
        )
        for kind in ("uniform", "zipf:2", "expo:0.1")
    },
    "harary-100k": Case(
        "HararyPT k=4, 100k x 10k, uniform", 100_000, 10_000, "uniform", "powerlaw:10:90", "harary-pt", {"k": 4}, 5, 3
    ),
    "check-100k": Case(
        "Topic-connectivity of that overlay",
        *(100_000, 10_000, "uniform", "powerlaw:10:90"),
        *("harary-pt", {"k": 4}, 5, 2),
        question="check",
    ),
    "diameters-2k": Case(
        "Exact topic diameters, Low-ODA 2000 x 200, uniform",
        *(2000, 200, "uniform", "powerlaw:10:90"),
        *("low-oda", {"rho": 3}, 15, 0.5),
        question="diameters",
    ),
}


def run_case(case: Case) -> dict[str, Any]:
    """In this process."""
    from omen.quality import check_overlay, degree_summary, topic_diameters
    from omen.systems import design_overlay
    from omen.workloads import generate_interests

    interests = generate_interests(case.nodes, case.topics, case.popularity, case.sizes, seed=case.seed)
    build = partial(_in_rounds if case.rounds else design_overlay, interests, case.algorithm, **case.options)
    overlay = build()
    questions: dict[str, Callable[[], object]] = {
        "design": build,
        "check": partial(check_overlay, interests, overlay, k=1),
        "diameters": partial(topic_diameters, interests, overlay),
    }
    timing = time_runs(questions[case.question], case.runs, warm_up=case.question != "design")
    peak = peak_mb()  # before the judge below has its own
    assert check_overlay(interests, overlay).holds
    degrees = degree_summary(overlay)
    return {
        "wall_s": timing.wall_s,
        "processor_s": timing.processor_s,
        "peak_mb": peak,
        "details": {
            "subscriptions": interests.subscription_count,
            "largest": int((interests.node_offsets[1:] - interests.node_offsets[:-1]).max()),
            "links": overlay.link_count,
            "average degree": round(degrees.average, 2),
            "maximum degree": degrees.maximum,
        },
    }


def _in_rounds(interests: Interests, algorithm: str, rho: float = 3.0) -> Overlay:
    from omen.design.rounds import Rounds, design_in_rounds
    from omen.design.schedule import rho_of

    return design_in_rounds(interests, Rounds(rho_of(algorithm, {"rho": rho}))).overlay


def measure_cases(names: list[str]) -> Iterator[Row]:
    for name in names:
        case = CASES[name]
        found = run_apart("bench.design", "--case", name)
        timing = Timing(tuple(found["wall_s"]), tuple(found["processor_s"]))
        yield _row(case.what, timing, case.target_s, found["peak_mb"], case.target_mb, found["details"])


def _row(
    what: str,
    timing: Timing,
    target_s: float,
    peak: float | None = None,
    target_mb: float | None = None,
    details: dict[str, Any] | None = None,
) -> Row:
    wall, processor = round(timing.median_wall_s, 4), round(timing.median_processor_s, 4)
    rounded = None if peak is None else round(peak)
    return Row(what, wall, processor, len(timing.wall_s), target_s, rounded, target_mb, details or {})


def measure_commands() -> Iterator[Row]:
    omen = str(Path(sys.executable).parent / "omen")
    yield _row("`omen --help`", time_command([omen, "--help"], 9), 0.3)
    with tempfile.TemporaryDirectory(prefix="omen-bench-") as folder:
        workload, overlay = f"{folder}/W", f"{folder}/O.parquet"
        made = ["--nodes", "200", "--topics", "50", "--popularity", "zipf:1", "--sizes", "5", "--seed", "1"]
        time_command([omen, "workload", "synth", *made, "--out", workload], 0)
        time_command([omen, "design", "--workload", workload, "--algorithm", "low-oda", "--out", overlay], 0)
        checked = time_command([omen, "check", "--workload", workload, "--overlay", overlay], 9)
        yield _row("`omen check`, 200 nodes, 50 topics", checked, 2)


def measure_compilation() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="omen-bench-") as folder:
        cold = time_command(
            [sys.executable, "-m", "omen.kernels"], 1, environment={"NUMBA_CACHE_DIR": folder}, warm_up=False
        )
        yield _row("Compiling all kernels, empty cache", cold, 60)


def measure(only: list[str] | None = None) -> None:
    """Everything, kept as bench/results/design.json."""
    before = machine_facts()
    rows = []
    for row in chain(measure_cases(only or list(CASES)), measure_commands(), measure_compilation()):
        rows.append(row)
        print(f"{row.what}: {row.wall_s:.3f} s, processor {row.processor_s:.3f} s", flush=True)
    write_result("design", TITLE, INTRODUCTION, before, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one case in this process and print what it took as JSON.")
    parser.add_argument("--case", choices=tuple(CASES), required=True)
    print(json.dumps(run_case(CASES[parser.parse_args().case])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
