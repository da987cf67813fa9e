"""Looks for trouble: small random worlds, each with bursts of events up to what it should survive, each watched.

`python -m omen.sim.search --worlds 200` runs them; `--world N --trace` tells one again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random

from omen.protocol.circle import place_of
from omen.sim.running import Outcome, Run
from omen.sim.scenario import COORDINATOR, STEPS, ConfigSpec, EventSpec, Name, NetworkSpec, NodeSpec, Scenario
from omen.sim.world import generator_for

BURSTS = 4
SPREAD_S = 0.3
FEWEST_NODES = 5
REMOVALS = (0, 4, 20)
TROUBLES = ("crash", "crash", "killing", "killing", "row", "join", "between", "leave", "change", "back")


class Draft:
    """Draws one world: who is there, and what happens, at most L things at a time."""

    def __init__(self, number: int) -> None:
        self.random: Random = generator_for(number, "scenario")
        self.resilience = self.random.randint(1, 4)
        self.topics = [f"t{topic}" for topic in range(self.random.randint(4, 20))]
        self.nodes = {f"n{node}": NodeSpec(self.draw_topics()) for node in range(self.random.randint(8, 40))}
        self.places = {name: place_of(name) for name in self.nodes}
        self.present = list(self.nodes)
        self.absent: list[Name] = []
        self.events: list[EventSpec] = []

    def scenario(self, number: int) -> Scenario:
        config = ConfigSpec(
            resilience=self.resilience,
            coverage=self.random.randint(0, 5),
            gossip_ms=200.0,
            standby_timeout_ms=1500.0,
            halo_hops=1 + number % 2,
            redundant_removals=REMOVALS[number % len(REMOVALS)],
        )
        trouble = self.random.randrange(3) == 0
        network = NetworkSpec(
            latency_ms=(0.5, 5.0),
            detection_ms=(20.0, 200.0),
            loss=0.01 if trouble else 0.0,
            duplication=0.02 if trouble else 0.0,
            drift=0.01,
        )
        for burst in range(1, BURSTS + 1):
            self.draw_burst(burst)
        return Scenario(f"world {number}", nodes=self.nodes, config=config, network=network, events=tuple(self.events))

    def draw_topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.random.sample(self.topics, self.random.randint(1, min(6, len(self.topics))))))

    def draw_burst(self, burst: int) -> None:
        left = self.random.randint(1, self.resilience)
        while left > 0:
            at = round(self.random.uniform(0, SPREAD_S), 4)
            left -= self.draw_trouble(burst, at, left)

    def draw_trouble(self, burst: int, at: float, allowed: int) -> int:
        """Something that happens, or a few things about the same time; how many."""
        kind = self.random.choice(TROUBLES)
        few = len(self.present) <= FEWEST_NODES
        if kind == "change":
            name = self.random.choice(self.present)
            self.events.append(EventSpec(burst, at, resubscribe=name, topics=self.draw_topics()))
        elif kind == "back" and self.absent:
            self.come_back(burst, at)
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

    def come_back(self, burst: int, at: float) -> None:
        """A node that is gone, perhaps only just, comes back under its name."""
        name = self.absent.pop(self.random.randrange(len(self.absent)))
        self.present.append(name)
        place = None if name in self.nodes else self.places[name]
        self.events.append(EventSpec(burst, at, join=name, topics=self.draw_topics(), place=place))

    def lose_a_row(self, burst: int, at: float, allowed: int) -> int:
        """Nodes that follow each other on the circle are lost together, coordinators among them."""
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
        """Whoever mends is lost at a step of its work, and now and then the next one too."""
        lost = self.lose_one()
        kills = 2 if allowed > 2 and self.random.randrange(2) else 1
        after = self.random.choice((0.0, 0.0, 1.0, 4.0, 15.0))
        step = self.random.choice(STEPS)
        self.events.append(EventSpec(burst, at, crash=lost))
        self.events += [EventSpec(burst, on=step, of=lost, after_ms=after, crash=COORDINATOR)] * kills
        return 1 + kills

    def join_between(self, burst: int, at: float) -> None:
        """Somebody takes a place between a lost node and whoever is to mend for it, before, while or after it does."""
        lost = self.lose_one()
        self.events.append(EventSpec(burst, at, crash=lost))
        later = round(max(0.0, at + self.random.uniform(-0.2, 0.3)), 4)
        self.join(burst, later, self.places[lost] + self.random.randint(1, 1000))


def draw_scenario(number: int) -> Scenario:
    """World `number`: always the same one."""
    return Draft(number).scenario(number)


def run_world(number: int) -> Outcome:
    return Run(draw_scenario(number), number).go()


def _report(number: int, outcome: Outcome) -> None:
    for complaint in outcome.complaints():
        print(f"world {number}: {complaint}")
    print(f"world {number}: replay it with: python -m omen.sim.search --world {number} --trace")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m omen.sim.search", description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=200, help="how many worlds (200)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument("--world", type=int, help="only this one")
    parser.add_argument("--trace", action="store_true", help="tell it line by line")
    arguments = parser.parse_args(argv)
    if arguments.world is not None:
        run = Run(draw_scenario(arguments.world), arguments.world, print if arguments.trace else None)
        outcome = run.go()
        for complaint in outcome.complaints():
            print(complaint)
        return 0 if outcome.went_well else 1
    numbers = range(arguments.first, arguments.first + arguments.worlds)
    failed = 0
    with ProcessPoolExecutor(arguments.workers) as pool:
        for number, outcome in zip(numbers, pool.map(run_world, numbers), strict=True):
            if not outcome.went_well:
                failed += 1
                _report(number, outcome)
    print(f"{len(numbers) - failed} of {len(numbers)} worlds healed from everything")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
