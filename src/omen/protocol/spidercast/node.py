"""One SpiderCast node: the two tasks, heartbeats, the adaptive K_r, and what happens when it leaves or changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, assert_never, cast

import msgspec

from omen.protocol.context import Outbox
from omen.protocol.events import (
    ContactsFound,
    Depart,
    Fetch,
    Input,
    Left,
    LinkBroken,
    LinkReady,
    LinkRoom,
    LinkSlow,
    LoadRecords,
    NameFree,
    NodeId,
    Output,
    PeerLost,
    PeerOffended,
    PeerRefused,
    PeerUnreached,
    Publish,
    Randomness,
    Received,
    Replay,
    Store,
    Subscribe,
    Time,
    Timer,
    TimerFired,
    Topic,
)
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import SpiderConfig
from omen.protocol.spidercast.messages import (
    TASKS,
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Heartbeat,
    Leave,
    Redirect,
    validate,
)
from omen.protocol.spidercast.neighbours import Connections, InterestView, Neighbour, Told
from omen.protocol.spidercast.task import MaintainTimer, Myself, Task, TaskContext

GREEDY = 0
MOST_RANDOM = 3


class HeartbeatTimer(Timer, frozen=True):
    """Heartbeats are due, or news for neighbours."""


SpiderTimer = MaintainTimer | HeartbeatTimer


HANDLERS: dict[type, Callable[[Task, NodeId, Any, Time], None]] = {
    Connect: lambda task, sender, message, now: task.on_connect(message),
    ConnectOk: lambda task, sender, message, now: task.on_connect_ok(message),
    Redirect: lambda task, sender, message, now: task.on_redirect(message),
    Disconnect: lambda task, sender, message, now: task.on_disconnect(sender, message),
    DisconnectOk: lambda task, sender, message, now: task.on_disconnect_ok(sender, message),
    Leave: lambda task, sender, message, now: task.on_leave(sender, message),
    Heartbeat: lambda task, sender, message, now: task.on_heartbeat(message, now),
}
"""Fig. 4. Not in the nodes, so that a world of them can be saved."""


class TaskStatus(msgspec.Struct, frozen=True):
    """One task at one moment. `most`: L^max; `cover`: how often the neighbours cover each topic.

    `preset`: how many neighbours it was handed at the start.
    """

    coverage: int
    target: int
    most: int
    cover: Mapping[Topic, int]
    neighbours: Mapping[NodeId, Neighbour]
    redirected: tuple[NodeId, ...]
    quarantined: tuple[NodeId, ...]
    preset: int

    @property
    def degree(self) -> int:
        return len(self.neighbours)

    @property
    def under_covered(self) -> list[Topic]:
        """The topics that are not covered K times."""
        return [topic for topic, times in self.cover.items() if times < self.coverage]


class SpiderStatus(msgspec.Struct, frozen=True):
    """One node at one moment: all that the outside sees of it. `waiting`: a node may be asked again when its quarantine
    is over. `refused`: messages dropped by validation, by reason.
    """

    config: SpiderConfig
    ref: Ref
    topics: tuple[Topic, ...]
    stopped: bool
    busy: bool
    waiting: bool
    tasks: tuple[TaskStatus, ...]
    refused: Mapping[str, int]

    def neighbours(self) -> list[NodeId]:
        """The neighbours of either task."""
        return sorted({node for task in self.tasks for node in task.neighbours})

    @property
    def led_topics(self) -> frozenset[Topic]:
        """None: there is no audit, and no piece has a leader."""
        return frozenset()


class SpiderNode:
    """The core of one node. Its links are the union of the neighbours of both tasks.

    Paper: Chockler, Melamed, Tock, Vitenberg, SpiderCast (DEBS 2007). Guarantee: none; topics are connected with high
    probability where interests are not too much alike (K_r = 0) or each topic is covered at random as well. Cost: a
    few messages per link; a choice costs the subscribers of the topics still uncovered. Deviations: see `task`, and
    `_adapt`. Messages that make no sense are dropped and counted.
    """

    def __init__(
        self,
        ref: Ref,
        topics: Iterable[Topic],
        config: SpiderConfig,
        randomness: Randomness,
        view: InterestView,
    ) -> None:
        self.config = config
        self.stopped = False
        self._me = Myself(ref, tuple(sorted(set(topics))))
        self._out = Outbox(ref.id)
        self._refused: Counter[str] = Counter()
        self._random = randomness
        self._beating = False
        self._beats = 0
        self._connections = Connections(self._out)
        context = TaskContext(self._me, config, view, randomness, self._out, self._connections)
        self._tasks = tuple(Task(number, context) for number in range(TASKS))
        self._preset = [0] * TASKS
        self._announced: list[Told] = [task.state for task in self._tasks]

    @property
    def ref(self) -> Ref:
        return self._me.ref

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics this node wants."""
        return self._me.interest

    @property
    def changes(self) -> int:
        """How often its neighbours have changed, or what is known of them."""
        return self._connections.changes

    def status(self) -> SpiderStatus:
        """The node as it is now."""
        return SpiderStatus(
            config=self.config,
            ref=self.ref,
            topics=self.topics,
            stopped=self.stopped,
            busy=self.is_busy,
            waiting=self.is_waiting,
            tasks=tuple(map(self._task_status, self._tasks)),
            refused=dict(self._refused),
        )

    def _task_status(self, task: Task) -> TaskStatus:
        neighbours = task.neighbours
        return TaskStatus(
            coverage=neighbours.times,
            target=task.target,
            most=neighbours.most,
            cover=dict(neighbours.cover),
            neighbours={node: copy(known) for node, known in neighbours.known.items()},
            redirected=tuple(task.redirected),
            quarantined=tuple(task.quarantined),
            preset=self._preset[task.number],
        )

    def preset(self, neighbours: Iterable[tuple[Ref, int, Sequence[Topic]]]) -> None:
        """Begin with these neighbours: of each its reference, its degree and its interest.

        They are the greedy task's, or the random one's where only that one runs: a task that does not run would keep
        them for ever.
        """
        task = next((task for task in self._tasks if task.neighbours.times), self._tasks[GREEDY])
        for ref, degree, interest in neighbours:
            task.neighbours.add(ref, degree, degree, interest, (0, 0, self._me.version))
            self._connections.hold(task.number, ref)
        self._preset[task.number] = task.degree

    def neighbours(self) -> list[NodeId]:
        """The neighbours of either task."""
        return self._connections.nodes()

    def has_neighbour(self, node: NodeId) -> bool:
        return node in self._connections

    def drop_link(self, node: NodeId) -> None:
        """A fault, for simulations: this end loses a neighbour without a word.

        The loop of the paper, which always runs, would see it; ours is woken.
        """
        for task in self._tasks:
            task.lose(node, None)

    @property
    def is_busy(self) -> bool:
        """Whether this node is about to do something. Looking again whether a node has joined is not counted."""
        return (self._beating and not self.config.keep_alive) or any(
            not (task.idle or task.hungry) for task in self._tasks
        )

    @property
    def is_waiting(self) -> bool:
        """Whether a node may be asked again when its quarantine is over."""
        return any(task.hungry and task.quarantined.keys() - task.neighbours.known.keys() for task in self._tasks)

    def start(self, now: Time) -> Sequence[Output]:
        """Begin the loops at a random time of the first interval."""
        for task in self._tasks:
            if task.neighbours.times:
                task.sleep(self._random.randrange(self.config.connect_timeout))
        return self._conclude()

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        """Take in one input; everything that follows from it comes back."""
        if self.stopped:
            return []
        match event:
            case Received(sender, message):
                self._receive(sender, message, now)
            case TimerFired(timer):
                self._on_timer(timer, now)
            case PeerLost(peer, incarnation):
                self._lose(peer, incarnation, now)
            case PeerRefused(peer):
                self._lose(peer, None, now)
            case Subscribe(added, dropped):
                self._resubscribe(added, dropped)
            case Depart():
                self._depart()
                return self._out.take()
            case Publish() | Replay() | LinkBroken() | LinkSlow() | LinkReady() | LinkRoom():
                pass  # it makes overlays, and carries no publications
            case ContactsFound() | NameFree() | Store() | Fetch() | LoadRecords() | PeerOffended() | PeerUnreached():
                pass  # it has no ring, and holds nobody to account
            case _:
                assert_never(event)
        return self._conclude()

    def _receive(self, sender: NodeId, message: Any, now: Time) -> None:
        """Validate a message, then hand it to the task that is meant."""
        message, complaint = validate(self._me.ref.id, sender, message)
        if complaint is not None:
            self._refused[complaint] += 1
            return
        HANDLERS[type(message)](self._tasks[message.task], sender, message, now)

    def _on_timer(self, timer: Timer, now: Time) -> None:
        match cast(SpiderTimer, timer):
            case MaintainTimer(number):
                self._tasks[number].maintain(now)
            case HeartbeatTimer():
                self._beat(now)
            case unknown:
                assert_never(unknown)

    def _lose(self, peer: NodeId, incarnation: int | None, now: Time) -> None:
        """A neighbour has failed: no task asks it for a while. Other nodes are for the membership to strike out."""
        lost = [task for task in self._tasks if task.lose(peer, incarnation)]
        for task in self._tasks if lost else ():
            task.shun(peer, now)

    def _conclude(self) -> Sequence[Output]:
        if self.config.adaptive:
            self._adapt()
        if not self._beating and (self.config.keep_alive or self._has_news()):
            self._beating = True
            self._out.set_timer(HeartbeatTimer(), self.config.heartbeat_period)
        return self._out.take()

    def _has_news(self) -> bool:
        one, other = self._tasks
        return one.state != self._announced[0] or other.state != self._announced[1]

    def _beat(self, now: Time) -> None:
        """Tell each neighbour what it does not know; now and then everything to all, as a sign of life."""
        self._beating = False
        self._beats += 1
        alive = bool(self.config.keep_alive) and self._beats % self.config.keep_alive == 0
        for task in self._tasks:
            if self.config.silence:
                task.lose_silent(now)
            state = task.state
            self._announced[task.number] = state
            for neighbour in task.neighbours.known.values():
                if alive or neighbour.told != state:
                    news = self._me.interest if neighbour.told[2] != self._me.version else None
                    neighbour.told = state
                    self._out.send(neighbour.ref, Heartbeat(self._me.ref, task.number, state[0], state[1], news))

    def _adapt(self) -> None:
        """3.3.1: K_r rises from 0 where K_g links cover everything, and on while links are fewer than topics.

        "After achieving coverage": a node with a topic that fewer than K others want achieves it never, and adapts
        never.
        """
        greedy, random = self._tasks
        times = random.neighbours.times
        if greedy.neighbours.under_covered or random.neighbours.under_covered:
            return
        few = greedy.degree == greedy.neighbours.times if times == 0 else len(self._connections) < len(self.topics)
        if few and times <= MOST_RANDOM and self.topics:
            random.want(times + 1)

    def _resubscribe(self, added: Iterable[Topic], dropped: Iterable[Topic]) -> None:
        """Neighbours hear of it with the next heartbeat; its driver tells the membership service (2.4)."""
        self._me.interest = tuple(sorted({*self._me.interest, *added} - {*dropped}))
        self._me.version += 1
        for task in self._tasks:
            task.want(task.neighbours.times)

    def _depart(self) -> None:
        """An orderly leave (2.4)."""
        for task in self._tasks:
            for neighbour in task.neighbours.known.values():
                self._out.send(neighbour.ref, Leave(task.number, self._me.ref.incarnation))
        self.stopped = True
        self._out.notify(Left())
