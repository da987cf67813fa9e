"""Draws worlds under load: thousands of publications per second, while nodes are lost, join and fall behind.

`draw_busy` has windows that cover a repair in most worlds; in `draw_cramped` they last for a fraction of one.
"""

from __future__ import annotations

from random import Random

from msgspec import structs

from omen.sim.drawing import FEWEST_NODES, Draft
from omen.sim.scenario import (
    BoundsSpec,
    ConfigSpec,
    EventSpec,
    LoadSpec,
    Name,
    NetworkSpec,
    NodeSpec,
    Scenario,
    SlowLink,
)
from omen.sim.world import generator_for

BUSY_RATES = (200, 1000, 1000, 2000, 5000)
BUSY_PAYLOADS = ((0, 0), (100, 100), (100, 100), (0, 2000), (1000, 1000), (0, 60_000))
BUSY_PUBLICATIONS = 4000
BUSY_BYTES = 60e6


def draw_busy(seed: int) -> Scenario:
    """A few nodes, one topic that carries most, thousands of publications per second; losses, joins, slow consumers.

    Repairs take up to 4 s, and in a third of the worlds that is longer than windows last.
    """
    random = generator_for(seed, "busy")
    draft = Draft(random, (1, 3), (3, 7))
    names = list(draft.nodes)
    nodes = {name: NodeSpec(tuple(sorted({"t0", *spec.topics}))) for name, spec in draft.nodes.items()}
    payload = random.choice(BUSY_PAYLOADS)
    rate = random.choice(BUSY_RATES)
    most = min(BUSY_PUBLICATIONS, BUSY_BYTES / (1 + sum(payload) / 2))
    seconds = min(6.0, max(0.5, most / rate))
    repair_ms = random.choice((50.0, 500.0, 2000.0, 4000.0))
    tight = random.random() < 0.35
    window_bytes = int(rate * (350 + sum(payload) / 2) * random.uniform(0.3, 2.0)) if tight else None
    speed = random.choice((100e6, 100e6, 20e6, 5e6))
    links: tuple[SlowLink, ...] = ()
    if random.random() < 0.4:
        pair = random.sample(names, 2)
        links = (SlowLink((pair[0], pair[1]), random.choice((50e3, 200e3, 1e6))),)
    load = LoadSpec(
        rate=rate,
        seconds=seconds,
        payload=payload,
        burst=random.choice((1, 1, 1, int(rate * min(seconds, 2) / 4) or 1)),
        publishers=tuple(random.sample(names, random.randint(1, 2))),
        bytes_per_s=speed,
        links=links,
        queue_bytes=random.choice((8 << 20, 1 << 20, 256 << 10)),
        window_s=random.choice((None, None, 2.0)) if tight else None,
        window_bytes=window_bytes,
    )
    load = structs.replace(load, waits=random.random() < 0.5)
    events = _busy_events(random, names, load, repair_ms)
    return Scenario(
        name=f"busy {seed}",
        until_s=seconds + repair_ms / 1000 + 2,
        nodes=nodes,
        config=ConfigSpec(resilience=2, audit=True, audit_ms=3000.0),
        network=NetworkSpec(latency_ms=random.choice((0.2, 1.0, (0.5, 20.0))), detection_ms=repair_ms),
        bounds=BoundsSpec(connected_s=60.0, handled_s=60.0, one_sided_s=60.0, idle_s=60.0),
        load=load,
        events=events,
    )


CRAMPED_PUBLICATIONS = 6000


def draw_cramped(seed: int) -> Scenario:
    """More nodes, all of which publish, with windows of a fraction of a repair; crashes, restarts, false suspicions.

    What is missing cannot be had from any window then: all of it must be told.
    """
    random = generator_for(seed, "cramped")
    draft = Draft(random, (2, 8), (5, 20))
    names = list(draft.nodes)
    rate = random.choice((100, 300, 1000))
    seconds = CRAMPED_PUBLICATIONS / rate if rate >= 1000 else 8.0
    payload = random.choice(((100, 100), (0, 2000), (1000, 1000)))
    repair_ms = random.choice((200.0, 1000.0, 4000.0))
    events: list[EventSpec] = []
    for _ in range(random.randint(1, 5)):
        events += _cramped_events(draft, round(random.uniform(0.1, seconds), 3), f"j{len(events)}")
    return Scenario(
        name=f"cramped {seed}",
        until_s=seconds + repair_ms / 1000 + 2,
        nodes=draft.nodes,
        config=ConfigSpec(resilience=2, audit=True, audit_ms=3000.0),
        network=NetworkSpec(latency_ms=random.choice((0.2, 1.0, (0.5, 20.0))), detection_ms=repair_ms),
        # More than L events may fall together: publications are watched, and that all is connected in the end.
        bounds=BoundsSpec(connected_s=60.0, handled_s=0.0, one_sided_s=60.0, idle_s=60.0),
        load=LoadSpec(
            rate=rate,
            seconds=seconds,
            payload=payload,
            publishers=tuple(names),
            bytes_per_s=random.choice((100e6, 5e6)),
            queue_bytes=random.choice((8 << 20, 256 << 10)),
            window_s=random.choice((None, 2.0)),
            window_bytes=int(rate * (350 + sum(payload) / 2) * random.uniform(0.02, 0.5)),
        ),
        events=tuple(events),
    )


def _cramped_events(draft: Draft, at: float, newcomer: Name) -> list[EventSpec]:
    """A loss, a restart, a join, or a node told wrongly that another has failed."""
    random = draft.random
    kind = random.choice(("crash", "crash", "restart", "restart", "leave", "join", "suspect"))
    if kind == "join" or len(draft.present) <= FEWEST_NODES:
        return [EventSpec(at=at, join=newcomer, topics=draft.draw_topics())]
    if kind == "suspect":
        name, by = random.sample(draft.present, 2)
        return [EventSpec(at=at, suspect=name, by=by)]
    name = draft.lose_one()
    if kind == "leave":
        return [EventSpec(at=at, leave=name)]
    lost = [EventSpec(at=at, crash=name)]
    if kind == "restart":
        later = round(at + random.choice((0.3, 1.0, 3.0)), 3)
        lost.append(EventSpec(at=later, join=name, topics=draft.nodes[name].topics))
    return lost


def _busy_events(random: Random, names: list[Name], load: LoadSpec, repair_ms: float) -> tuple[EventSpec, ...]:
    """One or two things that happen while publications flow; who publishes goes last."""
    events: list[EventSpec] = []
    others = [name for name in names if name not in load.publishers]
    random.shuffle(others)
    for _ in range(random.randint(0, 2)):
        at = round(random.uniform(0.1, load.seconds), 3)
        kind = random.choice(("crash", "crash", "join", "join", "leave", "pause", "back", "publisher"))
        if kind == "join" or (not others and kind != "publisher"):
            topics = ("t0",)
            events.append(EventSpec(at=at, join=f"j{len(events)}", topics=topics))
        elif kind == "publisher":
            events.append(EventSpec(at=at, crash=load.publishers[0]))
        elif kind == "pause":
            name = others.pop()
            events.append(EventSpec(at=at, pause=name))
            events.append(EventSpec(at=round(at + random.choice((0.3, 1.0, 3.0)), 3), resume=name))
        elif kind == "leave":
            events.append(EventSpec(at=at, leave=others.pop()))
        else:
            name = others.pop()
            events.append(EventSpec(at=at, crash=name))
            if kind == "back":
                back = round(at + repair_ms / 1000 + random.uniform(0.1, 1.0), 3)
                events.append(EventSpec(at=back, join=name, topics=("t0",)))
    return tuple(events)
