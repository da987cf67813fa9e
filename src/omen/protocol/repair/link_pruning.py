"""Taking redundant links down: never unless, in every topic the two ends share, another way is verified and kept.

Not in the paper, which accepts redundant links (omen 3.3): a repair sees only the surroundings of its shadow set, and
joins pieces that are connected further off. With each finished repair the coordinator names a few links inside the
shadow set that either end could do without as far as it sees (`PruneHint`). One end sends probes from node to node
through the topics the two share; where one arrives, a trail goes back the way it came, and the nodes that pass it on
keep those links for a while. With a trail for every topic both ends stop counting on the link, and only then is it
taken down.

Nothing else may count on the link meanwhile. A link that a trail keeps is not taken down. A node that told a
coordinator of its links (`ShadowReply`) lets none go for a while, unless it is for that coordinator, whose repair is
done; and a link that fades is in no answer. So of two removals that lean on each other both give up, and a repair
under way never loses a link that it saw. Cost: a probe visits each subscriber of the shared topics within HOPS links
at most once a topic.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, LinkPruned, NodeId, Time, Timer, TimerHandlers, Topic
from omen.protocol.messages.overlay import (
    PathProbe,
    PathReply,
    PruneDone,
    PruneHint,
    PruneReply,
    PruneRequest,
    Ref,
    ShadowQuery,
)
from omen.protocol.repair.links import Links
from omen.protocol.repair.path_probes import HOPS, PassingProbes
from omen.protocol.repair.requests import Requests

WAITING_AT_MOST = 8
REMEMBERED_AT_MOST = 256

NONCE_BITS = 16

Counted = tuple[NodeId, int, int]
"""A question of a coordinator: which node, which incarnation, which attempt."""


class Trial(msgspec.Struct):
    """A link this node tries to do without. `missing`: the topics in which no way round is known yet."""

    target: Ref
    nonce: int
    counted: Counted
    asker: Ref
    topics: frozenset[Topic]
    deadline: Time
    missing: set[Topic] = msgspec.field(default_factory=set)
    yielding: bool = False


class TrialTimer(Timer, frozen=True):
    """A trial has had its time."""

    nonce: int


class FadingTimer(Timer, frozen=True):
    """The far end was to say by now what became of the link."""

    node: NodeId


class LinkPruning:
    """`trial`: the one under way."""

    def __init__(self, context: NodeContext, links: Links, requests: Requests) -> None:
        config = context.config
        self._peer_table = context.peer_table
        self._out = context.out
        self._clock = context.clock
        self._links = links
        self._requests = requests
        self._patience = config.answer_timeout * config.attempts
        self._repeat = config.answer_timeout
        self._memory = config.tombstone_life
        self.trial: Trial | None = None
        self.waiting: list[PruneHint] = []
        self.yielded: dict[NodeId, int] = {}
        self._counted: dict[Counted, Time] = {}
        self._kept: dict[NodeId, Time] = {}
        self._needed: dict[NodeId, Time] = {}
        self._passing = PassingProbes(self._patience)
        self._pruned: dict[NodeId, int] = {}
        self._connectivity = config.connectivity
        self._all_kept: Time = 0
        self._lasting: dict[NodeId, None] = {}
        # A probe is told from those of the node's former incarnations, for which others may still remember a way.
        self._nonce = context.peer_table.ref.incarnation << NONCE_BITS

    def handlers(self) -> Handlers:
        return {
            PruneHint: self.on_hint,
            PathProbe: self.on_path_probe,
            PathReply: self.on_path_reply,
            PruneRequest: self.on_prune_request,
            PruneReply: self.on_prune_reply,
            PruneDone: self.on_prune_done,
        }

    def timers(self) -> TimerHandlers:
        return {TrialTimer: self.on_trial_timer, FadingTimer: self.on_fading_timer}

    @property
    def is_busy(self) -> bool:
        return self.on_hand > 0

    @property
    def on_hand(self) -> int:
        """How many links are on trial here, or about to be."""
        return len(self.waiting) + len(self.yielded) + (self.trial is not None)

    @property
    def passing_count(self) -> int:
        return len(self._passing)

    def note_reply(self, ask: ShadowQuery) -> None:
        """A coordinator counts on the links it was told of until its repair is done."""
        now = self._clock.now
        self._counted = {one: until for one, until in self._counted.items() if until > now}
        self._counted[_counted(ask.asker, ask.attempt)] = now + 4 * self._patience

    def prunable(self) -> tuple[NodeId, ...]:
        """The neighbours this node might do without: in each topic shared with one, another neighbour has it too."""
        now = self._clock.now
        shared = {node: self._shared(node) for node in self._links.up()}
        times: dict[Topic, int] = {}
        for topics in shared.values():
            for topic in topics:
                times[topic] = times.get(topic, 0) + 1
        return tuple(
            node
            for node, topics in shared.items()
            if self._needed.get(node, 0) <= now and not self._is_kept(node) and all(times[t] > 1 for t in topics)
        )

    def count_on_all(self, until: Time) -> None:
        """A node looks for ways round itself, and was told of the links here: none of them goes for a while."""
        self._all_kept = max(self._all_kept, until)

    def keep_lasting(self, node: NodeId) -> None:
        """This link is a way round a node: it is not pruned."""
        if len(self._lasting) >= REMEMBERED_AT_MOST:  # those that are no link any more go first
            self._lasting = {one: None for one in self._lasting if one in self._links.links}
        if len(self._lasting) >= REMEMBERED_AT_MOST and node not in self._lasting:
            del self._lasting[next(iter(self._lasting))]
        self._lasting[node] = None

    def on_hint(self, _: NodeId, message: PruneHint) -> None:
        if self.trial is None:
            self._begin(message)
        elif len(self.waiting) < WAITING_AT_MOST:
            self.waiting.append(message)

    def _begin(self, message: PruneHint) -> None:
        counted = _counted(message.asker, message.attempt)
        if not self._may_go(message.other, counted):
            self._next()
            return
        self._nonce += 1
        link = self._links.links[message.other]
        topics = self._shared(message.other)
        deadline = self._clock.now + 2 * self._patience
        self.trial = Trial(link.ref, self._nonce, counted, message.asker, topics, deadline, set(topics))
        if not topics:
            self._ask_to_yield(self.trial)
            return
        self._out.set_timer(TrialTimer(self._nonce), self._patience)
        for node in self._links.up():
            carried = topics & self._links.count_on(node) if node != message.other else ()
            if carried:
                probe = PathProbe(self._peer_table.id, message.other, self._nonce, HOPS, tuple(sorted(carried)))
                self._out.send(self._links.links[node].ref, probe)

    def _shared(self, node: NodeId) -> frozenset[Topic]:
        return self._peer_table.topics_of(self._peer_table.id) & self._peer_table.topics_of(node)

    def _may_go(self, node: NodeId, counted: Counted) -> bool:
        """Whether no repair counts on this link, as far as this end knows."""
        now = self._clock.now
        others = any(until > now for one, until in self._counted.items() if not _is_done(one, counted))
        return self._links.is_up(node) and not others and not self._is_kept(node) and not self._requests.departing

    def _is_kept(self, node: NodeId) -> bool:
        if self._connectivity > 1 or self._all_kept > self._clock.now or node in self._lasting:
            return True
        return self._kept.get(node, 0) > self._clock.now

    def on_path_probe(self, sender: NodeId, message: PathProbe) -> None:
        """Pass it on in the topics it comes in for the first time; the target sends it back."""
        if message.origin == self._peer_table.id or self._requests.departing or not self._links.is_up(sender):
            return
        mine = self._peer_table.topics_of(self._peer_table.id)
        fresh = self._passing.take(sender, message, mine, self._clock.now)
        if not fresh:
            return
        if message.target == self._peer_table.id:
            if self._keep((sender,)):
                trail = PathReply(message.origin, message.target, message.nonce, tuple(fresh))
                self._out.send(self._links.links[sender].ref, trail)
        elif message.hops > 0:
            self._pass_on(sender, message, fresh)

    def _pass_on(self, sender: NodeId, message: PathProbe, fresh: Iterable[Topic]) -> None:
        onward = self._links.up()
        if message.target in onward:
            onward = [message.target]
        for node in onward:
            if node in (sender, message.origin):
                continue
            has = self._links.count_on(node)
            carried = tuple(topic for topic in fresh if topic in has)
            if carried:
                probe = PathProbe(message.origin, message.target, message.nonce, min(message.hops, HOPS) - 1, carried)
                self._out.send(self._links.links[node].ref, probe)

    def _keep(self, nodes: Iterable[NodeId]) -> bool:
        """Keep these links for a while, if all are there to be kept."""
        nodes = tuple(nodes)
        if not all(self._links.is_up(node) for node in nodes):
            return False
        now = self._clock.now
        self._kept = {node: until for node, until in self._kept.items() if until > now}
        self._kept.update(dict.fromkeys(nodes, now + 4 * self._patience))
        return True

    def on_path_reply(self, sender: NodeId, message: PathReply) -> None:
        """The way is there: keep both its links here, and pass the trail back."""
        if message.origin == self._peer_table.id:
            self._on_way_round(sender, message)
            return
        if self._requests.departing:
            return
        mine = self._peer_table.topics_of(self._peer_table.id)
        for node, topics in self._passing.take_back(message, mine).items():
            if self._keep((sender, node)):
                self._passing.end(message, topics)
                trail = PathReply(message.origin, message.target, message.nonce, tuple(topics))
                self._out.send(self._links.links[node].ref, trail)

    def _on_way_round(self, sender: NodeId, message: PathReply) -> None:
        trial = self.trial
        if trial is None or trial.nonce != message.nonce or trial.yielding or not self._keep((sender,)):
            return
        trial.missing.difference_update(message.topics)
        if not trial.missing:
            self._ask_to_yield(trial)

    def _ask_to_yield(self, trial: Trial) -> None:
        """A way round in every topic: let the link fade at this end, and ask the other."""
        node = trial.target.id
        if not self._may_go(node, trial.counted) or self._shared(node) != trial.topics:
            self._end()
            return
        trial.yielding = True
        self._links.fade(node)
        self._send_yield(trial)

    def _send_yield(self, trial: Trial) -> None:
        known = self._peer_table.get(trial.target.id)
        yours = known.digest.topics_version if known is not None else 0
        mine = self._peer_table.me.digest.topics_version
        _, _, attempt = trial.counted
        self._out.send(trial.target, PruneRequest(trial.nonce, trial.asker, attempt, mine, yours))
        self._out.set_timer(TrialTimer(trial.nonce), self._repeat)

    def on_prune_request(self, sender: NodeId, message: PruneRequest) -> None:
        link = self._links.links.get(sender)
        if link is None:
            return
        agreed = sender in self.yielded or self._may_go(sender, _counted(message.asker, message.attempt))
        agreed = agreed and self._same_versions(sender, message)
        if agreed:
            if sender not in self.yielded:
                self._links.fade(sender)
            self.yielded[sender] = message.nonce
            self._out.set_timer(FadingTimer(sender), self._repeat)
        elif sender in self.yielded:
            return
        self._out.send(link.ref, PruneReply(self._peer_table.ref, message.nonce, agreed))

    def _same_versions(self, sender: NodeId, message: PruneRequest) -> bool:
        known = self._peer_table.get(sender)
        mine = self._peer_table.me.digest.topics_version
        return known is not None and (known.digest.topics_version, mine) == (message.mine, message.yours)

    def on_prune_reply(self, sender: NodeId, message: PruneReply) -> None:
        """Both ends agree: take it down. What this end says is what counts; too late, and the link stays."""
        trial = self.trial
        if trial is not None and trial.yielding and (sender, message.nonce) == (trial.target.id, trial.nonce):
            in_time = self._clock.now <= trial.deadline and self._links.is_fading(sender)
            if message.agreed and in_time:
                self._links.drop(sender)
                self._remember_pruned(sender, trial.nonce)
                self._out.notify(LinkPruned(sender))
            elif not message.agreed:
                self._remember_needed(sender, self._patience)
            self._end()
        if message.agreed:
            self._out.send(message.me, PruneDone(message.nonce, kept=self._pruned.get(sender) != message.nonce))

    def _remember_pruned(self, node: NodeId, nonce: int) -> None:
        if len(self._pruned) >= REMEMBERED_AT_MOST:
            del self._pruned[next(iter(self._pruned))]
        self._pruned.pop(node, None)
        self._pruned[node] = nonce

    def on_prune_done(self, sender: NodeId, message: PruneDone) -> None:
        if self.yielded.get(sender) != message.nonce:
            return
        del self.yielded[sender]
        if message.kept:
            self._links.unfade(sender)
        elif self._links.is_fading(sender):
            self._links.drop(sender)

    def on_fading_timer(self, timer: FadingTimer) -> None:
        """Ask again what became of the link."""
        node = timer.node
        if not self._links.is_fading(node):
            self.yielded.pop(node, None)
        elif node in self.yielded:
            self._out.send(self._links.links[node].ref, PruneReply(self._peer_table.ref, self.yielded[node], True))
            self._out.set_timer(timer, self._repeat)

    def on_trial_timer(self, timer: TrialTimer) -> None:
        """No other path was found in time, or the far end did not answer."""
        trial = self.trial
        if trial is None or trial.nonce != timer.nonce:
            return
        if trial.yielding and self._clock.now < trial.deadline and self._links.is_fading(trial.target.id):
            self._send_yield(trial)
            return
        if not trial.yielding:
            self._remember_needed(trial.target.id, self._memory)
        self._end()

    def _remember_needed(self, node: NodeId, how_long: Time) -> None:
        """In some topic there is no other way, or the far end counts on the link: do not try again soon."""
        now = self._clock.now
        self._needed = {one: until for one, until in self._needed.items() if until > now}
        self._needed[node] = now + how_long

    def _end(self) -> None:
        """The trial is over; a link that was to go and is still there counts again."""
        trial, self.trial = self.trial, None
        if trial is not None and trial.yielding:
            self._links.unfade(trial.target.id)
        self._next()

    def _next(self) -> None:
        if self.waiting and self.trial is None:
            self._begin(self.waiting.pop(0))


def _is_done(one: Counted, finished: Counted) -> bool:
    """Whether a question was of a repair that is done: a coordinator has one at a time, and counts its questions up."""
    return one[:2] == finished[:2] and one[2] <= finished[2]


def _counted(asker: Ref, attempt: int) -> Counted:
    return asker.id, asker.incarnation, attempt
