"""What can be done in a cell: design an overlay, replay churn, rebuild along churn, look at backup sets.

Runs in Spark's workers and in tests alike; nothing here knows of Spark. A number about an overlay that is not
topic-connected, where its algorithm promises that it is, would mean nothing: the cell fails instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from omen.churn import Join, Trace
from omen.errors import InvalidInput, OmenError
from omen.interests import Interests
from omen.quality import (
    check_overlay,
    degree_summary,
    diameter_summary,
    topic_components,
    topic_diameters,
)
from omen.sweep.bounds import measure_bound, measure_optimum
from omen.sweep.cells import Cell, CellResult, Value, WorkloadSpec
from omen.sweep.meshes import measure_meshes
from omen.sweep.replay import measure_replay
from omen.sweep.simulated import measure_lives, measure_views
from omen.systems import design_overlay, find_algorithm, find_system
from omen.tables import read_churn, read_workload
from omen.workloads import Distribution, Popularity, Sizes, generate_interests, lifetimes, random_rounds

Found = tuple[dict[str, float], dict[str, list[float]]]
CHURN_SEED = 1000
"""Added to the seed of a workload for its churn, so that the two draw differently."""


@dataclass(frozen=True)
class Kind:
    """What a cell of this kind runs, the settings it takes with their defaults, and a guess of its cost."""

    run: Callable[[Cell, Interests], Found]
    settings: Mapping[str, Value]
    weight: Callable[[Cell], float]
    runs: str  # "algorithm" or "system"


def run_cell(cell: Cell) -> CellResult:
    """Run one cell. Whatever goes wrong is part of the result."""
    started = time.perf_counter()
    try:
        values, series = KINDS[cell.kind].run(cell, interests_of(cell.workload))
    except OmenError as error:
        return CellResult(cell, {}, {}, time.perf_counter() - started, str(error))
    except Exception as error:
        return CellResult(cell, {}, {}, time.perf_counter() - started, f"{type(error).__name__}: {error}")
    return CellResult(cell, values, series, time.perf_counter() - started)


def weight_of(cell: Cell) -> float:
    """How much work a cell is compared with others of its kind; only the order of magnitude matters."""
    return max(KINDS[cell.kind].weight(cell), 1.0)


@lru_cache(maxsize=4)
def interests_of(workload: WorkloadSpec) -> Interests:
    if workload.folder:
        return read_workload(workload.folder).interests
    return generate_interests(workload.nodes, workload.topics, workload.popularity, workload.sizes, seed=workload.seed)


@dataclass(frozen=True)
class ChurnSpec:
    """A table of churn; or, where there is none, lives of these mean lengths; or else rounds of a join or a leave."""

    rounds: int = 100
    join_probability: float = 0.5
    trace: str = ""
    mean_up: float = 0.0
    mean_down: float = 0.0
    duration: float = 0.0


@lru_cache(maxsize=4)
def churn_of(workload: WorkloadSpec, churn: ChurnSpec) -> Trace:
    """Joining nodes draw as the workload's own did."""
    interests = interests_of(workload)
    if churn.trace:
        return read_churn(churn.trace, interests).trace
    if workload.folder:
        distribution = Distribution.recorded(read_workload(workload.folder).info)
    else:
        distribution = Distribution(
            workload.topics, Popularity.parse(workload.popularity), Sizes.parse(str(workload.sizes))
        )
    seed = workload.seed + CHURN_SEED
    if churn.mean_up:
        return lifetimes(interests, churn.mean_up, churn.mean_down, churn.duration, seed, distribution)
    return random_rounds(interests, churn.rounds, churn.join_probability, seed, distribution)


