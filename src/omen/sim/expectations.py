"""What a scenario expects at a time, held against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omen.interests import Label
from omen.protocol.events import NodeId, Time
from omen.protocol.messages.overlay import EventId
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.scenario import Expectation, RepairExpectation, ViewExpectation


@dataclass(frozen=True, slots=True)
class Repair:
    """One event handled: its coordinator, its shadow set, the new links."""

    time: Time
    event: EventId
    node: Label
    coordinator: Label
    shadow: tuple[Label, ...]
    links: tuple[tuple[Label, Label], ...]


def examine(
    population: Population, monitors: Monitors, repairs: Sequence[Repair], expectation: Expectation
) -> list[str]:
    """What is not as expected."""
    complaints = []
    split = monitors.split_topics()
    if expectation.connected is not None and expectation.connected == bool(split):
        complaints.append(f"split: {', '.join(map(str, split))}" if split else "all topics connected, expected a split")
    if expectation.split is not None and sorted(expectation.split) != split:
        complaints.append(f"split are {split}, expected {sorted(expectation.split)}")
    if expectation.links is not None:
        labels = population.labels
        present = {frozenset((labels[one], labels[other])) for one, other in population.links()}
        missing = [pair for pair in expectation.links if frozenset(pair) not in present]
        complaints += [f"missing links {_words(missing)}"] if missing else []
    if expectation.repair is not None:
        complaints += _examine_repair(population, repairs, expectation.repair)
    if expectation.view is not None:
        complaints += _examine_view(population, expectation.view)
    return complaints


def _examine_repair(population: Population, repairs: Sequence[Repair], expected: RepairExpectation) -> list[str]:
    node = population.place(expected.of)
    repair = next((repair for repair in repairs if repair.event.node == node), None)
    if repair is None:
        return [f"nothing was repaired for {expected.of}"]
    complaints = []
    if expected.coordinator not in (None, repair.coordinator):
        complaints.append(f"{repair.coordinator} repaired for {expected.of}, expected {expected.coordinator}")
    if expected.shadow is not None and set(expected.shadow) != set(repair.shadow):
        complaints.append(f"the shadow set was {_words(repair.shadow)}, expected {_words(expected.shadow)}")
    if expected.links is not None and set(map(frozenset, expected.links)) != set(map(frozenset, repair.links)):
        complaints.append(f"new links were {_words(repair.links)}, expected {_words(expected.links)}")
    return complaints


def _examine_view(population: Population, expected: ViewExpectation) -> list[str]:
    status = population.cores[population.place(expected.at)].status()
    node = population.place(expected.of)
    shadow = status.backup_sets.get(node)
    whose = f"{expected.at}'s view of {expected.of}"
    if shadow is None:
        return [f"there is no {whose}"]
    complaints = []
    backups = [population.labels[backup] for backup in shadow.backups]
    if expected.backups is not None and set(expected.backups) != set(backups):
        complaints.append(f"{whose} has backups {_words(backups)}, expected {_words(expected.backups)}")
    coverage = min((_cover(population, shadow.backups, topic) for topic in shadow.topics), default=0)
    if expected.coverage not in (None, coverage):
        complaints.append(f"{whose} has coverage {coverage}, expected {expected.coverage}")
    if expected.ready not in (None, shadow.ready):
        complaints.append(f"{whose} {'is not ready' if expected.ready else 'is ready already'}")
    return complaints


def _cover(population: Population, backups: Sequence[NodeId], topic: int) -> int:
    return sum(topic in population.cores[backup].topics for backup in backups)


def _words(things: Sequence[object]) -> str:
    return " ".join("-".join(map(str, thing)) if isinstance(thing, tuple) else str(thing) for thing in things)
