"""Messages as an enemy, or a bad wire, would make them: real ones with bytes, fields or both changed.

    python -m tests.simulation.hostile [--messages 1000000] [--each 500] [--from-one] [--first 0]

Worlds one after the other, so many mutated messages in each; `--from-one`: all of them by one member, which others may
drop for it. Exit code 1: a world did not heal.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import msgspec

from omen.protocol.events import NodeId, Received, Time
from omen.protocol.messages.overlay import Message, encode
from omen.sim.running import Outcome, Run
from omen.sim.scenario import BoundsSpec, ConfigSpec, EventSpec, NodeSpec, Scenario
from omen.sim.world import World

SCENARIO = Scenario(
    nodes={
        f"n{node}": NodeSpec(tuple(f"t{topic}" for topic in range(6) if (node >> topic % 3) % 2)) for node in range(10)
    },
    config=ConfigSpec(
        resilience=2,
        coverage=2,
        gossip_ms=200.0,
        standby_timeout_ms=1000.0,
        detector=True,
        heartbeat_ms=200.0,
        suspicion_ms=400.0,
        audit=True,
        audit_ms=2000.0,
        label_refresh=7,  # a label that is a lie lives for three times as many periods
        tombstone_life_ms=5000.0,
        offence_limit=0,  # it is the wire that lies here, in the names of honest nodes
    ),
    bounds=BoundsSpec(
        connected_s=60.0, handled_s=0.0, one_sided_s=40.0, idle_s=80.0
    ),  # who lies may say that it is handled
    events=(EventSpec(at=0.5, crash="n3"), EventSpec(at=1.5, join="x", topics=("t1", "t4"))),
)
EXTREMES = (
    0,
    1,
    2,
    255,
    2**31,
    2**32 - 1,
    2**32,
    2**48,
    2**63,
    2**64 - 1,
    -1,
    "",
    "x" * 300,
    b"",
    b"\xff" * 9,
    None,
    [],
)


class Recorder:
    """A tracer that keeps the messages nodes have received, a few of each kind."""

    def __init__(self, of_each: int = 40) -> None:
        self._of_each = of_each
        self.heard: dict[str, list[tuple[NodeId, NodeId, Message]]] = {}

    def __call__(self, _: Time, node: NodeId, what: object) -> None:
        if isinstance(what, Received) and isinstance(what.message, Message):
            kept = self.heard.setdefault(type(what.message).__name__, [])
            if len(kept) < self._of_each:
                kept.append((what.sender, node, what.message))


def mutate(message: Message, draw: random.Random) -> bytes:
    """The bytes of a message with something wrong in them, or everything."""
    kind = draw.choice((0, 1, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5))
    if kind == 0:
        return draw.randbytes(draw.randrange(64))
    data = bytearray(encode(message))
    if kind == 1:
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data)
    if kind == 2:
        cut = draw.randrange(len(data))
        return bytes(data[:cut]) if draw.randrange(2) else bytes(data[cut:] + data[:cut])
    fields = msgspec.msgpack.decode(data)
    if kind == 3 and len(fields) > 1:
        fields[draw.randrange(1, len(fields))] = draw.choice(EXTREMES)
    elif kind == 4:
        fields[0] = draw.randrange(256)
    else:
        _change_somewhere(fields, draw)
    return msgspec.msgpack.encode(fields)


def _change_somewhere(fields: Any, draw: random.Random) -> None:
    """Change one number, text or list, however deep, to another that may make sense."""
    position = draw.randrange(len(fields))
    value = fields[position]
    if isinstance(value, list) and value and draw.randrange(4):
        _change_somewhere(value, draw)
    elif isinstance(value, bool):
        fields[position] = not value
    elif isinstance(value, int):
        fields[position] = max(0, value + draw.choice((-1, 1, 2, 1000, 2**20, -value, 2**40)))
    elif isinstance(value, list):
        fields[position] = value * 2 if draw.randrange(2) else []
    else:
        fields[position] = draw.choice(EXTREMES)


def attack(world: World, recorder: Recorder, draw: random.Random, count: int, one: NodeId | None = None) -> int:
    """Hand nodes `count` mutated messages of all kinds heard so far, spread over a second, from any node or `one`."""
    kinds = sorted(recorder.heard)
    members = world.alive()
    for _ in range(count):
        sender, to, message = draw.choice(recorder.heard[draw.choice(kinds)])
        if draw.randrange(3) == 0:
            sender = draw.choice(members)
        if draw.randrange(3) == 0 or to not in members:
            to = draw.choice(members)
        if one is not None:
            sender, to = one, to if to != one else draw.choice([node for node in members if node != one])
        world.tell(to, Received(sender, mutate(message, draw)), draw.randrange(1_000_000))
    return count


def strike_world(seed: int, messages: int, from_one: bool = False) -> Outcome:
    """A world that is struck once; topics may be split for a while, and must not be in the end."""
    scenario = SCENARIO
    if from_one:
        held_to_account = msgspec.structs.replace(SCENARIO.config, offence_limit=10, ban_time_ms=10_000.0)
        ends = EventSpec(at=12.0, crash="n5")  # what becomes of it is its own affair
        scenario = msgspec.structs.replace(SCENARIO, config=held_to_account, events=(*SCENARIO.events, ends))
    run = Run(scenario, seed % 7)
    recorder = Recorder()
    run.world.tracer = recorder
    draw = random.Random(seed)
    one = run.population.place("n5") if from_one else None

    def strike() -> None:
        run.monitors.note_burst()
        attack(run.world, recorder, draw, messages, one)

    run.world.call(4_000_000, strike)
    for moment in range(40, 160):
        run.world.call(moment * 100_000 + 1, run.monitors.note_burst)
    run.hold_open(16_000_000)
    return run.go()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--from-one", action="store_true")
    told = parser.parse_args()
    begun, refused, failed = time.process_time(), 0, []
    worlds = range(told.first, told.first + -(-told.messages // told.each))
    for number, seed in enumerate(worlds, 1):
        outcome = strike_world(seed, told.each, told.from_one)
        refused += sum(outcome.refused.values())
        if not (outcome.went_well and outcome.settled):
            failed.append(seed)
            print(f"seed {seed}: {outcome.complaints()}", flush=True)
        if number % 50 == 0 or number == len(worlds):
            spent = time.process_time() - begun
            said, found = number * told.each, f"{refused} refused, {len(failed)} failed"
            print(f"{number} worlds, {said} messages: {found}, {spent:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
