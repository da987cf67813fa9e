"""What one member can cause at the others by messages of one kind: measured for every kind there is.

    python -m tests.simulation.amplification        the table, for all kinds

Five nodes are linked to each other and to a sixth, the sender, of which only messages are made up: valid ones, found by
the types of their fields, so that a new kind is measured without being named here. They come at the rate limit. The
same five nodes are run without them, and the difference is what they caused: messages, bytes, dials, memory kept.
"""

from __future__ import annotations

import gc
import heapq
import random
import sys
import tracemalloc
import types
import typing
from dataclasses import replace
from enum import Enum
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import msgspec

from omen.net.settings import LIVE
from omen.protocol.events import (
    MILLISECOND,
    SECOND,
    Connect,
    Input,
    Multicast,
    NodeId,
    Output,
    Publish,
    Received,
    Send,
    SetTimer,
    Time,
    TimerFired,
)
from omen.protocol.membership.ring import place_of
from omen.protocol.messages import base, publications, wire
from omen.protocol.messages.base import Descriptor, Digest, Message, Ref
from omen.protocol.messages.overlay import AnyMessage, Heartbeat
from omen.protocol.messages.publications import Control, Publication, make_publication, stream_key
from omen.protocol.node import OmenNode

KINDS: tuple[type[Message], ...] = (*typing.get_args(AnyMessage), *typing.get_args(Control), Publication)
MEMBERS, COUNT, RATE = 5, 60, 5_000
BYTES_AT_MOST = 12_000
TOPICS = tuple(range(100, 140))
SENDER = Ref(place_of("eve"), 1, "127.0.0.66:1")
NODES = tuple(Ref(place_of(f"n{number}"), 1, f"127.0.0.1:{7000 + number}") for number in range(MEMBERS))
PLACE_FIELDS = {"target", "other", "origin", "node", "publisher", "leader", "to", "want", "ids", "skip", "fading"}
OWN_FIELDS = {"asker", "me", "ref", "reporter"}
SETTINGS = replace(LIVE, gossip_period=200 * MILLISECOND, audit_period=2 * SECOND)


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


