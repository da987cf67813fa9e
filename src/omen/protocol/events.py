"""What a core is told (past tense) and what it asks for (imperative). Both drivers speak exactly these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

Time = int  # microseconds
NodeId = int  # a node's place on the identifier circle
Topic = int  # a topic's key

MILLISECOND = 1_000
SECOND = 1_000_000

TimerKey = Hashable
Item = TypeVar("Item")


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message came in. `sender` is who the driver knows it is from. One a message: a struct is made fastest."""

    sender: NodeId
    message: Any


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    key: TimerKey


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A peer this node is connected to is gone. `incarnation` None: whichever was known."""

    peer: NodeId
    incarnation: int | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Change the node's own topics: what is added and what is dropped."""

    added: tuple[Topic, ...] = ()
    dropped: tuple[Topic, ...] = ()


@dataclass(frozen=True, slots=True)
class Depart:
    """Leave in good order."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Say this to all who want the topic; it becomes part of the node's interest. InvalidInput: it is too large."""

    topic: Topic
    payload: bytes


@dataclass(frozen=True, slots=True)
class Replay:
    """Deliver what the neighbours still keep of a topic too, not only what comes next. Say it before `Subscribe`."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class LinkSlow:
    """The driver has no more room for publications to this peer: give it none until `LinkReady`."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class LinkReady:
    """There is room again, or the connection to a neighbour is back: what the peer has missed is found out and sent."""

    peer: NodeId


Command = Subscribe | Depart | Publish | Replay
Input = Received | TimerFired | PeerLost | LinkSlow | LinkReady | Command


class Send(msgspec.Struct, frozen=True, gc=False):
    to: NodeId
    address: str
    message: Any


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Fire `key` after `delay`; setting a key again replaces it."""

    key: TimerKey
    delay: Time


@dataclass(frozen=True, slots=True)
class Connect:
    """Keep a connection to this peer, and say so when it is lost."""

    peer: NodeId
    address: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class Notify:
    """Something the world around the node may want to know: a link came up, an event was handled, the node has left."""

    what: str
    detail: Any = None


class Multicast(msgspec.Struct, frozen=True, gc=False):
    """The same message to several peers this node keeps connections to: encode it once. `to` is never empty."""

    to: tuple[NodeId, ...]
    message: Any


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A publication, to the application: in order and once for each (topic, publisher, incarnation)."""

    topic: Topic
    publisher: NodeId
    incarnation: int
    sequence: int
    payload: bytes


class Gap(msgspec.Struct, frozen=True, gc=False):
    """To the application: these sequences, both ends included, can no longer be had; what follows comes next."""

    topic: Topic
    publisher: NodeId
    incarnation: int
    first: int
    last: int


class Held(msgspec.Struct, frozen=True, gc=False):
    """To the publishing application: every neighbour on the topic's tree, at least one, has all up to `sequence`."""

    topic: Topic
    sequence: int


Output = Send | SetTimer | Connect | Disconnect | Notify | Multicast | Deliver | Gap | Held


class Core(Protocol):
    """A node without I/O."""

    def start(self, now: Time) -> Sequence[Output]: ...

    def handle(self, event: Input, now: Time) -> Sequence[Output]: ...


class Randomness(Protocol):
    """What a core draws from: the driver hands in one generator a node, derived from (seed, node)."""

    def randrange(self, stop: int, /) -> int: ...

    def sample(self, population: Sequence[Item], k: int, /) -> list[Item]: ...

    def shuffle(self, x: list[Any], /) -> None: ...

    def random(self) -> float: ...


Engine = Callable[
    [Sequence[Sequence[int]], Sequence[Sequence[int]], Sequence[int], float, int],
    list[tuple[int, int]],
]
"""The greedy engine as a node sees it: (topics of each node, its component label in each, degrees, rho, centre or -1)
-> new links as pairs of positions. Handed in by the driver: a node loads compiled code only when it first mends."""
