"""One SpiderCast node with a hand-made membership, for tests of single lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from omen.protocol.context import Outbox
from omen.protocol.events import Input, Output, Received, Send, SetTimer, Time, Timer, TimerFired
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.messages import Connect, ConnectOk, Heartbeat
from omen.protocol.spidercast.neighbours import Connections
from omen.protocol.spidercast.node import HeartbeatTimer, SpiderNode, TaskStatus
from omen.protocol.spidercast.task import MaintainTimer, Myself, Task, TaskContext
from reference.spidercast import best_candidates, random_candidates

ME = 1


def ref(node: int, incarnation: int = 1) -> Ref:
    return Ref(node, incarnation, "")


@dataclass
class PlainView:
    """Fig. 5, literally, over a dict. Keeps what it was asked."""

    interests: dict[int, set[int]]
    version: int = 1
    asked: list[tuple[str, tuple[int, ...], frozenset[int]]] = field(default_factory=list)

    def choose(self, rule: str, uncovered: Sequence[int], excluded: Iterable[int], word: int) -> Ref | None:
        barred = {ME, *excluded}
        self.asked.append((rule, tuple(uncovered), frozenset(barred)))
        if rule == "anybody":
            found = self.interests.keys() - barred
        else:
            among = best_candidates if rule in ("greedy", "similar") else random_candidates
            found = among(self.interests, barred, uncovered)
        return ref(sorted(found)[word % len(found)]) if found else None


class Bench:
    """A node on the bench: what it is told, what it sends."""

    def __init__(
        self,
        topics: Iterable[int],
        view: dict[int, set[int]] | None = None,
        config: SpiderConfig | None = None,
        **settings: Any,
    ) -> None:
        self.view = PlainView(view or {})
        self.config = config or SpiderConfig(coverage(3, 0), **settings)
        self.node = SpiderNode(ref(ME), topics, self.config, Random(1), self.view)
        self.now: Time = 0
        self.outputs: list[Output] = []

    @property
    def task(self) -> TaskStatus:
        """The greedy task as it is now."""
        return self.node.status().tasks[0]

    def tell(self, event: Input) -> list[Any]:
        """The messages it sends upon this."""
        self.outputs = list(self.node.handle(event, self.now))
        return [(output.to, output.message) for output in self.outputs if isinstance(output, Send)]

    def hear(self, sender: int, message: Any) -> list[Any]:
        return self.tell(Received(sender, message))

    def loop(self, task: int = 0) -> list[Any]:
        """One iteration of MAINTAINNEIGHBORS."""
        self.now += self.config.connect_timeout
        return self.tell(TimerFired(MaintainTimer(task)))

    def beat(self) -> list[Any]:
        return self.tell(TimerFired(HeartbeatTimer()))

    @property
    def timers(self) -> dict[Timer, Time]:
        """What the last input set."""
        return {output.timer: output.delay for output in self.outputs if isinstance(output, SetTimer)}

    def connected_by(
        self, node: int, topics: Iterable[int], degree: int = 1, target: int = 9, task: int = 0
    ) -> list[Any]:
        return self.hear(node, Connect(ref(node), task, degree, target, tuple(topics)))

    def gets_ok(self, node: int, topics: Iterable[int], degree: int = 1, target: int = 9, task: int = 0) -> list[Any]:
        return self.hear(node, ConnectOk(ref(node), task, degree, target, tuple(topics)))

    def beats(self, node: int, degree: int, target: int, interest: tuple[int, ...] | None = None) -> list[Any]:
        return self.hear(node, Heartbeat(ref(node), 0, degree, target, interest))

    def kinds(self, sent: list[Any]) -> list[str]:
        return [type(message).__name__ for _, message in sent]

    def neighbours(self, task: int = 0) -> set[int]:
        return set(self.node.status().tasks[task].neighbours)


def covered(bench: Bench, times: int = 3) -> None:
    """Give it neighbours 11, 12, ... that cover everything, none of them covered itself."""
    for node in range(11, 11 + times):
        bench.connected_by(node, bench.node.topics, degree=1, target=9)
    bench.loop()


def full(bench: Bench, **known: int) -> None:
    """Give it as many neighbours as it accepts, 11 to 18, none of them with room unless its degree is said."""
    for node in range(11, 19):
        bench.connected_by(node, [1, 2] if node == 15 else [1], degree=known.get(f"n{node}", 99), target=9)


class TaskBench:
    """The greedy task of a node by itself, with (3, 0)-coverage."""

    def __init__(self, topics: Iterable[int], **settings: Any) -> None:
        out = Outbox(ME)
        me = Myself(ref(ME), tuple(sorted(topics)))
        config = SpiderConfig(coverage(3, 0), **settings)
        self.task = Task(0, TaskContext(me, config, PlainView({}), Random(1), out, Connections(out)))

    def connected_by(self, node: int, topics: Iterable[int], degree: int = 1, target: int = 9) -> None:
        self.task.on_connect(Connect(ref(node), 0, degree, target, tuple(topics)))

    def candidates(self, draws: int) -> set[int]:
        """Which neighbours DISCONNECTCANDIDATE returns in so many draws."""
        found = [self.task.disconnect_candidate() for _ in range(draws)]
        return {neighbour.ref.id for neighbour in found if neighbour is not None}