class Draw:
    """Values of any field of any message, such as a member would send."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._numbers = count(2)

    def message(self, kind: type[Message]) -> Message:
        if kind is Publication:
            key = stream_key(self._draw.choice(TOPICS), self._draw.choice((SENDER, *NODES)).id, 1)
            return make_publication(key, next(self._numbers), bytes(64), self._draw.random() < 0.1)
        return self.struct(kind)  # type: ignore[no-any-return]

    def struct(self, kind: Any, own: bool = False) -> Any:
        if kind is Ref:
            return SENDER if own else self._ref()
        hints = hints_of(kind)
        own = own or kind in (Digest, Descriptor)
        return kind(*(self._field(name, hints[name], own) for name in kind.__struct_fields__))

    def _ref(self) -> Ref:
        known = self._draw.random() < 0.5
        return self._draw.choice((SENDER, *NODES)) if known else self._stranger()

    def _stranger(self) -> Ref:
        name = f"stranger{self._draw.randrange(10_000)}"
        return Ref(place_of(name), 1, f"127.0.0.99:{self._draw.randrange(1, 60_000)}")

    def _field(self, name: str, kind: Any, own: bool) -> Any:
        own = own or name in OWN_FIELDS
        if kind in (base.Number, base.Hops, base.Incarnation, publications.Sequence, publications.Known):
            return self._number(name)
        if typing.get_origin(kind) is typing.Annotated:
            inner = typing.get_args(kind)[0]
            return self._place(name) if inner is int else self._field(name, inner, own)
        if typing.get_origin(kind) in (types.UnionType, typing.Union):
            return self._field(name, next(one for one in typing.get_args(kind) if one is not type(None)), own)
        if typing.get_origin(kind) is tuple:
            return self._tuple(name, typing.get_args(kind), own)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._draw.choice(list(kind))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind, own)
        return {bool: self._draw.random() < 0.5, bytes: self._draw.randbytes(5), str: "x", int: self._place(name)}[kind]

    def _tuple(self, name: str, inner: tuple[Any, ...], own: bool) -> Any:
        if len(inner) == 2 and inner[1] is Ellipsis:
            first = [self._field(name, inner[0], own)]
            more = 12 if typing.get_origin(inner[0]) is not tuple else 3
            return tuple(first + [self._field(name, inner[0], False) for _ in range(self._draw.randrange(more))])
        return tuple(self._field(name, one, own) for one in inner)

    def _number(self, name: str) -> int:
        if name in ("incarnation", "attempt"):
            return self._draw.choice((0, 1, 1, 1, 2))
        if name in ("hops",):
            return base.NUMBER_AT_MOST
        return next(self._numbers)

    def _place(self, name: str) -> int:
        if name in PLACE_FIELDS:
            return self._draw.choice((SENDER, *NODES)).id if self._draw.random() < 0.5 else self._stranger().id
        return self._draw.choice(TOPICS) if self._draw.random() < 0.8 else self._draw.getrandbits(63)


class Caused(msgspec.Struct):
    """What nodes did in one run."""

    messages: int = 0
    bytes: int = 0
    dials: int = 0
    kept: int = 0


class Arena:
    """The five nodes, with a clock of their own; the sender says that it is there, and nothing else by itself."""

    def __init__(self) -> None:
        self.caused = Caused()
        self._queue: list[tuple[Time, int, NodeId, Input]] = []
        self._order = count()
        self._timers: dict[tuple[NodeId, Any], int] = {}
        self._now: Time = 0
        self._dialled: set[tuple[NodeId, NodeId]] = set()
        all_refs = (*NODES, SENDER)
        self.cores: dict[NodeId, OmenNode] = {}
        for ref in NODES:
            core = OmenNode(ref, TOPICS, SETTINGS, random.Random(ref.id), lambda *_: [])
            others = [other for other in all_refs if other != ref]
            descriptors = [Descriptor(Digest(other, 1, 1), TOPICS, ()) for other in others]
            core.preset(descriptors, [(other, ()) for other in others], others)
            self.cores[ref.id] = core
        for ref in NODES:
            self._obey(ref.id, self.cores[ref.id].start(0))
            self._obey(ref.id, self.cores[ref.id].handle(Publish(TOPICS[0], b"tea"), 0))

    def schedule(self, at: Time, node: NodeId, event: Input) -> None:
        heapq.heappush(self._queue, (at, next(self._order), node, event))

    def run(self, until: Time) -> None:
        beat = 0
        while self._queue and self._queue[0][0] <= until:
            self._now, number, node, event = heapq.heappop(self._queue)
            while beat <= self._now:
                beat += SECOND // 4
                for ref in NODES:
                    self.schedule(beat, ref.id, Received(SENDER.id, Heartbeat(1)))
            if isinstance(event, TimerFired) and self._timers.get((node, event.timer)) != number:
                continue
            self._obey(node, self.cores[node].handle(event, self._now))

    def _obey(self, node: NodeId, outputs: typing.Iterable[Output]) -> None:
        for output in outputs:
            if isinstance(output, Send):
                self._send(node, output.to, output.address, output.message)
            elif isinstance(output, Multicast):
                for to in output.to:
                    self._send(node, to, "", output.message)
            elif isinstance(output, SetTimer):
                number = next(self._order)
                self._timers[node, output.timer] = number
                heapq.heappush(self._queue, (self._now + output.delay, number, node, TimerFired(output.timer)))
            elif isinstance(output, Connect):
                self._dial(node, output.peer, output.address)

    def _send(self, node: NodeId, to: NodeId, address: str, message: Any) -> None:
        self.caused.messages += 1
        self.caused.bytes += len(wire.encode(message)) + 4
        if to in self.cores:
            self.schedule(self._now + MILLISECOND, to, Received(node, message))
        elif to != SENDER.id:
            self._dial(node, to, address)

    def _dial(self, node: NodeId, to: NodeId, address: str) -> None:
        if to not in self.cores and to != SENDER.id and address and (node, to) not in self._dialled:
            self._dialled.add((node, to))
            self.caused.dials += 1


BEGIN, END = 2 * SECOND, 5 * SECOND
NOISE_BYTES = 20_000


class Factors(NamedTuple):
    """Messages and dials for each message sent; bytes, and bytes kept, for each byte."""

    messages: float
    bytes: float
    dials: float
    kept: float


def run(messages: typing.Sequence[Message]) -> Caused:
    """What the nodes do in five seconds, in which one of them is told all of this."""
    arena = Arena()
    for number, message in enumerate(messages):
        arena.schedule(BEGIN + number * SECOND // RATE, NODES[0].id, Received(SENDER.id, message))
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    arena.run(END)
    gc.collect()
    arena.caused.kept = tracemalloc.get_traced_memory()[0] - before
    return arena.caused


def measure(kind: type[Message], quiet: Caused) -> Factors:
    """Messages and dials per message, bytes and bytes kept per byte."""
    draw = Draw(7)
    said: list[Message] = []
    size = 0
    while len(said) < COUNT and size < BYTES_AT_MOST:
        said.append(draw.message(kind))
        size += len(wire.encode(said[-1])) + 4
    loud = run(said)
    kept = max(0, loud.kept - quiet.kept - NOISE_BYTES)
    more = loud.messages - quiet.messages, loud.bytes - quiet.bytes, loud.dials - quiet.dials
    return Factors(more[0] / len(said), more[1] / size, more[2] / len(said), kept / size)


def main() -> int:
    tracemalloc.start()
    run([])
    quiet = run([])
    for kind in KINDS:
        print(kind.__name__, *(f"{value:.2f}" for value in measure(kind, quiet)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
