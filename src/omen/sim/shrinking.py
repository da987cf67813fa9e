"""Makes a failing world small: fewer events, fewer nodes, fewer topics, a better network, as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from omen.sim.scenario import EventSpec, Name, NetworkSpec, Scenario

SEEDS_TRIED = 3
RUNS_AT_MOST = 600

Fails = Callable[[Scenario, int], bool]


@dataclass(slots=True)
class Shrunk:
    """A small scenario, the seed with which it fails, and how many runs it took to find it."""

    scenario: Scenario
    seed: int
    runs: int = 0


def shrink(scenario: Scenario, seed: int, fails: Fails, runs_at_most: int = RUNS_AT_MOST) -> Shrunk:
    """Take away what can be taken away. Timing is drawn anew in each world, so a few seeds are tried for each."""
    best = Shrunk(scenario, seed)
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in _smaller(best.scenario):
            if best.runs >= runs_at_most:
                return best
            found = _try(candidate, seed, fails, best)
            if found is not None:
                best.scenario, best.seed = candidate, found
                shrinking = True
                break
    return best


def _try(candidate: Scenario, seed: int, fails: Fails, best: Shrunk) -> int | None:
    for other in dict.fromkeys((best.seed, *range(seed, seed + SEEDS_TRIED))):
        best.runs += 1
        if fails(candidate, other):
            return other
    return None


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Candidates, those first that take most away."""
    bursts = sorted({event.burst for event in scenario.events})
    for burst in bursts if len(bursts) > 1 else ():
        yield _with_events(scenario, (event for event in scenario.events if event.burst != burst))
    names = list(scenario.nodes)
    for gone in _chunks([name for name in names if not _is_named(scenario, name)] or names):
        if len(names) - len(gone) >= 2:
            yield _without_nodes(scenario, set(gone))
    for unit in _units(scenario.events):
        yield _with_events(scenario, (event for other, event in enumerate(scenario.events) if other not in unit))
    for name in names:
        if len(names) > 2:
            yield _without_nodes(scenario, {name})
    topics = sorted({topic for spec in scenario.nodes.values() for topic in spec.topics})
    for gone in _chunks(topics):
        yield _without_topics(scenario, set(gone))
    yield from _calmer(scenario)


def _units(events: tuple[EventSpec, ...]) -> Iterator[set[int]]:
    """Positions of events that belong together: what is cut or paused is also healed or resumed."""
    ends: set[int] = set()
    for position, event in enumerate(events):
        unit = {position}
        if event.pause is not None or event.partition is not None:
            later = [
                other
                for other, end in enumerate(events)
                if end.burst == event.burst
                and (end.at or 0) >= (event.at or 0)
                and (end.resume == event.pause if event.pause is not None else end.heal)
            ]
            unit.update(sorted(later, key=lambda other: events[other].at or 0)[:1])
        elif event.heal or event.resume is not None or position in ends:
            continue
        ends |= unit
        yield unit


def _chunks(things: list[str]) -> Iterator[list[str]]:
    size = len(things) // 2
    while size:
        for first in range(0, len(things), size):
            yield things[first : first + size]
        size //= 2


def _is_named(scenario: Scenario, name: Name) -> bool:
    return any(name in _names(event) for event in scenario.events)


def _names(event: EventSpec) -> set[Name]:
    fields = (event.crash, event.leave, event.resubscribe, event.pause, event.resume, event.suspect, event.by, event.of)
    return {name for name in (*fields, event.through, event.join) if name is not None}


def _with_events(scenario: Scenario, events: Iterable[EventSpec]) -> Scenario:
    """These events, and of those only the ones that still make sense."""
    kept = tuple(events)
    known = {*scenario.nodes, *(event.join for event in kept if event.join is not None)}
    kept = tuple(_cut_down(event, known) for event in kept if _makes_sense(event, known))
    return msgspec.structs.replace(scenario, events=kept)


def _makes_sense(event: EventSpec, known: set[Name]) -> bool:
    names = _names(event) - {event.crash} if event.topic is not None or event.on is not None else _names(event)
    return names <= known


def _cut_down(event: EventSpec, known: set[Name]) -> EventSpec:
    if event.partition is None:
        return event
    sides = tuple(tuple(name for name in side if name in known) for side in event.partition)
    return msgspec.structs.replace(event, partition=sides)


def _without_nodes(scenario: Scenario, gone: set[Name]) -> Scenario:
    nodes = {name: spec for name, spec in scenario.nodes.items() if name not in gone}
    return _with_events(msgspec.structs.replace(scenario, nodes=nodes), scenario.events)


def _without_topics(scenario: Scenario, gone: set[str]) -> Scenario:
    def rest(topics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(topic for topic in topics if topic not in gone)

    replace = msgspec.structs.replace
    nodes = {name: replace(spec, topics=rest(spec.topics)) for name, spec in scenario.nodes.items()}
    events = tuple(
        event if event.topics is None else replace(event, topics=rest(event.topics))
        for event in scenario.events
        if event.topic not in gone
    )
    return replace(scenario, nodes=nodes, events=events)


def _calmer(scenario: Scenario) -> Iterator[Scenario]:
    network = scenario.network
    plain = NetworkSpec()
    for field in ("loss", "duplication", "drift", "latency_ms"):
        if getattr(network, field) != getattr(plain, field):
            calmer = msgspec.structs.replace(network, **{field: getattr(plain, field)})
            yield msgspec.structs.replace(scenario, network=calmer)
