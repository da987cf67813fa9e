"""Draws worlds from a seed: the nodes, their links, how bad the network is, what happens and to which node.

`draw_scenario` has what a node does and suffers; `draw_within` adds what a network does to it, up to L events at once;
`draw_refusing` adds hosts that outlive their processes; `draw_beyond` has more than L at once, with the audit on.
"""

from __future__ import annotations

from random import Random

from msgspec import structs

from omen.protocol.membership.ring import place_of
from omen.sim.scenario import (
    COORDINATOR,
    DRAWN_STAGES,
    ROLES,
    BoundsSpec,
    ConfigSpec,
    Delay,
    EventSpec,
    LogNormal,
    Name,
    NetworkSpec,
    NodeSpec,
    Scenario,
)
from omen.sim.world import generator_for

BURSTS = 4
SPREAD_S = 0.3
FEWEST_NODES = 5
REMOVALS = (0, 4, 20)
TROUBLES = ("crash", "crash", "killing", "killing", "row", "join", "between", "leave", "change", "back")
HARSH = (*TROUBLES, "aimed", "aimed", "aimed", "pause", "suspect", "flap")


class Draft:
    """Draws one world: the nodes, and what happens, at most L things at a time."""

    troubles: tuple[str, ...] = TROUBLES
    bursts = BURSTS

    def __init__(self, random: Random, topics: tuple[int, int], nodes: tuple[int, int]) -> None:
        self.random = random
        self.resilience = random.randint(1, 4)
        self.topics = [f"t{topic}" for topic in range(self.draw_size(*topics))]
        self.nodes = {f"n{node}": NodeSpec(self.draw_topics()) for node in range(self.draw_size(*nodes))}
        self.places = {name: place_of(name) for name in self.nodes}
        self.present = list(self.nodes)
        self.absent: list[Name] = []
        self.events: list[EventSpec] = []

    def draw_size(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def draw_bursts(self) -> tuple[EventSpec, ...]:
        for burst in range(1, self.bursts + 1):
            self.draw_burst(burst)
        return tuple(self.events)

    def draw_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.random.sample(self.topics, self.random.randint(1, min(6, len(self.topics))))))

    def draw_burst(self, burst: int) -> None:
        left = self.random.randint(1, self.resilience)
        while left > 0:
            at = round(self.random.uniform(0, SPREAD_S), 4)
            left -= self.draw_trouble(burst, at, left)

    def draw_trouble(self, burst: int, at: float, allowed: int) -> int:
        """Something that happens, or a few things about the same time; how many."""
        kind = self.random.choice(self.troubles)
        few = len(self.present) <= FEWEST_NODES
        if kind == "change":
            name = self.random.choice(self.present)
            self.events.append(EventSpec(burst, at, resubscribe=name, topics=self.draw_topics()))
        elif kind == "back" and self.absent:
            self.rejoin(burst, at)
        elif kind in ("join", "back") or few:
            self.join(burst, at)
        elif kind == "leave":
            self.events.append(EventSpec(burst, at, leave=self.lose_one()))
        elif kind == "killing" and allowed > 1:
            return self.kill_coordinators(burst, at, allowed)
        elif kind == "row" and allowed > 1:
            return self.lose_a_row(burst, at, allowed)
        elif kind == "between" and allowed > 1:
            self.join_between(burst, at)
            return 2
        else:
            return self.disturb(kind, burst, at, allowed)
        return 1

    def disturb(self, _kind: str, burst: int, at: float, _allowed: int) -> int:
        self.events.append(EventSpec(burst, at, crash=self.lose_one()))
        return 1

    def lose_one(self) -> Name:
        name = self.present.pop(self.random.randrange(len(self.present)))
        self.absent.append(name)
        return name

    def join(self, burst: int, at: float, place: int | None = None) -> None:
        name = f"x{len(self.places)}"
        self.places[name] = place_of(name) if place is None else place
        self.present.append(name)
        self.events.append(EventSpec(burst, at, join=name, topics=self.draw_topics(), place=place))

    def rejoin(self, burst: int, at: float) -> None:
        """A node that crashed or left, perhaps only just, rejoins under its name."""
        name = self.absent.pop(self.random.randrange(len(self.absent)))
        self.present.append(name)
        place = None if name in self.nodes else self.places[name]
        self.events.append(EventSpec(burst, at, join=name, topics=self.draw_topics(), place=place))

    def lose_a_row(self, burst: int, at: float, allowed: int) -> int:
        """Nodes that follow each other on the ring crash together, coordinators among them."""
        count = min(self.random.randint(2, allowed), len(self.present) - FEWEST_NODES + 1)
        order = sorted(self.present, key=lambda name: self.places[name])
        first = self.random.randrange(len(order))
        for step in range(count):
            name = order[(first + step) % len(order)]
            self.present.remove(name)
            self.absent.append(name)
            self.events.append(EventSpec(burst, at, crash=name))
        return count

    def kill_coordinators(self, burst: int, at: float, allowed: int) -> int:
        """The coordinator crashes at a stage of its repair, and now and then the next one too."""
        lost = self.lose_one()
        kills = 2 if allowed > 2 and self.random.randrange(2) else 1
        after = self.random.choice((0.0, 0.0, 1.0, 4.0, 15.0))
        stage = self.random.choice(DRAWN_STAGES)
        self.events.append(EventSpec(burst, at, crash=lost))
        self.events += [EventSpec(burst, on=stage, of=lost, after_ms=after, crash=COORDINATOR)] * kills
        return 1 + kills

    def join_between(self, burst: int, at: float) -> None:
        """A node joins between a lost node and the coordinator of its repair, before, while or after it repairs."""
        lost = self.lose_one()
        self.events.append(EventSpec(burst, at, crash=lost))
        later = round(max(0.0, at + self.random.uniform(-0.2, 0.3)), 4)
        self.join(burst, later, self.places[lost] + self.random.randint(1, 1000))


