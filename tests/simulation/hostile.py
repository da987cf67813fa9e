"""Messages as an enemy, or a bad wire, would make them: real ones with bytes, fields or both changed."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from omen.protocol.events import NodeId, Received, Time
from omen.protocol.messages.overlay import Message, encode
from omen.sim.world import World

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


def attack(world: World, recorder: Recorder, draw: random.Random, count: int) -> int:
    """Hand nodes `count` mutated messages of all kinds heard so far, spread over a second, from any node."""
    kinds = sorted(recorder.heard)
    members = world.alive()
    for _ in range(count):
        sender, to, message = draw.choice(recorder.heard[draw.choice(kinds)])
        if draw.randrange(3) == 0:
            sender = draw.choice(members)
        if draw.randrange(3) == 0 or to not in members:
            to = draw.choice(members)
        world.tell(to, Received(sender, mutate(message, draw)), draw.randrange(1_000_000))
    return count
