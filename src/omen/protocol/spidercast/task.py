"""One neighbour maintenance task (Figs. 2 to 5). A node runs two, each with neighbours of its own.

Where the figures cannot be followed as printed:

- Fig. 5 lines 5 and 14 take the cover of a topic from the candidates. Then everything with K candidates would count as
  covered before there is a single link. It must be the neighbours' cover, as in Fig. 3: `Neighbours.uncovered`.
- Fig. 5 line 8 would return a node that covers nothing where no candidate covers any uncovered topic. No node is
  returned then: a link that covers nothing brings no topic nearer to K.
- Fig. 4 line 9 sends <REDIRECT, m>, line 10 receives <REDIRECT, m, interest>, and the text has the sender of a REDIRECT
  asked next. We send and ask m; its interest comes with its CONNECT-OK. Where no node can be named, m is none.
- Fig. 3 line 9 has neighbours disconnect whose degree is above their target. Yet a covered node sets its target to its
  degree (Fig. 2 line 22), so hardly any node ever is. In the text q is known to be covered if q.target <= q.degree, and
  read so average degrees are those of Fig. 12 within a percent, otherwise five percent above. We follow the text; the
  figure with `part_above`. One that refuses, by silence, is not asked again until it tells of more neighbours than it
  had.
- A loop that found nothing to do is not run again until something has changed: it would find the same.
- Fig. 2 line 18 takes "some node" of those redirected to; we take the one with the lowest id, so that runs can be
  repeated. It is asked although it may be in quarantine: the redirect is newer. A REDIRECT that comes when all topics
  are covered is not kept (Fig. 4 line 11 keeps it), nor more of them than L^max.
- Fig. 4 line 21 answers every DISCONNECT. One from a node that is no neighbour gets no answer: the other side,
  if it counts a link, hears LEAVE upon its next heartbeat.
- Not in the figures: a heartbeat from a node that is no neighbour is answered with LEAVE, since a failure detector
  that lives on heartbeats would part the two as well. The quarantine is the one of the text; neighbours that were lost
  are in it too, and it holds no more than one period can bring: `quarantine_room`.
"""

from __future__ import annotations

import msgspec

from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Randomness, Time, Timer, Topic
from omen.protocol.messages.overlay import Ref
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
from omen.protocol.spidercast.neighbours import Connections, InterestView, Neighbour, Neighbours, Told

WORDS = 1 << 64
UNKNOWN = -1


class MaintainTimer(Timer, frozen=True):
    """A task looks at its neighbours again."""

    task: int


class Myself(msgspec.Struct):
    """What both tasks say of their node."""

    ref: Ref
    interest: tuple[Topic, ...]
    version: int = 1


class TaskContext(msgspec.Struct, frozen=True):
    """What both tasks of a node are made with."""

    me: Myself
    config: SpiderConfig
    view: InterestView
    random: Randomness
    out: Outbox
    connections: Connections


