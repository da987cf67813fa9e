"""The story that `omen demo` tells: overlays of one small workload next to one for each topic, and a live cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omen.design import resolve_options
from omen.interests import Interests
from omen.quality import check_overlay, per_topic_mesh_links, per_topic_ring_links
from omen.systems import design_overlay, find_algorithm
from omen.systems.designing import design_timed
from omen.tables import write_overlay, write_workload
from omen.workloads import generate_interests, generate_named_interests

NODES, TOPICS, POPULARITY, SIZES = 400, 40, "zipf:0.5", "uniform:5:15"
MESH_DEGREE = 6
LIVE_NODES, LIVE_TOPICS, LIVE_SIZES = 20, 30, "uniform:3:8"
KILLED, RATE = 3, 100.0


def make_workload(folder: Path, seed: int) -> Interests:
    """Draw the workload and write it to the folder."""
    interests = generate_interests(NODES, TOPICS, POPULARITY, SIZES, seed)
    info = {"made": "synth", "popularity": POPULARITY, "sizes": SIZES, "seed": seed}
    write_workload(folder, interests, info | {"nodes": NODES, "topics": TOPICS})
    return interests


def design_one(interests: Interests, name: str, path: Path) -> dict[str, Any]:
    """Design with one algorithm, write the overlay, and say what it costs and survives."""
    algorithm = find_algorithm(name)
    designed = design_timed(algorithm, interests, resolve_options(algorithm, {}))
    write_overlay(path, designed.overlay)
    summary = designed.summary()
    return {
        "algorithm": name,
        "edges": summary["edges"],
        "avg_degree": summary["avg_degree"],
        "max_degree": summary["max_degree"],
        "topic_connected": summary["topic_connected"],
        "survives_a_crash": check_overlay(interests, designed.overlay, k=2).holds,
        "design_s": designed.seconds,
    }


def cost_per_topic(interests: Interests) -> list[dict[str, Any]]:
    """What an overlay for each topic would cost: a ring, and a mesh as common gossip systems have."""
    rivals = {
        "ring": per_topic_ring_links(interests),
        f"mesh of {MESH_DEGREE}": per_topic_mesh_links(interests, MESH_DEGREE),
    }
    return [
        {"each_topic": name, "edges": needed.links, "avg_degree": needed.average, "max_degree": needed.maximum}
        for name, needed in rivals.items()
    ]


def run_live(folder: Path, seed: int, tell: Callable[[str], None], stay: Callable[[], None]) -> dict[str, Any]:
    """Design, start, publish, kill, repair, count; what came of it. `stay` is called before they are counted."""
    from omen.net.local.trial import Audience, run_trial

    interests = generate_named_interests(LIVE_NODES, LIVE_TOPICS, POPULARITY, LIVE_SIZES, seed)
    topics = {str(node): [str(topic) for topic in wanted] for node, wanted in interests.topics_by_node().items()}
    trial = run_trial(folder, topics, design_overlay(interests, "low-oda"), KILLED, RATE, Audience(tell, stay))
    return {**asdict(trial), "links_in_meshes": per_topic_mesh_links(interests, MESH_DEGREE).average}
