"""Maintainers add the links of the literal algorithms, in the same order, and build the same backups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omen.churn import Event, Join, Leave, Resubscribe
from omen.maintain import start_maintainer
from omen.maintain.maintainers import Maintainer
from reference.dynamic import Batch, Dynamic
from reference.greedy import Topics
from reference.instances import as_interests

TOPICS = 9


def random_topics(rng: np.random.Generator) -> set[int]:
    popularity = np.arange(TOPICS, 0, -1) ** 1.5
    size = int(rng.integers(0, 6))
    return set(rng.choice(TOPICS, size, replace=False, p=popularity / popularity.sum()).tolist())


def random_batch(rng: np.random.Generator, dynamic: Dynamic, fresh: int) -> Batch:
    """One event, or a few at once; new nodes take labels below, between and above those there are."""
    batch = Batch()
    present = sorted(dynamic.nodes)
    for _ in range(1 if rng.random() < 0.7 else int(rng.integers(2, 6))):
        kind = rng.random()
        free = [v for v in present if v not in batch.leaves and v not in batch.resubscribes]
        if kind < 0.4 and len(free) > 4:
            batch.leaves.append(free[int(rng.integers(len(free)))])
        elif kind < 0.6 and free:
            batch.resubscribes[free[int(rng.integers(len(free)))]] = random_topics(rng)
        else:
            label = int(rng.integers(0, 1000))
            if label not in dynamic.nodes and label not in batch.joins:
                batch.joins[label] = random_topics(rng)
    return batch


def as_events(batch: Batch) -> list[Event]:
    events: list[Event] = [Leave(0.0, v) for v in batch.leaves]
    events += [Resubscribe(0.0, v, tuple(topics)) for v, topics in batch.resubscribes.items()]
    return events + [Join(0.0, v, tuple(topics)) for v, topics in batch.joins.items()]


def relabelled(topics_of: Topics) -> Topics:
    """Leave room between labels for newcomers."""
    return {37 * v: topics for v, topics in topics_of.items()}


def assert_same(maintainer: Maintainer, dynamic: Dynamic) -> None:
    assert set(maintainer.overlay().links()) == dynamic.links()
    degrees = dynamic.degrees(set(dynamic.nodes)).values()
    assert maintainer.max_degree == max(degrees, default=0)
    state = maintainer.state
    for v, node in dynamic.nodes.items():
        slot = state.nodes.slot_of[v]
        assert {state.topics.label(t) for t in state.topics_of.of(slot)} == node.topics
        assert {state.nodes.label(u) for u in state.backups.of(slot)} == node.backups
        assert {state.nodes.label(u) for u in state.primaries.of(slot)} == node.primaries


def follow(system: str, seed: int, rounds: int, oracle: dict[str, Any], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    topics_of = relabelled({v: random_topics(rng) for v in range(int(rng.integers(6, 22)))})
    interests = _interests(topics_of)
    maintainer = start_maintainer(system, interests, **options)
    dynamic = Dynamic.start(topics_of, set(maintainer.overlay().links()), **oracle)  # type: ignore[arg-type]
    assert_same(maintainer, dynamic)
    for _ in range(rounds):
        batch = random_batch(rng, dynamic, 0)
        before = dynamic.links()
        change = maintainer.apply(as_events(batch))
        added = dynamic.apply(batch)
        assert set(change.added) == dynamic.links() - before
        assert set(change.removed) == before - dynamic.links()
        if not set(added) & before:
            assert [link for link in added if link in change.added] == list(change.added)
        assert_same(maintainer, dynamic)
        assert dynamic.backups_hold()


def _interests(topics_of: Topics) -> Any:
    codes = as_interests(dict(enumerate(topics_of.values())), TOPICS)
    return type(codes)(
        np.array(sorted(topics_of), np.int64),
        codes.topics,
        codes.node_offsets,
        codes.node_topics,
        codes.topic_offsets,
        codes.topic_nodes,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rule", ["pd-weight", "pd-cover", "greedy-weight", "greedy-cover"])
def test_shadow_is_algorithms_6_to_12_under_every_backup_rule(rule: str, seed: int) -> None:
    covers = seed % 4
    oracle = {"covers": covers, "rule": rule, "seed": seed}
    follow("shadow", seed, 14, oracle, {"lambda": covers, "backups": rule, "seed": seed})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("degree_of", ["s", "overlay"])
@pytest.mark.parametrize("components", ["exact", "halo", "halo-near", "literal"])
def test_shadow_reads_components_and_degree_as_told(components: str, degree_of: str, seed: int) -> None:
    oracle = {"covers": 1, "components": components, "degree_of": degree_of}
    follow("shadow", 50 + seed, 14, oracle, {"lambda": 1, "components": components, "degree_of": degree_of})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rho", [1.0, 3.0])
def test_naive_is_algorithms_3_and_4(rho: float, seed: int) -> None:
    follow("naive", 100 + seed, 14, {"covers": None, "rho": rho}, {"rho": rho})