class Task:
    """The state of Fig. 1 and the routines of Figs. 2 to 4. `L` is `target`, `L^max` is `neighbours.most`."""

    def __init__(self, number: int, context: TaskContext) -> None:
        me, config = context.me, context.config
        self.number = number
        self.rule = config.tasks[number].rule
        self.neighbours = Neighbours(self._wanted(me, config), config.tasks[number].coverage)
        self.target = self.neighbours.most
        self.redirected: dict[NodeId, Ref] = {}
        self.quarantined: dict[NodeId, tuple[Time, int]] = {}
        self.idle = True
        self.hungry = False
        self._me = me
        self._config = config
        self._view = context.view
        self._random = context.random
        self._out = context.out
        self._connections = context.connections
        self._seen_version = UNKNOWN

    def _wanted(self, me: Myself, config: SpiderConfig) -> tuple[Topic, ...] | None:
        return None if config.tasks[self.number].counts_links else me.interest

    @property
    def degree(self) -> int:
        return len(self.neighbours)

    @property
    def room(self) -> bool:
        """Fig. 4 lines 2 and 13: fewer than L^max + Margin neighbours."""
        return len(self.neighbours) < self.neighbours.most + self._config.margin

    @property
    def quarantine_room(self) -> int:
        """Whom one period of quarantine can bring: one asked in each loop, and each neighbour lost."""
        asked = self._config.quarantine // max(self._config.connect_timeout, 1) + 1
        return asked + self.neighbours.most + self._config.margin

    @property
    def state(self) -> Told:
        """What heartbeats carry."""
        return len(self.neighbours), self.target, self._me.version

    def maintain(self, now: Time) -> None:
        """One iteration of MAINTAINNEIGHBORS (Fig. 2 lines 3-13)."""
        self.idle = True
        hungry, self.hungry = self.hungry, False
        if self.neighbours.times == 0:
            return
        self._end_quarantines(now)
        if hungry and self._seen_version == self._view.version and not self.redirected:
            self._go_hungry()
            return
        under_covered, gap, acted = self.neighbours.under_covered, 0, False
        if under_covered > 0:
            self.target = self.neighbours.most
            gap = self.target - len(self.neighbours)
            if gap > 0:
                acted = self.connect(now)
                self.hungry = not acted
        if under_covered == 0 or gap < 0:
            acted = self.disconnect()
        if acted:
            self.sleep(self._config.connect_timeout)
        elif self.hungry:
            self._go_hungry()

    def connect(self, now: Time) -> bool:
        """CONNECT (Fig. 2 lines 14-20): those redirected to come first. False: there is no node to ask."""
        chosen = self._next_redirected() or self._next_coverage_node(now)
        if chosen is None:
            return False
        self._quarantine(chosen.id, now)
        me = self._me
        self._out.send(chosen, Connect(me.ref, self.number, len(self.neighbours), self.target, me.interest))
        return True

    def disconnect(self) -> bool:
        """DISCONNECT (Fig. 2 lines 22-30): give up a neighbour if the degree is too high or nothing is lost."""
        self.redirected.clear()
        self.target = min(self.neighbours.most, len(self.neighbours))
        over = len(self.neighbours) - self.target
        chosen = self.disconnect_candidate()
        if chosen is None or (over == 0 and self.neighbours.under_covered_without(chosen.ref.id) > 0):
            return False
        chosen.asked = True
        self._out.send(chosen.ref, Disconnect(self.number, self._me.ref.incarnation))
        return True

    def disconnect_candidate(self) -> Neighbour | None:
        """DISCONNECTCANDIDATE (Fig. 3 lines 8-22): of those that have reached their target, the one missed least."""
        candidates: list[NodeId] = []
        fewest = len(self.neighbours.cover) + 1
        for node, neighbour in self.neighbours.known.items():
            if neighbour.above >= self._config.part_above and not neighbour.asked:
                missed = self.neighbours.under_covered_without(node)
                if missed < fewest:
                    candidates, fewest = [node], missed
                elif missed == fewest:
                    candidates.append(node)
        if not candidates:
            return None
        candidates.sort()
        return self.neighbours.known[candidates[self._random.randrange(len(candidates))]]

    def on_connect(self, message: Connect) -> None:
        """Fig. 4 lines 1-9."""
        known = self.neighbours.known.get(message.sender.id)
        if known is not None and known.ref.incarnation > message.sender.incarnation:
            return
        if known is not None or self.room:
            self._add_connection(message)
        else:
            self._out.send(message.sender, Redirect(self.number, self._redirection(message)))

    def on_redirect(self, message: Redirect) -> None:
        """Fig. 4 lines 10-11."""
        other = message.other
        if other is None or other.id == self._me.ref.id or not self.neighbours.under_covered:
            return
        if other.id in self.redirected or len(self.redirected) < self.neighbours.most:
            self.redirected[other.id] = other
            self.wake()

    def on_connect_ok(self, message: ConnectOk) -> None:
        """Fig. 4 lines 12-18."""
        sender = message.sender
        if sender.id in self.neighbours or self.room:
            told = (UNKNOWN, UNKNOWN, self.quarantined.get(sender.id, (0, UNKNOWN))[1])
            self._accept(sender, message.degree, message.target, message.interest, told)
        else:
            self._out.send(sender, Leave(self.number, self._me.ref.incarnation))

    def on_leave(self, sender: NodeId, message: Leave) -> None:
        """Fig. 4 lines 19-20."""
        self.lose(sender, message.incarnation)

    def on_disconnect(self, sender: NodeId, message: Disconnect) -> None:
        """Fig. 4 lines 21-26."""
        neighbour = self.neighbours.known.get(sender)
        if neighbour is None or neighbour.ref.incarnation != message.incarnation:
            return
        under_covered = self.neighbours.under_covered_without(sender)
        if len(self.neighbours) > self.target or under_covered == 0:
            self._remove_connection(sender)
            self._out.send(neighbour.ref, DisconnectOk(self.number, self._me.ref.incarnation))
            if under_covered == 0:
                self.target = len(self.neighbours)

    def on_disconnect_ok(self, sender: NodeId, message: DisconnectOk) -> None:
        """Fig. 4 lines 27-28."""
        self.lose(sender, message.incarnation)

    def on_heartbeat(self, message: Heartbeat, now: Time) -> None:
        """The degree, the target and now and then the interest of a neighbour (2.3)."""
        sender = message.sender
        neighbour = self.neighbours.known.get(sender.id)
        if neighbour is None or neighbour.ref.incarnation != sender.incarnation:
            if neighbour is None and self.quarantined.get(sender.id, (0, 0))[0] <= now:
                self._out.send(sender, Leave(self.number, self._me.ref.incarnation))
            return
        neighbour.silent = 0
        news = (message.degree, message.target) != (neighbour.degree, neighbour.target)
        if message.interest is not None:
            self.neighbours.add(sender, message.degree, message.target, message.interest, neighbour.told)
            self._connections.hold(self.number, sender)
        elif news:
            neighbour.asked = neighbour.asked and message.degree <= neighbour.degree
            neighbour.degree, neighbour.target = message.degree, message.target
        if news or message.interest is not None:
            self.wake()

    def lose(self, node: NodeId, incarnation: int | None) -> bool:
        """Fig. 4 lines 29-30: a neighbour has failed or left, in this incarnation or an earlier one."""
        neighbour = self.neighbours.known.get(node)
        if neighbour is None or (incarnation is not None and neighbour.ref.incarnation > incarnation):
            return False
        self._remove_connection(node)
        return True

    def lose_silent(self, now: Time) -> None:
        """Those that have not been heard for too long are suspected (2.4)."""
        for neighbour in list(self.neighbours.known.values()):
            neighbour.silent += 1
            if neighbour.silent > self._config.silence:
                self.shun(neighbour.ref.id, now)
                self._remove_connection(neighbour.ref.id)

    def shun(self, node: NodeId, now: Time) -> None:
        """Do not ask this one for a while; with K = 0 no node is asked anyway."""
        self.redirected.pop(node, None)
        if self.neighbours.times:
            self._end_quarantines(now)
            self._quarantine(node, now)

    def _quarantine(self, node: NodeId, now: Time) -> None:
        self.quarantined.pop(node, None)
        self.quarantined[node] = (now + self._config.quarantine, self._me.version)
        self._keep_in_bounds()

    def _keep_in_bounds(self) -> None:
        while len(self.quarantined) > self.quarantine_room:
            del self.quarantined[next(iter(self.quarantined))]  # the one that has been there longest

    def want(self, times: int) -> None:
        """The node's interest has changed, or its K. Redirections were for what it wanted before."""
        self.neighbours.want(self._me.interest, times)
        self.target = self.neighbours.most
        self.redirected.clear()
        self._keep_in_bounds()
        self._seen_version = UNKNOWN
        self.wake()

    def wake(self) -> None:
        """Something changed: look again when the loop would have."""
        if self.idle or self.hungry:
            self.hungry = False
            self.sleep(self._config.connect_timeout)

    def _add_connection(self, message: Connect) -> None:
        """ADDCONNECTION (Fig. 4 lines 31-33), and lines 4-5 of the handler."""
        target = self.target
        sender = message.sender
        told = (len(self.neighbours) + (sender.id not in self.neighbours), target, self._me.version)
        self._accept(sender, message.degree, message.target, message.interest, told)
        ok = ConnectOk(self._me.ref, self.number, told[0], target, self._me.interest)
        self._out.send(sender, ok)

    def _accept(self, ref: Ref, degree: int, target: int, interest: tuple[Topic, ...], told: Told) -> None:
        self.neighbours.add(ref, degree, target, interest, told)
        if self.target < self.neighbours.most and len(self.neighbours) < self.target + self._config.margin:
            self.target += 1
        if not self.neighbours.under_covered:
            self.redirected.clear()
        self._connections.hold(self.number, ref)
        self.wake()

    def _remove_connection(self, node: NodeId) -> None:
        """REMOVECONNECTION (Fig. 4 lines 34-38)."""
        self.neighbours.remove(node)
        self._connections.release(self.number, node)
        if len(self.neighbours) < self.target or self.neighbours.under_covered > 0:
            self.hungry = False
            self.sleep(0)
        else:
            self.wake()

    def _redirection(self, message: Connect) -> Ref | None:
        """Fig. 4 lines 7-8: the neighbour that has room and shares most with the asker."""
        wanted = set(message.interest)
        best, candidates = -1, []
        for node, neighbour in self.neighbours.known.items():
            if node != message.sender.id and neighbour.degree < neighbour.target + self._config.margin:
                shared = len(neighbour.interest & wanted)
                if shared > best:
                    best, candidates = shared, [node]
                elif shared == best:
                    candidates.append(node)
        if not candidates:
            return None
        candidates.sort()
        return self.neighbours.known[candidates[self._random.randrange(len(candidates))]].ref

    def _next_redirected(self) -> Ref | None:
        """Fig. 2 lines 18-19."""
        while self.redirected:
            other = self.redirected.pop(min(self.redirected))
            if other.id not in self.neighbours:
                return other
        return None

    def _next_coverage_node(self, now: Time) -> Ref | None:
        """NEXTCOVERAGENODE (Fig. 2 line 16), by the rule of this task."""
        self._seen_version = self._view.version
        if self.rule == "similar":
            topics = self._me.interest
        elif self.rule == "anybody":
            topics = ()
        else:
            topics = tuple(self.neighbours.uncovered())
        excluded = [*self.neighbours.known, *self.quarantined]
        return self._view.choose(self.rule, topics, excluded, self._random.randrange(WORDS))

    def _end_quarantines(self, now: Time) -> None:
        """Let those go whose quarantine is over: a task that found no node looks again then."""
        over = [node for node, (until, _) in self.quarantined.items() if until <= now]
        for node in over:
            del self.quarantined[node]
        if over:
            self._seen_version = UNKNOWN

    def _go_hungry(self) -> None:
        """No node fits. One may join, or be asked again: look when the quarantines of now have ended."""
        self.hungry = True
        self.sleep(self._config.quarantine)

    def sleep(self, delay: Time) -> None:
        """The next iteration comes after this."""
        self.idle = False
        self._out.set_timer(MaintainTimer(self.number), delay)
