"""Beyond the papers: how far from the optimum, what meshes for each topic cost, and repairs as instances grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

from omen.report.experiments.lines import line_of
from omen.report.experiments.results import NotRun, Results
from omen.report.figures import Drawing, Line, Panel
from omen.sweep.cells import Cell, Value, WorkloadSpec, pairs

SMALL_NODES = (8, 10, 12, 14, 16, 20)
SMALL_SEEDS = range(5)
LARGE_NODES = (100, 200, 400, 800, 1600)
GREEDY = ("gm", "low-oda", "minmax-oda")
MESH_SIZES = (5, 10, 20, 40)
MESH = 6
RESILIENT = ("gm2", "harary-pt")


@dataclass(frozen=True)
class Beyond:
    """What is measured besides the papers' claims."""

    cells: Callable[[str], list[Cell]]
    drawings: tuple[Callable[[Results, str], Drawing], ...]


def growing(scale: str) -> tuple[int, ...]:
    return (1000, 3000, 10_000) if scale == "quick" else (1000, 3000, 10_000, 30_000, 100_000)


def small(nodes: int, seed: int) -> WorkloadSpec:
    return WorkloadSpec(nodes, 6, "uniform", "3", seed)


def large(nodes: int, seed: int = 0) -> WorkloadSpec:
    return WorkloadSpec(nodes, 100, "zipf:0.5", "10", seed)


def optimum_cell(nodes: int, seed: int, algorithm: str) -> Cell:
    return Cell("optimum", small(nodes, seed), algorithm, settings=pairs({"limit_s": 60.0}))


def bound_cell(nodes: int, algorithm: str) -> Cell:
    return Cell("bound", large(nodes), algorithm)


def mesh_cell(size: int, algorithm: str) -> Cell:
    """The meshes are drawn once, where GM2 is designed."""
    settings: dict[str, Value] = {"check_k": 2}
    if algorithm == "gm2":
        settings |= {"mesh": MESH, "mesh_k": 2}
    options: dict[str, Value] = {"k": 2} if algorithm == "harary-pt" else {}
    workload = WorkloadSpec(500, 100, "zipf:0.5", str(size), 0)
    return Cell("design", workload, algorithm, pairs(options), pairs(settings))


def growth_cell(nodes: int) -> Cell:
    """Topics grow with nodes, so that a topic keeps its size and a node its ten topics."""
    workload = WorkloadSpec(nodes, nodes // 10, "zipf:0.5", "10", 0)
    settings: dict[str, Value] = {"rounds": 40, "verify": "end"}
    return Cell("replay", workload, "shadow", pairs({"seed": 0}), pairs(settings))


def rebuild_cell(nodes: int) -> Cell:
    workload = WorkloadSpec(nodes, nodes // 10, "zipf:0.5", "10", 0)
    return Cell("design", workload, "low-oda")


def make_cells(scale: str) -> list[Cell]:
    return [
        *(optimum_cell(nodes, seed, name) for nodes in SMALL_NODES for seed in SMALL_SEEDS for name in GREEDY),
        *(bound_cell(nodes, name) for nodes in LARGE_NODES for name in GREEDY),
        *(mesh_cell(size, name) for size in MESH_SIZES for name in RESILIENT),
        *(cell for nodes in growing(scale) for cell in (growth_cell(nodes), rebuild_cell(nodes))),
    ]


def _optimum(found: Results, scale: str) -> Drawing:
    panels = []
    exact = [_exact_line(found, name) for name in GREEDY]
    if any(line.x for line in exact):
        panels.append(
            Panel("nodes", "links, as a multiple of the fewest", tuple(exact), title="exact, small instances")
        )
    bounds = [
        line_of(name, {nodes: [found.of(bound_cell(nodes, name)).values["to_bound"]] for nodes in LARGE_NODES})
        for name in GREEDY
    ]
    panels.append(
        Panel("nodes", "links, as a multiple of a lower bound", tuple(bounds), title="bound, large instances")
    )
    caption = (
        "Left: the fewest links by mixed-integer programming (6 topics, 3 a node, five workloads, lowest and highest"
        " shaded). Right: a bound that no overlay goes below, so the truth lies nearer (100 topics, 10 a node, Zipf"
        " 0.5)."
    )
    return Drawing("beyond-optimum", "How far from the optimum", caption, tuple(panels))


def _exact_line(found: Results, name: str) -> Line:
    """Only instances that were solved to proven optimality in every algorithm's cell count: the same for all lines."""
    ratios: dict[float, list[float]] = {}
    for nodes in SMALL_NODES:
        for seed in SMALL_SEEDS:
            try:
                of = {one: found.of(optimum_cell(nodes, seed, one)).values for one in GREEDY}
            except NotRun:
                continue
            if all(values["proven"] for values in of.values()):
                ratios.setdefault(nodes, []).append(of[name]["to_least"])
    return line_of(name, ratios) if ratios else Line(name, (), ())


def _meshes(found: Results, scale: str) -> Drawing:
    cells = {name: {size: found.of(mesh_cell(size, name)).values for size in MESH_SIZES} for name in RESILIENT}
    lines = [line_of(name, {size: [one["avg_degree"]] for size, one in of.items()}) for name, of in cells.items()]
    drawn = cells["gm2"]
    for label, column in (
        (f"a mesh of {MESH} a topic, links in common counted once", "mesh_shared_avg_degree"),
        (f"a mesh of {MESH} a topic, each with its own links", "mesh_avg_degree"),
    ):
        lines.append(line_of(label, {size: [one[column]] for size, one in drawn.items()}))
    panel = Panel("topics a node wants", "links per node, average", tuple(lines), log_y=True)
    caption = (
        "500 nodes, 100 topics, Zipf 0.5; k = 2: no loss of one node may cut a topic. Judged in every topic:"
        f" {_judged(cells)}. Ends of a mesh are paired at random."
    )
    return Drawing("beyond-meshes", "What a mesh for each topic costs", caption, (panel,))


def _judged(cells: Mapping[str, Mapping[int, Mapping[str, float]]]) -> str:
    """Who keeps k = 2 in how many of the workloads."""
    rows = {name: [one["k_holds"] for one in of.values()] for name, of in cells.items()}
    rows["meshes"] = [one["mesh_k_holds"] for one in cells["gm2"].values()]
    return ", ".join(f"{name} in {int(sum(held))} of {len(held)}" for name, held in rows.items())


def _growth(found: Results, scale: str) -> Drawing:
    counts = growing(scale)
    times: dict[str, dict[float, list[float]]] = {"a join repaired": {}, "a leave repaired": {}, "built anew": {}}
    for nodes in counts:
        values = found.of(growth_cell(nodes)).values
        times["a join repaired"][nodes] = [1e3 * values["repair_s_join_mean"]]
        times["a leave repaired"][nodes] = [1e3 * values["repair_s_leave_mean"]]
        times["built anew"][nodes] = [1e3 * found.of(rebuild_cell(nodes)).values["design_s"]]
    lines = tuple(line_of(name, row) for name, row in times.items())
    ratio = fmean(times["built anew"][counts[-1]]) / fmean(times["a leave repaired"][counts[-1]])
    panel = Panel("nodes", "milliseconds", lines, log_x=True, log_y=True)
    caption = (
        "Shadow repairs against Low-ODA from scratch, a topic for every ten nodes, ten topics per node: at"
        f" {counts[-1]:,} nodes a leave is repaired {ratio:,.0f} times as fast. Processor time, other cells running."
    )
    return Drawing("beyond-growth", "Repairing against building anew as instances grow", caption, (panel,))


BEYOND = Beyond(make_cells, (_optimum, _meshes, _growth))
