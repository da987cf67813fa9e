"""The last part of omen demo: a live cluster, of which some nodes are killed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from omen.cli.output import print_facts

NODES, TOPICS, POPULARITY, SIZES = 20, 30, "zipf:0.5", "uniform:3:8"
KILL, RATE, MESH_DEGREE = 3, 100.0, 6


def run_live(folder: Path, seed: int, quiet: bool) -> dict[str, Any]:
    """Design, start, publish, kill, mend, count; what came of it."""
    from omen.interests import Interests
    from omen.net.trial import run_trial
    from omen.quality import per_topic_mesh_links
    from omen.systems import design_overlay
    from omen.workloads import generate_interests

    drawn = generate_interests(NODES, TOPICS, POPULARITY, SIZES, seed)
    interests = Interests.from_pairs([(f"n{node}", f"t{topic}") for node, topic in drawn.pairs()])
    topics = {
        node: [str(interests.topics[topic]) for topic in interests.topics_of(code).tolist()]
        for code, node in enumerate(interests.nodes.tolist())
    }
    tell = (lambda line: None) if quiet else (lambda line: print(f"  {line}", flush=True))
    trial = run_trial(folder, topics, design_overlay(interests, "low-oda"), KILL, RATE, tell)
    meshes = per_topic_mesh_links(interests, MESH_DEGREE)
    return {**asdict(trial), "links_in_meshes": meshes.average}


def print_live(found: dict[str, Any]) -> None:
    facts = [
        ("links a node", f"{found['links_before']:.1f}, after mending {found['links_after']:.1f}"),
        (f"in a mesh of {MESH_DEGREE} a topic", f"{found['links_in_meshes']:.1f}"),
        ("published by survivors", found["published"]),
        ("deliveries due", found["due"]),
        ("delivered", found["delivered"]),
    ]
    print_facts(facts)
    print(f"lost {found['lost']}")
    print(f"duplicated {found['duplicated']}")
