"""Makes a failing world small: fewer events, fewer nodes, fewer topics, a better network, as long as it still fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from omen.sim.scenario import EventSpec, Name, NetworkSpec, Scenario

SEEDS_TRIED = (2, 8, 32)
RUNS_AT_MOST = 2000

Fails = Callable[[Scenario, int], bool]


@dataclass(slots=True)
class Shrunk:
    """A small scenario, the seed with which it fails, and how many runs it took to find it."""

    scenario: Scenario
    seed: int
    runs: int = 0


def shrink(scenario: Scenario, seed: int, fails: Fails, runs_at_most: int = RUNS_AT_MOST) -> Shrunk:
    """Take away what can be taken away. Timing is drawn anew in each world, so a few seeds are tried for each.

    In passes over bursts, nodes, events and topics, large parts first, until one changes nothing (as ddmin does). Then
    more seeds are tried: what takes a lost message to show is rare in a small world.
    """
    best = Shrunk(scenario, seed)
    for seeds in SEEDS_TRIED:
        before = None
        while best.scenario != before and best.runs < runs_at_most:
            before = best.scenario
            for change in _changes(best.scenario):
                candidate = change(best.scenario)
                if candidate == best.scenario or best.runs >= runs_at_most:
                    continue
                found = _try(candidate, range(seed, seed + seeds), fails, best)
                if found is not None:
                    best.scenario, best.seed = candidate, found
    return best


def _try(candidate: Scenario, seeds: Iterable[int], fails: Fails, best: Shrunk) -> int | None:
    for other in dict.fromkeys((best.seed, *seeds)):
        best.runs += 1
        if fails(candidate, other):
            return other
    return None


Change = Callable[[Scenario], Scenario]


def _changes(scenario: Scenario) -> Iterator[Change]:
    """What might be taken away, to be tried one after the other on what is left by then."""
    for burst in sorted({event.burst for event in scenario.events}):
        yield partial(_without_burst, burst=burst)
    names = list(scenario.nodes)
    idle = [name for name in names if not _is_named(scenario, name)]
    for gone in (*_chunks(idle), *_chunks(names)):
        yield partial(_without_nodes, gone=set(gone))
    for unit in _units(scenario.events):
        yield partial(_without_events, gone=[scenario.events[position] for position in unit])
    topics = sorted({topic for spec in scenario.nodes.values() for topic in spec.topics})
    for gone in _chunks(topics):
        yield partial(_without_topics, gone=set(gone))
    for field in ("loss", "duplication", "drift", "latency_ms"):
        yield partial(_calmer, field=field)
    yield _with_half_the_load


def _without_burst(scenario: Scenario, burst: int) -> Scenario:
    rest = [event for event in scenario.events if event.burst != burst]
    return _with_events(scenario, rest) if rest else scenario


def _without_events(scenario: Scenario, gone: list[EventSpec]) -> Scenario:
    """By when and what they are: a cut may have lost members meanwhile."""
    left = Counter(map(_key, gone))
    rest = []
    for event in scenario.events:
        if left[_key(event)]:
            left[_key(event)] -= 1
        else:
            rest.append(event)
    return _with_events(scenario, rest)


def _key(event: EventSpec) -> tuple[object, ...]:
    name = None if event.partition is not None else getattr(event, event.action)
    return event.burst, event.at, event.on, event.of, event.action, name


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
    if len(nodes) < 2:
        return scenario
    load = scenario.load
    if load is not None:
        links = tuple(link for link in load.links if not gone.intersection(link.between))
        publishers = tuple(name for name in load.publishers if name not in gone)
        load = msgspec.structs.replace(load, links=links, publishers=publishers)
    return _with_events(msgspec.structs.replace(scenario, nodes=nodes, load=load), scenario.events)


def _with_half_the_load(scenario: Scenario) -> Scenario:
    """For half as long."""
    if scenario.load is None or scenario.load.seconds < 0.1:
        return scenario
    load = msgspec.structs.replace(scenario.load, seconds=round(scenario.load.seconds / 2, 3))
    return msgspec.structs.replace(scenario, load=load)


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


def _calmer(scenario: Scenario, field: str) -> Scenario:
    calmer = msgspec.structs.replace(scenario.network, **{field: getattr(NetworkSpec(), field)})
    return msgspec.structs.replace(scenario, network=calmer)
