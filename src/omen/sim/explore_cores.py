"""The states that the nodes of a small world can be in, each met once: what a node does with an input is remembered.

Nodes are deterministic, so the same state, input and time lead to the same state and outputs again. Most steps of an
exploration differ from ones before only in what other nodes did meanwhile: they cost a lookup, not a step of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from omen.protocol.events import (
    Connect,
    Disconnect,
    Left,
    Multicast,
    NodeId,
    Notify,
    Output,
    PeerLost,
    Received,
    Rejoined,
    RepairStageEntered,
    Send,
    SetTimer,
    Time,
    TimerFired,
)
from omen.protocol.node import OmenNode
from omen.protocol.snapshots import Snapshots
from omen.sim.world import START, Suspicion

SEND, TIMER, CONNECT, DISCONNECT, LEFT, REJOINED = range(6)
Effect = tuple[int, int, int]
"""What a step brings about: a kind, and two numbers (a node or item, a delay or incarnation)."""


class CoreState(NamedTuple):
    """A state of one node, and what is asked about it often."""

    owner: int
    saved: bytes
    busy: bool
    topics: tuple[int, ...]
    links: tuple[tuple[NodeId, int, bool], ...]


class Items:
    """Inputs by number: equal ones have the same."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, item: Any) -> int:
        found = self._numbers.get(item)
        if found is None:
            found = self._numbers[item] = len(self.all)
            self.all.append(item)
        return found


class Cores:
    """All states met, by number. `owner`: which live node a state belongs to; a name that rejoins has several."""

    def __init__(self) -> None:
        self.items = Items()
        self.states: list[CoreState] = []
        self.stages: set[str] = set()
        self.taken: set[str] = set()
        self.steps = 0
        self._live: list[OmenNode] = []
        self._snapshots: list[Snapshots] = []
        self._present: list[int] = []
        self._saved: dict[tuple[int, bytes], int] = {}
        self._keys: dict[tuple[int, bytes], int] = {}
        self._done: dict[tuple[int, int, Time], tuple[int, tuple[Effect, ...]]] = {}

    def adopt(self, core: OmenNode) -> int:
        """A node comes in; the number of the state it is in."""
        self._live.append(core)
        self._snapshots.append(Snapshots(core))
        self._present.append(-1)
        return self._number(len(self._live) - 1)

    def step(self, state: int, item: int, clock: Time) -> tuple[int, tuple[Effect, ...]]:
        """What a node in this state does with an input: its next state, and the effects."""
        found = self._done.get((state, item, clock))
        if found is None:
            found = self._done[state, item, clock] = self._step(state, item, clock)
        return found

    def _step(self, state: int, item: int, clock: Time) -> tuple[int, tuple[Effect, ...]]:
        self.steps += 1
        owner = self.states[state].owner
        if self._present[owner] != state:
            self._snapshots[owner].restore(self.states[state].saved)
        self._present[owner] = -1
        core, event = self._live[owner], self.items.all[item]
        if type(event) is Received:
            self.taken.add(type(event.message).__name__)
        outputs = core.start(clock) if event == START else core.handle(_as_input(event), clock)
        effects = tuple(self._effects(core.ref.id, outputs))
        return self._number(owner), effects

    def _effects(self, node: NodeId, outputs: Sequence[Output]) -> list[Effect]:
        effects: list[Effect] = []
        for output in outputs:
            match output:
                case Send(to, _, message):
                    effects.append((SEND, to, self.items.number(Received(node, message))))
                case Multicast(to, message):
                    effects += [(SEND, peer, self.items.number(Received(node, message))) for peer in to]
                case SetTimer(timer, delay):
                    effects.append((TIMER, self.items.number(TimerFired(timer)), delay))
                case Connect(peer, _):
                    effects.append((CONNECT, peer, 0))
                case Disconnect(peer):
                    effects.append((DISCONNECT, peer, 0))
                case Notify(Left()):
                    effects.append((LEFT, 0, 0))
                case Notify(Rejoined(incarnation)):
                    effects.append((REJOINED, incarnation, 0))
                case Notify(RepairStageEntered(_, stage, _)):
                    self.stages.add(stage)
                case _:
                    pass
        return effects

    def _number(self, owner: int) -> int:
        snapshots, core = self._snapshots[owner], self._live[owner]
        saved = snapshots.save()
        number = self._saved.get((owner, saved))
        if number is None:
            key = snapshots.key()
            number = self._keys.get((owner, key))
            if number is None:
                number = self._keys[owner, key] = len(self.states)
                links = tuple((other, link.ref.incarnation, link.is_up) for other, link in sorted(core.links().items()))
                busy = (core.is_busy or bool(core.open_lookups)) and not core.stopped
                self.states.append(CoreState(owner, saved, busy, core.topics, links))
                self._saved[owner, saved] = number
        self._present[owner] = number
        return number


def _as_input(event: Any) -> Any:
    return PeerLost(event.lost, event.incarnation) if type(event) is Suspicion else event
