"""Designs side by side: what each costs, next to an overlay for each topic by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import (
    check_overlay,
    degree_summary,
    diameter_summary,
    per_topic_mesh_links,
    per_topic_ring_links,
    topic_diameters,
)
from omen.quality.cut_nodes import cut_nodes
from omen.rules import FleetRules

MESH_DEGREE = 6


@dataclass(frozen=True)
class Compared:
    """One design. None where it is not known: per-topic overlays are counted, not drawn."""

    name: str
    links: int
    avg_degree: float
    max_degree: int
    topic_connected: bool | None = None
    mean_diameter: float | None = None
    max_diameter: int | None = None
    cut_nodes: int | None = None
    cost: float | None = None
    links_between_zones: int | None = None
    within_rules: bool | None = None


def compare(interests: Interests, rules: FleetRules, name: str, overlay: Overlay, within: bool) -> Compared:
    """Measure an overlay; `within` says whether it is within the rules."""
    degrees = degree_summary(overlay)
    diameters = diameter_summary(interests, topic_diameters(interests, overlay))
    return Compared(
        name,
        overlay.link_count,
        degrees.average,
        degrees.maximum,
        check_overlay(interests, overlay).topic_connected,
        diameters.mean,
        diameters.maximum,
        count_cut_nodes(interests, overlay),
        float(rules.costs_of(overlay.u, overlay.v).sum()),
        int((rules.zones[overlay.u] != rules.zones[overlay.v]).sum()),
        within,
    )


def per_topic_designs(interests: Interests) -> list[Compared]:
    """A ring and a mesh for each topic, no link serving two."""
    ring, mesh = per_topic_ring_links(interests), per_topic_mesh_links(interests, MESH_DEGREE)
    return [
        Compared("a ring per topic", ring.links, ring.average, ring.maximum),
        Compared(f"a mesh of {MESH_DEGREE} per topic", mesh.links, mesh.average, mesh.maximum),
    ]


def zone_costs(rules: FleetRules, overlay: Overlay) -> list[tuple[str, str, int, float]]:
    """For each two zones that are linked: how many links, and what they cost together."""
    low = np.minimum(rules.zones[overlay.u], rules.zones[overlay.v]).astype(np.int64)
    high = np.maximum(rules.zones[overlay.u], rules.zones[overlay.v])
    keys, places = np.unique(low * len(rules.zone_names) + high, return_inverse=True)
    links = np.bincount(places, minlength=keys.size)
    costs = np.bincount(places, weights=rules.costs_of(overlay.u, overlay.v), minlength=keys.size)
    names = rules.zone_names
    return [
        (names[key // len(names)], names[key % len(names)], count, cost)
        for key, count, cost in zip(keys.tolist(), links.tolist(), costs.tolist(), strict=True)
    ]


def count_cut_nodes(interests: Interests, overlay: Overlay) -> int:
    """How many nodes split at least one topic by their loss."""
    near = [set(overlay.neighbours_of(node).tolist()) for node in range(overlay.node_count)]
    found: set[int] = set()
    for topic in range(interests.topic_count):
        members = set(interests.subscribers_of(topic).tolist())
        found |= set(cut_nodes((u, v) for u in sorted(members) for v in sorted(near[u] & members) if u < v))
    return len(found)