def _design(cell: Cell, interests: Interests) -> Found:
    algorithm = find_algorithm(cell.name)
    started = time.process_time()
    overlay = design_overlay(interests, cell.name, **_told(cell))
    design_s = time.process_time() - started
    degrees = degree_summary(overlay)
    split = topic_components(interests, overlay) - 1
    promised = algorithm.promise(_told(cell))
    if promised and split.max(initial=0) > 0:
        raise InvalidInput(f"{cell.name} left {int((split > 0).sum())} topics split")
    values = {
        "nodes": float(interests.node_count),
        "topics": float(interests.topic_count),
        "subscriptions": float(interests.subscription_count),
        "edges": float(overlay.link_count),
        "avg_degree": degrees.average,
        "max_degree": float(degrees.maximum),
        "split_topics": float((split > 0).sum()),
        "components": float(split.sum() + interests.topic_count),
        "design_s": design_s,
    }
    if cell.setting("diameters", False):
        found = diameter_summary(interests, topic_diameters(interests, overlay))
        values |= {"max_diameter": float(found.maximum), "mean_diameter": found.mean}
    if wanted := int(cell.setting("check_k", 0)):
        values["k_holds"] = float(check_overlay(interests, overlay, k=wanted).holds)
    if closest := int(cell.setting("tdi", 0)):
        values["tdi"] = top_intersection(interests, closest)
    if mesh := int(cell.setting("mesh", 0)):
        values |= measure_meshes(interests, mesh, int(cell.setting("mesh_k", 0)), cell.workload.seed)
    return values, {}


def top_intersection(interests: Interests, closest: int, block: int = 512) -> float:
    """SpiderCast's tdi: what a node shares with its closest nodes, in percent of the shorter list; mean over nodes."""
    wanted = np.zeros((interests.node_count, interests.topic_count), dtype=np.float32)
    wanted[interests.pair_codes] = 1
    sizes = np.maximum(wanted.sum(axis=1), 1)
    total = 0.0
    for first in range(0, interests.node_count, block):
        rows = np.arange(first, min(first + block, interests.node_count))
        shared = 100 * (wanted[rows] @ wanted.T) / np.minimum(sizes[rows, None], sizes[None, :])
        shared[np.arange(rows.size), rows] = -1
        total += float(np.sort(shared, axis=1)[:, -closest:].mean(axis=1).sum())
    return total / interests.node_count


def _replay(cell: Cell, interests: Interests) -> Found:
    return measure_replay(cell, interests, _trace(cell))


def _rebuild(cell: Cell, interests: Interests) -> Found:
    """An algorithm anew before and after every so many-th round: degrees, and the links that differ."""
    from omen.maintain import start_maintainer

    every = int(cell.setting("every", 10))
    maintainer = start_maintainer("naive", interests)
    rows: list[tuple[float, ...]] = []
    for number, event in enumerate(_trace(cell), start=1):
        looks = number % every == every // 2
        before = design_overlay(maintainer.interests(), cell.name, **_told(cell)) if looks else None
        maintainer.apply([event])
        if before is None:
            continue
        started = time.process_time()
        after = design_overlay(maintainer.interests(), cell.name, **_told(cell))
        seconds = time.process_time() - started
        changed = len(set(before.links()) ^ set(after.links()))
        degrees = degree_summary(after)
        rows.append(
            (number, isinstance(event, Join), degrees.maximum, degrees.average, changed, before.link_count, seconds)
        )
    names = ("round", "join", "max_degree", "avg_degree", "changed", "links_before", "repair_s")
    series = {name: [float(row[place]) for row in rows] for place, name in enumerate(names)}
    values = {f"{name}_mean": float(np.mean(column)) for name, column in series.items() if column}
    return values | {"looks": float(len(rows))}, series


def _backups(cell: Cell, interests: Interests) -> Found:
    """Backup sets before any churn: how many backups each node has, and for how many it is one."""
    from omen.maintain import start_maintainer

    snapshot = start_maintainer(cell.name, interests, **_told(cell)).snapshot()
    sizes = np.bincount(snapshot.primary, minlength=interests.node_count)
    primaries = np.bincount(snapshot.backup, minlength=interests.node_count)
    wanted = np.diff(interests.node_offsets)
    by_wanted = [float(sizes[wanted == number].mean()) for number in np.unique(wanted)]
    popular = primaries > 100
    leaning = np.unique(snapshot.primary[popular[snapshot.backup]]).size
    values = {
        "size_mean": float(sizes.mean()),
        "size_mean_by_subscriptions": float(np.mean(by_wanted)),
        "primaries_min": float(primaries.min()),
        "primaries_max": float(primaries.max()),
        "share_below_5": float((primaries < 5).mean()),
        "share_leaning_on_popular": leaning / interests.node_count,
    }
    degrees, counts = np.unique(primaries, return_counts=True)
    series = {
        "subscriptions": np.unique(wanted).astype(float).tolist(),
        "size_by_subscriptions": by_wanted,
        "primary_degree": degrees.astype(float).tolist(),
        "nodes_of_primary_degree": counts.astype(float).tolist(),
    }
    return values, series