class HarshDraft(Draft):
    """The same with a network that pauses, suspects and cuts, and crashes aimed at the nodes that matter most."""

    troubles = HARSH
    bursts = 3

    def draw_size(self, least: int, most: int) -> int:
        """Rather small: the same time then shows more worlds."""
        return least + int((most - least + 1) * self.random.random() ** 2)

    def disturb(self, kind: str, burst: int, at: float, allowed: int) -> int:
        if kind == "aimed":
            role, topic = self.random.choice(ROLES), self.random.choice(self.topics)
            self.events.append(EventSpec(burst, at, crash=role, topic=topic))
            return 1
        if kind == "flap" and not any(event.heal and event.burst == burst for event in self.events):
            return self.cut_for_a_moment(burst, at)
        if kind == "pause" and allowed > 1:
            return self.pause_one(burst, at)
        if kind == "suspect" and allowed > 1:
            return self.suspect_one(burst, at)
        return super().disturb(kind, burst, at, allowed)

    def pause_one(self, burst: int, at: float) -> int:
        """A node stands still for a while; if it is declared failed meanwhile that is a loss and a join."""
        name = self.random.choice(self.present)
        still = round(self.random.choice((0.05, 0.3, 1.0, 4.0)) * self.random.uniform(0.5, 1.5), 4)
        self.events.append(EventSpec(burst, at, pause=name))
        self.events.append(EventSpec(burst, round(at + still, 4), resume=name))
        return 2

    def suspect_one(self, burst: int, at: float) -> int:
        """One is told that another has failed, which is not so: a loss and a join, at worst."""
        name, by = self.random.sample(self.present, 2)
        self.events.append(EventSpec(burst, at, suspect=name, by=by))
        return 2

    def cut_for_a_moment(self, burst: int, at: float) -> int:
        """The network is cut in two, for less than it takes to notice."""
        side = tuple(self.random.sample(self.present, len(self.present) // 2))
        self.events.append(EventSpec(burst, at, partition=(side,)))
        self.events.append(EventSpec(burst, round(at + self.random.uniform(0.002, 0.015), 4), heal=True))
        return 1


def draw_scenario(number: int) -> Scenario:
    """World `number` as it was first drawn: what happens is what nodes do and suffer."""
    random = generator_for(number, "scenario")
    draft = Draft(random, (4, 20), (8, 40))
    config = ConfigSpec(
        resilience=draft.resilience,
        coverage=random.randint(0, 5),
        gossip_ms=200.0,
        standby_timeout_ms=1500.0,
        halo_hops=1 + number % 2,
        redundant_removals=REMOVALS[number % len(REMOVALS)],
    )
    trouble = random.randrange(3) == 0
    network = NetworkSpec(
        latency_ms=(0.5, 5.0),
        detection_ms=(20.0, 200.0),
        loss=0.01 if trouble else 0.0,
        duplication=0.02 if trouble else 0.0,
        drift=0.01,
    )
    events = draft.draw_bursts()
    return Scenario(f"world {number}", nodes=draft.nodes, config=config, network=network, events=events)


def draw_within(seed: int) -> Scenario:
    """Up to L events at a time, the audit off: everything heals by itself. Every second world has lambda 0 or 1."""
    random = generator_for(seed, "within")
    draft = HarshDraft(random, (5, 40), (8, 60))
    config = ConfigSpec(
        resilience=draft.resilience,
        coverage=random.randint(0, 1) if seed % 2 == 0 else random.randint(0, 5),
        gossip_ms=200.0,
        standby_timeout_ms=1500.0,
        halo_hops=random.randint(1, 2),
        redundant_removals=random.choice(REMOVALS),
        detector=random.randrange(3) == 0,
        heartbeat_ms=200.0,
        suspicion_ms=400.0,
    )
    return Scenario(
        f"within {seed}",
        nodes=draft.nodes,
        config=config,
        network=draw_network(random),
        bounds=BoundsSpec(connected_s=25.0, handled_s=30.0, idle_s=35.0),
        events=draft.draw_bursts(),
    )


def draw_network(random: Random) -> NetworkSpec:
    delays: tuple[Delay, ...] = (1.0, (0.5, 5.0), (0.5, 12.0), LogNormal(2.0, 0.8))
    return NetworkSpec(
        latency_ms=random.choice(delays),
        detection_ms=random.choice(((20.0, 200.0), (20.0, 60.0), (100.0, 400.0))),
        loss=round(random.uniform(0.0, 0.05), 4) if random.randrange(2) else 0.0,
        duplication=round(random.uniform(0.0, 0.05), 4) if random.randrange(2) else 0.0,
        drift=0.01,
    )


def draw_refusing(seed: int) -> Scenario:
    """The worlds within L once more, with a failure detector; most processes that end leave a host that refuses."""
    scenario = draw_within(seed)
    random = generator_for(seed, "refusing")
    network = structs.replace(
        scenario.network,
        refusal_ms=random.choice((0.5, (0.5, 5.0), (1.0, 300.0))),
        silent_crashes=random.choice((0.0, 0.0, 0.3)),
    )
    config = structs.replace(scenario.config, detector=True)
    return structs.replace(scenario, name=f"refusing {seed}", config=config, network=network)


def draw_twofold(seed: int) -> Scenario:
    """The worlds within L once more, of nodes that keep every topic 2-connected."""
    scenario = draw_within(seed)
    config = structs.replace(scenario.config, connectivity=2, connectivity_ms=500.0)
    return structs.replace(scenario, name=f"twofold {seed}", config=config)


def draw_beyond(seed: int) -> Scenario:
    """More than L at once: half the nodes, a cut of minutes, links that vanish. The audit is on, and heals it."""
    random = generator_for(seed, "beyond")
    draft = HarshDraft(random, (5, 40), (8, 60))
    kinds = ("half", "cut", "scramble")
    for burst in (1, 2):
        _draw_disaster(draft, burst, kinds[(seed + burst) % 3])
    config = ConfigSpec(
        resilience=draft.resilience,
        coverage=random.randint(0, 1) if seed % 2 == 0 else random.randint(0, 5),
        gossip_ms=1000.0,
        halo_hops=random.randint(1, 2),
        redundant_removals=random.choice(REMOVALS),
        detector=random.randrange(2) == 0,
        audit=True,
    )
    return Scenario(
        f"beyond {seed}",
        nodes=draft.nodes,
        config=config,
        network=draw_network(random),
        # With so many lost at once no node may be left that knew of a loss: topics must be connected, that is all.
        bounds=BoundsSpec(connected_s=200.0, handled_s=0.0, one_sided_s=90.0, idle_s=300.0),
        events=tuple(draft.events),
    )


def _draw_disaster(draft: Draft, burst: int, kind: str) -> None:
    random = draft.random
    if kind == "half" and len(draft.present) >= 2 * FEWEST_NODES:
        draft.events += [EventSpec(burst, 0.1, crash=draft.lose_one()) for _ in range(len(draft.present) // 2)]
    elif kind == "cut":
        side = tuple(random.sample(draft.present, max(1, int(len(draft.present) * random.uniform(0.2, 0.5)))))
        draft.events.append(EventSpec(burst, 0.1, partition=(side,)))
        minutes = random.uniform(1, 3) if random.randrange(3) else random.uniform(0.2, 1)
        draft.events.append(EventSpec(burst, round(0.1 + 60 * minutes, 3), heal=True))
    else:
        draft.events.append(EventSpec(burst, 0.1, scramble=round(random.uniform(0.2, 0.8), 2)))
