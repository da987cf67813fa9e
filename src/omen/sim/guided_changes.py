"""Small changes to a world, after which it makes as much sense as before, and no more happens in it at a time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import structs

from omen.sim.drawing import REMOVALS, SPREAD_S, draw_network
from omen.sim.scenario import COORDINATOR, STAGES, EventSpec, Name, Scenario

AFTER_MS = (0.0, 0.0, 1.0, 4.0, 15.0)

Change = Callable[[Scenario, Scenario, Random], Scenario]


def change_scenario(scenario: Scenario, other: Scenario, random: Random) -> Scenario:
    """One to three changes; `other` is a world to take something from. None at all is another seed, no more."""
    for _ in range(random.randrange(4)):
        scenario = random.choice(CHANGES)(scenario, other, random)
    return scenario


def _with_event(scenario: Scenario, position: int, event: EventSpec) -> Scenario:
    events = (*scenario.events[:position], event, *scenario.events[position + 1 :])
    return structs.replace(scenario, events=events)


def _pick(scenario: Scenario, random: Random, suits: Callable[[EventSpec], bool]) -> int | None:
    positions = [position for position, event in enumerate(scenario.events) if suits(event)]
    return random.choice(positions) if positions else None


def another_moment(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    """An event at another time of its burst, often close to another one."""
    position = _pick(scenario, random, lambda event: event.at is not None and not (event.heal or event.resume))
    if position is None:
        return scenario
    event = scenario.events[position]
    near = [one.at for one in scenario.events if one.burst == event.burst and one.at is not None]
    at = random.choice(near) + random.choice((0.0, 0.002, 0.02, 0.06)) if random.randrange(2) else None
    moved = round(random.uniform(0, SPREAD_S) if at is None else at, 4)
    if event.pause is not None or event.partition is not None:
        moved = min(moved, event.at or 0.0)  # it ends when it did
    return _with_event(scenario, position, structs.replace(event, at=moved))


def another_node(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    """A crash or a leave of another node, which nothing else happens to."""
    position = _pick(scenario, random, lambda event: _plain_loss(event) is not None)
    if position is None:
        return scenario
    event = scenario.events[position]
    free = sorted(scenario.nodes.keys() - _named(scenario))
    if not free:
        return scenario
    name, before = random.choice(free), _plain_loss(event)
    changed = structs.replace(event, **{event.action: name})
    events = [structs.replace(one, of=name) if one.of == before else one for one in scenario.events]
    events[position] = changed
    return structs.replace(scenario, events=tuple(events))


def crash_or_leave(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    position = _pick(scenario, random, lambda event: _plain_loss(event) is not None)
    if position is None:
        return scenario
    event = scenario.events[position]
    name = _plain_loss(event)
    other = (
        structs.replace(event, crash=None, leave=name)
        if event.leave is None
        else structs.replace(event, crash=name, leave=None)
    )
    return _with_event(scenario, position, other)


def another_stage(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    """A crash of a coordinator at another stage, that of checking among them."""
    position = _pick(scenario, random, lambda event: event.on is not None)
    if position is None:
        return scenario
    event = structs.replace(scenario.events[position], on=random.choice(STAGES), after_ms=random.choice(AFTER_MS))
    return _with_event(scenario, position, event)


def at_a_stage(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    """Something that happens when a repair of the same burst comes to a stage; now and then to its coordinator."""
    position = _pick(scenario, random, lambda event: event.at is not None and _plain_loss(event) is not None)
    if position is None:
        return scenario
    event = scenario.events[position]
    causes = [
        name
        for one in scenario.events
        if one.burst == event.burst and one is not event and (name := _plain_loss(one) or one.join) is not None
    ]
    if not causes:
        return scenario
    stage, after = random.choice(STAGES), random.choice(AFTER_MS)
    moved = structs.replace(event, at=None, on=stage, of=random.choice(causes), after_ms=after)
    if random.randrange(2) and event.crash is not None and not any(one.of == event.crash for one in scenario.events):
        moved = structs.replace(moved, crash=COORDINATOR)
    return _with_event(scenario, position, moved)


def another_network(scenario: Scenario, other: Scenario, random: Random) -> Scenario:
    network = other.network if random.randrange(2) else draw_network(random)
    return structs.replace(scenario, network=network)


def another_setting(scenario: Scenario, _: Scenario, random: Random) -> Scenario:
    config = structs.replace(
        scenario.config,
        coverage=random.randint(0, 3),
        halo_hops=random.randint(1, 2),
        redundant_removals=random.choice(REMOVALS),
        detector=random.randrange(3) == 0,
    )
    return structs.replace(scenario, config=config)


def _plain_loss(event: EventSpec) -> Name | None:
    """The node that crashes or leaves, if it is named."""
    if event.topic is not None or event.crash == COORDINATOR:
        return None
    return event.crash or event.leave


def _named(scenario: Scenario) -> set[Name]:
    words = ("crash", "leave", "join", "resubscribe", "pause", "suspect", "by", "of", "through")
    return {name for event in scenario.events for word in words if (name := getattr(event, word)) is not None}


CHANGES: tuple[Change, ...] = (
    another_moment,
    another_moment,
    another_node,
    crash_or_leave,
    another_stage,
    at_a_stage,
    at_a_stage,
    another_network,
    another_setting,
)