def _told(cell: Cell) -> dict[str, Any]:
    return dict(cell.options)


def _trace(cell: Cell) -> Trace:
    """`events`: only the first so many of it."""
    whole = churn_of(cell.workload, ChurnSpec(**{name: cell.setting(name, _CHURN[name]) for name in CHURN_SETTINGS}))
    events = int(cell.setting("events", 0))
    return Trace(whole.events[:events]) if events else whole


def _design_weight(cell: Cell) -> float:
    workload = cell.workload
    per_topic = cell.name in ("harary-pt", "cycle-pt", "ring-pt")
    mean_size = workload.subscriptions / workload.topics if workload.topics else 100.0
    base = workload.subscriptions if per_topic else workload.subscriptions * max(mean_size, 50.0)  # pairs that share
    return base * {"gm2": 20, "spidercast": 300, "similarity": 300, "random": 300}.get(cell.name, 1) + (
        workload.subscriptions * 20 if cell.settings else 0
    )


def _churn_weight(cell: Cell) -> float:
    rounds = float(cell.setting("events", 0)) or (2000.0 if cell.setting("trace", "") else 100.0)
    rounds = float(cell.setting("rounds", rounds))
    if cell.kind == "rebuild":
        rounds = 2 * rounds / float(cell.setting("every", 10))
    simulated = 50.0 if cell.name in ("omen", "omen-g", "spidercast") else 1.0
    return cell.workload.subscriptions * (rounds + 100) * simulated


def _lives_weight(cell: Cell) -> float:
    return cell.workload.subscriptions * float(cell.setting("duration", 100.0)) * 10


def _views_weight(cell: Cell) -> float:
    return cell.workload.subscriptions * float(cell.setting("rounds", 20)) * 10


CHURN_SETTINGS = tuple(ChurnSpec.__dataclass_fields__)
_CHURN: dict[str, Value] = {**vars(ChurnSpec()), "events": 0}

KINDS: dict[str, Kind] = {
    "design": Kind(
        _design,
        {"diameters": False, "check_k": 0, "mesh": 0, "mesh_k": 0, "tdi": 0},
        _design_weight,
        "algorithm",
    ),
    "replay": Kind(
        _replay,
        _CHURN | {"verify": "end", "diameters": False, "diameters_every": 0, "series": True, "start": ""},
        _churn_weight,
        "system",
    ),
    "rebuild": Kind(_rebuild, _CHURN | {"every": 10}, _churn_weight, "algorithm"),
    "lives": Kind(measure_lives, {"mean_up": 500.0, "duration": 100.0}, _lives_weight, "system"),
    "views": Kind(measure_views, {"rounds": 20}, _views_weight, "system"),
    "optimum": Kind(measure_optimum, {"limit_s": 60.0}, lambda cell: cell.workload.subscriptions**2, "algorithm"),
    "bound": Kind(measure_bound, {}, _design_weight, "algorithm"),
    "backups": Kind(_backups, {}, lambda cell: cell.workload.subscriptions * 100, "system"),
}


def check_cell(cell: Cell) -> None:
    """Refuse, before anything is run, what no worker could run."""
    from omen.design import resolve_options
    from omen.systems import resolve_settings

    if KINDS[cell.kind].runs == "algorithm":
        resolve_options(find_algorithm(cell.name), _told(cell))
    else:
        resolve_settings(find_system(cell.name), _told(cell))
    workload = cell.workload
    if not workload.folder:
        from omen.workloads.synthetic import check_synthesis

        Popularity.parse(workload.popularity)
        check_synthesis(workload.nodes, workload.topics, Sizes.parse(workload.sizes), workload.seed)
