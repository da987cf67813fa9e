"""One SpiderCast node: the two tasks, heartbeats, the adaptive K_r, and what a node does when it goes or changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from omen.protocol.context import Outbox
from omen.protocol.events import (
    Depart,
    Input,
    Left,
    NodeId,
    Output,
    PeerLost,
    Randomness,
    Received,
    Subscribe,
    Time,
    Timer,
    TimerFired,
    Topic,
)
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import SpiderConfig
from omen.protocol.spidercast.door import TASKS, take_in
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
from omen.protocol.spidercast.task import MaintainTimer, Myself, Task
from omen.protocol.spidercast.views import InterestView

GREEDY = 0


class HeartbeatTimer(Timer, frozen=True):
    """Heartbeats are due, or news for neighbours."""


MOST_RANDOM = 3
HANDLERS: dict[type, Callable[[Task, NodeId, Any, Time], None]] = {
    Connect: lambda task, sender, message, now: task.on_connect(message),
    ConnectOk: lambda task, sender, message, now: task.on_connect_ok(message),
    Redirect: lambda task, sender, message, now: task.on_redirect(message),
    Disconnect: lambda task, sender, message, now: task.on_disconnect(sender, message),
    DisconnectOk: lambda task, sender, message, now: task.on_disconnect_ok(sender, message.incarnation),
    Leave: lambda task, sender, message, now: task.on_leave(sender, message.incarnation),
    Heartbeat: lambda task, sender, message, now: task.on_heartbeat(message, now),
}
"""Fig. 4. Not in the nodes, so that a world of them can be saved."""


class SpiderNode:
    """The core of one node. Its links are the union of the neighbours of both tasks.

    Paper: Chockler, Melamed, Tock, Vitenberg, SpiderCast (DEBS 2007). Guarantee: none; topics are connected with high
    probability where interests are not too much alike (K_r = 0) or each topic is covered at random as well. Cost: a
    few messages a link; a choice costs the subscribers of the topics still uncovered. Deviations: see `task`, and
    `_adapt`. Messages that make no sense are dropped, and counted in `refused`.
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
        self.refused: Counter[str] = Counter()
        self._random = randomness
        self._beating = False
        self._beats = 0
        self._uses: dict[NodeId, int] = {}
        self.tasks = tuple(
            Task(number, self.me, config, view, randomness, self.out, self._note_link) for number in range(TASKS)
        )
        self._announced: list[Told] = [task.state for task in self.tasks]

    @property
    def ref(self) -> Ref:
        return self.me.ref

    def preset(self, neighbours: Iterable[tuple[Ref, int, Sequence[Topic]]]) -> None:
        """Begin with these neighbours: of each its reference, its degree and its interest.

        They are the greedy task's, or the random one's where only that one runs: a task that does not would keep them
        for ever.
        """
        task = next((task for task in self.tasks if task.neighbours.times), self.tasks[GREEDY])
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
                self._receive(sender, message, now)
            case TimerFired(MaintainTimer(number)):
                self.tasks[number].maintain(now)
            case TimerFired():
                self._beat(now)
            case PeerLost(peer, incarnation):
                self._lose(peer, incarnation, now)
            case Subscribe(added, dropped):
                self._resubscribe(added, dropped)
            case Depart():
                self._depart()
                return self.out.take()
        return self._conclude()

    def _receive(self, sender: NodeId, message: Any, now: Time) -> None:
        """Through the door, and to the task that is meant."""
        message, complaint = take_in(self.me.ref.id, sender, message, HANDLERS)
        if complaint is not None:
            self.refused[complaint] += 1
            return
        HANDLERS[type(message)](self.tasks[message.task], sender, message, now)

    def _lose(self, peer: NodeId, incarnation: int | None, now: Time) -> None:
        """A neighbour is gone: no task asks it for a while. Who is none is for the membership to strike out."""
        lost = [task for task in self.tasks if task.lose(peer, incarnation)]
        for task in self.tasks if lost else ():
            task.shun(peer, now)

    def _conclude(self) -> Sequence[Output]:
        if self.config.adaptive:
            self._adapt()
        if not self._beating and (self.config.keep_alive or self._has_news()):
            self._beating = True
            self.out.set_timer(HeartbeatTimer(), self.config.heartbeat_period)
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
        """3.3.1: K_r rises from 0 where K_g links cover everything, and on while links are fewer than topics.

        "After achieving coverage": a node with a topic that fewer than K others want achieves it never, and adapts
        never.
        """
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
        self.out.notify(Left())

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
