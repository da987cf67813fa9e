"""Workloads and overlays that several claims look at: each is made once in a process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import fmean

from omen.interests import Interests
from omen.overlay import Overlay
from omen.quality import check_overlay, degree_summary, diameter_summary, topic_diameters
from omen.runs import design_overlay
from omen.workloads import generate_interests


@dataclass(frozen=True)
class Instance:
    """A synthetic workload of the papers: each node draws `size` topics without replacement."""

    nodes: int
    topics: int
    popularity: str
    size: int
    seed: int


@dataclass(frozen=True)
class Degrees:
    links: int
    average: float
    maximum: int


@dataclass(frozen=True)
class Diameters:
    maximum: int
    mean: float


@lru_cache(maxsize=32)
def interests_of(instance: Instance) -> Interests:
    return generate_interests(instance.nodes, instance.topics, instance.popularity, instance.size, seed=instance.seed)


@lru_cache(maxsize=32)
def _overlay_of(instance: Instance, algorithm: str, options: tuple[tuple[str, float], ...]) -> Overlay:
    """What the algorithm designs. A number about an overlay that is not topic-connected would mean nothing."""
    interests = interests_of(instance)
    overlay = design_overlay(interests, algorithm, **dict(options))
    assert check_overlay(interests, overlay).holds
    return overlay


@cache
def degrees(instance: Instance, algorithm: str, **options: float) -> Degrees:
    overlay = _overlay_of(instance, algorithm, tuple(options.items()))
    summary = degree_summary(overlay)
    return Degrees(overlay.link_count, summary.average, summary.maximum)


@cache
def diameters(instance: Instance, algorithm: str, **options: float) -> Diameters:
    interests = interests_of(instance)
    overlay = _overlay_of(instance, algorithm, tuple(options.items()))
    summary = diameter_summary(interests, topic_diameters(interests, overlay))
    assert summary.disconnected == 0
    return Diameters(summary.maximum, summary.mean)


def average_degree(instances: Iterable[Instance], algorithm: str, **options: float) -> float:
    return fmean(degrees(one, algorithm, **options).average for one in instances)


def maximum_degree(instances: Iterable[Instance], algorithm: str, **options: float) -> float:
    return fmean(degrees(one, algorithm, **options).maximum for one in instances)


def links(instances: Iterable[Instance], algorithm: str, **options: float) -> float:
    return fmean(degrees(one, algorithm, **options).links for one in instances)


def shown(values: Iterable[float], digits: int = 2) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)
