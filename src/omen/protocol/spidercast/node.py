"""One SpiderCast node: the two tasks, heartbeats, the adaptive K_r, and what a node does when it goes or changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from omen.protocol.events import (
    Depart,
    Input,
    NodeId,
    Output,
    PeerLost,
    Randomness,
    Received,
    Subscribe,
    Time,
    TimerFired,
    Topic,
)
from omen.protocol.messages import Ref
from omen.protocol.outbox import Outbox
from omen.protocol.spidercast.config import SpiderConfig
from omen.protocol.spidercast.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Heartbeat,
    Leave,
    Redirect,
)
from omen.protocol.spidercast.neighbours import Told
from omen.protocol.spidercast.task import Myself, Task
from omen.protocol.spidercast.views import InterestView

GREEDY, RANDOM = 0, 1
MOST_RANDOM = 3


class SpiderNode:
    """The core of one node. Its links are the union of the neighbours of both tasks.

    Paper: Chockler, Melamed, Tock, Vitenberg, SpiderCast (DEBS 2007). Guarantee: none; topics are connected with high
    probability where interests are not too much alike (K_r = 0) or each topic is covered at random as well. Cost: a
    few messages a link; a choice costs the subscribers of the topics still uncovered. Deviations: see `task`.
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
        self.me = Myself(ref, tuple(sorted(set(topics))))
        self.out = Outbox(ref.id)
        self.stopped = False
        self.changes = 0
        self._random = randomness
        self._beating = False
        self._beats = 0
        self._uses: dict[NodeId, int] = {}
        self.tasks = tuple(
            Task(number, self.me, config, view, randomness, self.out, self._note_link) for number in (GREEDY, RANDOM)
        )
        self._announced: list[Told] = [task.state for task in self.tasks]
        self._handlers: dict[type, Callable[[NodeId, Any, Time], None]] = {
            Connect: lambda _, message, now: self.tasks[message.task].on_connect(message),
            ConnectOk: lambda _, message, now: self.tasks[message.task].on_connect_ok(message),
            Redirect: lambda _, message, now: self.tasks[message.task].on_redirect(message),
            Disconnect: lambda sender, message, now: self.tasks[message.task].on_disconnect(sender, message),
            DisconnectOk: lambda sender, message, now: self.tasks[message.task].on_disconnect_ok(
                sender, message.incarnation
            ),
            Leave: lambda sender, message, now: self.tasks[message.task].on_leave(sender, message.incarnation),
            Heartbeat: lambda _, message, now: self.tasks[message.task].on_heartbeat(message, now),
        }

    @property
    def ref(self) -> Ref:
        return self.me.ref

    def preset(self, neighbours: Iterable[tuple[Ref, int, Sequence[Topic]]]) -> None:
        """Begin with these greedy neighbours: of each its reference, its degree and its interest."""
        task = self.tasks[GREEDY]
        for ref, degree, interest in neighbours:
            task.neighbours.add(ref, degree, degree, interest, (0, 0, self.me.version))
            self._note_link(ref.id, ref)

    def neighbours(self) -> list[NodeId]:
        """Whom this node counts as neighbours, of either task."""
        return sorted(self._uses)

    def has_neighbour(self, node: NodeId) -> bool:
        return node in self._uses

    @property
    def is_busy(self) -> bool:
        """Whether this node is about to do something. Looking again whether somebody has come is not counted."""
        return (self._beating and not self.config.keep_alive) or any(
            not (task.idle or task.hungry) for task in self.tasks
        )

    @property
    def is_waiting(self) -> bool:
        """Whether somebody may be asked again when a quarantine is over."""
        return any(task.hungry and task.quarantined.keys() - task.neighbours.known.keys() for task in self.tasks)

    def start(self, now: Time) -> Sequence[Output]:
        """Begin the loops at a random time of the first interval."""
        for task in self.tasks:
            if task.neighbours.times:
                task.sleep(self._random.randrange(self.config.connect_timeout))
        return self._conclude()

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        """Take in one input; everything that follows from it comes back."""
        if self.stopped:
            return []
        match event:
            case Received(sender, message):
                handler = self._handlers.get(type(message))
                if handler is not None:
                    handler(sender, message, now)
            case TimerFired(key):
                if key == "heartbeat":
                    self._beat(now)
                else:
                    self.tasks[key[1]].maintain(now)  # type: ignore[index]
            case PeerLost(peer, incarnation):
                for task in self.tasks:
                    task.shun(peer, now)
                    task.lose(peer, incarnation)
            case Subscribe(added, dropped):
                self._resubscribe(added, dropped)
            case Depart():
                self._depart()
                return self.out.take()
        return self._conclude()

    def _conclude(self) -> Sequence[Output]:
        if self.config.adaptive:
            self._adapt()
        if not self._beating and (self.config.keep_alive or self._has_news()):
            self._beating = True
            self.out.set_timer("heartbeat", self.config.heartbeat_period)
        return self.out.take()

    def _has_news(self) -> bool:
        one, other = self.tasks
        return one.state != self._announced[0] or other.state != self._announced[1]

    def _beat(self, now: Time) -> None:
        """Tell each neighbour what it does not know; now and then everything to all, as a sign of life."""
        self._beating = False
        self._beats += 1
        alive = bool(self.config.keep_alive) and self._beats % self.config.keep_alive == 0
        for task in self.tasks:
            if self.config.silence:
                task.lose_silent(now)
            state = task.state
            self._announced[task.number] = state
            for neighbour in task.neighbours.known.values():
                if alive or neighbour.told != state:
                    news = self.me.interest if neighbour.told[2] != self.me.version else None
                    neighbour.told = state
                    self.out.send(neighbour.ref, Heartbeat(self.me.ref, task.number, state[0], state[1], news))

    def _adapt(self) -> None:
        """3.3.1: K_r rises from 0 where K_g links cover everything, and on while links are fewer than topics."""
        greedy, random = self.tasks
        times = random.neighbours.times
        if greedy.neighbours.under_covered or random.neighbours.under_covered:
            return
        few = greedy.degree == greedy.neighbours.times if times == 0 else len(self._uses) < len(self.me.interest)
        if few and times <= MOST_RANDOM and self.me.interest:
            random.want(times + 1)

    def _resubscribe(self, added: Iterable[Topic], dropped: Iterable[Topic]) -> None:
        """Neighbours hear of it with the next heartbeat; the membership service is told by whoever runs it (2.4)."""
        self.me.interest = tuple(sorted({*self.me.interest, *added} - {*dropped}))
        self.me.version += 1
        for task in self.tasks:
            task.want(task.neighbours.times)

    def _depart(self) -> None:
        """An orderly leave (2.4)."""
        for task in self.tasks:
            for neighbour in task.neighbours.known.values():
                self.out.send(neighbour.ref, Leave(task.number, self.me.ref.incarnation))
        self.stopped = True
        self.out.notify("left")

    def _note_link(self, node: NodeId, ref: Ref | None) -> None:
        """Keep a connection to whoever is a neighbour of either task."""
        self.changes += 1
        uses = sum(node in task.neighbours for task in self.tasks)
        if uses and node not in self._uses and ref is not None:
            self.out.connect(ref)
        elif not uses and node in self._uses:
            self.out.disconnect(node)
            del self._uses[node]
        if uses:
            self._uses[node] = uses
