"""What must hold in every simulated run, watched while it goes on. A breach is recorded with its time and the seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omen.protocol.config import Config
from omen.protocol.events import (
    SECOND,
    Left,
    NodeId,
    PeerDeclaredFailed,
    Rejoined,
    RepairFinished,
    RequestHandled,
    Time,
    Topic,
)
from omen.protocol.membership.ring import SPARE
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, Ref
from omen.protocol.node import OmenNode
from omen.protocol.repair.event_queue import HANDLED_AT_MOST
from omen.protocol.repair.path_probes import PROBES_AT_MOST
from omen.protocol.repair.views import SEEN_AT_MOST
from omen.protocol.status import NodeSizes
from omen.sim.cut_pairs import cut_pairs
from omen.sim.population import Population
from omen.sim.promise import Promise
from omen.sim.watch import (
    AGREED,
    BOUNDED,
    CONNECTED,
    COVERED,
    DISPENSABLE,
    HANDLED,
    JOINED,
    Bounds,
    Watch,
    listed,
)
from omen.sim.world import Heard

SIZES = {
    "backup_sets": "shadows",
    "sample": "peer sample",
    "ring": "ring",
    "handled": "handled events",
    "known": "peer table",
    "seen_digests": "seen digests",
    "path_probes": "probes",
    "queued": "execution queue",
    "standby": "standby list",
    "pending": "pending events",
    "loss_reports": "reports",
    "requests": "requests",
    "lookups": "lookups",
    "proposals": "proposals",
    "half_made_links": "half-made links",
    "links_on_trial": "links on trial",
}
"""What a node keeps, in the order of `NodeSizes`, and what it is called in a complaint."""
FIRST_OF_WORK = NodeSizes._fields.index("queued")
WORK = tuple(SIZES.values())[FIRST_OF_WORK:]
"""Of these none may be left long after the last event."""


class Monitors(Watch):
    """Told of each churn event; `check` looks at all nodes."""

    population: Population

    def __init__(self, population: Population, bounds: Bounds | None = None) -> None:
        super().__init__(population, bounds)
        self.false_losses = 0
        self._looks = 0
        self._patience = _time_to_notice(population)
        self._expected: dict[EventId, Time] = {}
        self._handled: set[EventId] = set()
        self._knowing: dict[EventId, set[tuple[NodeId, int]]] = {}
        self._promise = Promise(population)
        self._is_twofold = population.config.connectivity > 1
        self.cut_pairs = 0
        self._unexplained: set[Topic] = set()
        self._may_leave: set[NodeId] = set()
        self._promised = bool(self.bounds.handled)
        self._is_cut = False
        self._judged: tuple[list[object], bool] | None = None
        self._paired: tuple[object, set[tuple[NodeId, NodeId]]] | None = None
        self._sizes_at_most = _sizes_at_most(population.config, self.bounds)
        self._views_at: dict[NodeId, object] = {}
        self.world.listeners.append(self._hear)

    def note_burst(self) -> None:
        """Something was done to the world that may split topics: the clock for repairing them starts anew."""
        self.last_cause = self.world.now
        self._note_consequence()

    def note_scramble(self) -> None:
        """Links are lost without any event: nothing is promised from now on but what the audit brings about."""
        self.note_burst()
        self._promised = False

    def note_cut(self, sides: Sequence[Sequence[NodeId]]) -> None:
        """The network is cut, or (without sides) whole again. Where even the largest side loses more than L nodes, and
        they are declared failed, nothing is promised from then on but what the audit brings about.
        """
        self.note_burst()
        members, apart = set(self.population.members()), set[NodeId]().union(*sides)
        sizes = [len(members & set(side)) for side in sides] + [len(members - apart)]
        self._is_cut = bool(sides) and len(members) - max(sizes) > self.population.config.resilience

    def _note_consequence(self) -> None:
        """A node has declared a live peer failed, or has rejoined: likewise, but not for ever."""
        self.last_event = self.world.now
        self.connected_since = None

    def expect(self, event: EventId) -> None:
        """This event has to be handled."""
        self.note_burst()
        self._expect(event)
        if event.kind == EventKind.JOIN:
            self._promise.note_newcomer(event.node, event.incarnation)

    def expect_requests(self, node: NodeId) -> None:
        """So does everything that this node asks for now."""
        for event in tuple(self.population.cores[node].requests):
            self.expect(event)

    def _expect(self, event: EventId) -> None:
        if self.bounds.handled and event not in self._handled:
            self._expected[event] = self.world.now

    def note_end(self, node: NodeId, incarnation: int) -> None:
        """A node has crashed: its open requests end with it, and its loss is to be repaired if any node knew it."""
        self.note_burst()
        self._note_end(node, incarnation)

    def _note_end(self, node: NodeId, incarnation: int) -> None:
        self._promise.note_end(node, incarnation)
        for event in [event for event in self._expected if event.node == node and event.incarnation <= incarnation]:
            del self._expected[event]
        knowing = self._who_knows(node, incarnation)
        if knowing:
            event = EventId(node, incarnation, EventKind.LEAVE)
            self._expect(event)
            self._knowing[event] = knowing

    def check(self) -> None:
        """Look at the world as it is now; at what each node keeps, which changes slowly, every fifth time."""
        self._check_connected()
        self._check_handled()
        self._check_links()
        self._looks += 1
        if self._looks % 5 != 1:
            return
        if self._is_twofold:
            self._check_cut_pairs()
        for node in self.population.members():
            core = self.population.cores[node]
            self._check_sizes(core)
            self._check_views(core)

    def _has_split_topics(self) -> bool:
        """A quick look, and only where something has changed; which topics they are, the judge says."""
        stamp = self.population.stamp()
        if self._judged is None or self._judged[0] != stamp:
            self._judged = (stamp, self.population.has_split_topics())
        return self._judged[1]

    @property
    def is_settled(self) -> bool:
        """All topics connected, everything handled, every link agreed on, and no node has anything left to do."""
        cores = (self.population.cores[node] for node in self.population.members())
        return (
            self.connected_since is not None
            and not self._expected
            and not self._one_sided
            and not (self._is_twofold and (self.cut_pairs or not self._looks))
            and not any(core.is_busy or core.open_lookups for core in cores)
        )

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, RepairFinished):
            self._note_handled(heard.events)
            self._promise.note_handled(heard.events, heard.heard)
            event = heard.event
            who = f"{self._name(node)} has handled the {event.kind} of {self._name(event.node)}"
            self._check_promise(who, heard.events)
        elif isinstance(heard, RequestHandled):
            self._note_handled((heard.event,))
            self._note_request_handled(node, heard.event)
        elif isinstance(heard, Left):
            self._note_departure(node)
        elif isinstance(heard, Rejoined):
            self._note_rejoin(node, heard.incarnation)
        elif isinstance(heard, PeerDeclaredFailed):
            self._note_loss(heard.peer, node)

    def _note_request_handled(self, node: NodeId, event: EventId) -> None:
        """What a node has asked for is done: it leaves now, or has given its topics up."""
        if event.kind == EventKind.LEAVE:
            self._may_leave.add(node)
        elif event.kind == EventKind.DROP:
            self._check_promise(f"{self._name(node)} has given topics up")

    def _note_departure(self, node: NodeId) -> None:
        """A node has left: whatever else it had asked for is void."""
        self.note_burst()
        for event in [event for event in self._expected if event.node == node and event.kind != "leave"]:
            del self._expected[event]
        if node in self._may_leave:
            self._check_promise(f"{self._name(node)} has left")
        else:
            self._promise.note_end(node, self.population.cores[node].ref.incarnation)

    def _note_rejoin(self, node: NodeId, incarnation: int) -> None:
        """A node that was declared failed rejoins: what its former incarnation asked for is void."""
        self.rejoins += 1
        self._note_consequence()
        self._note_end(node, incarnation - 1)
        self._expect(EventId(node, incarnation, EventKind.JOIN))
        self._promise.note_newcomer(node, incarnation)

    def _note_loss(self, ref: Ref, by: NodeId) -> None:
        """A live node is declared failed: that costs it links, for a while."""
        place = self.world.places.get(ref.id)
        if place is not None and place.alive and place.incarnation == ref.incarnation:
            self.false_losses += 1
            self._note_consequence()
            self._promise.note_declared(ref.id, ref.incarnation, by)
            self._promised &= not self._is_cut

    def _note_handled(self, events: Iterable[EventId]) -> None:
        for event in events:
            self._expected.pop(event, None)
            self._handled.add(event)

    def _who_knows(self, node: NodeId, incarnation: int) -> set[tuple[NodeId, int]]:
        """The live nodes, each in its incarnation, that have a link to this one or keep a backup set for it."""
        found = set()
        for other in self.population.members():
            core = self.population.cores[other]
            link = core.links().get(node)
            linked = link is not None and link.ref.incarnation == incarnation
            if linked or core.has_backups_for(node, incarnation):
                found.add((other, core.ref.incarnation))
        return found

    def _check_connected(self) -> None:
        now = self.world.now
        if not self._has_split_topics():
            if self.connected_since is None:
                self.connected_since = now
                self.restored.append(now - self.last_cause if self._was_split else 0)
                self._was_split = False
            return
        self._was_split = True
        if self.connected_since is not None:
            self.connected_since = None
            if self._promise.split_topics():  # else a loss that is still to be repaired took its part by and by
                self._record(CONNECTED, f"split again, without an event: {listed(self.split_topics())}")
        elif max(now - self.last_event, (now - self.last_cause) // 3) > self.bounds.connected + self._patience:
            waited = (now - self.last_cause) / SECOND
            self._record(CONNECTED, f"{waited:.1f} s after the last event still split: {listed(self.split_topics())}")

    def _check_cut_pairs(self) -> None:
        """With connectivity 2 no topic has a cut node for long."""
        found = cut_pairs(self.population)
        self.cut_pairs = sum(map(len, found.values()))
        now = self.world.now
        if max(now - self.last_event, (now - self.last_cause) // 3) > self.bounds.dispensable + self._patience:
            for topic, nodes in found.items():
                self._record(DISPENSABLE, f"{listed(map(self._name, nodes))} in {self._label(topic)}")

    def _check_promise(self, who: str, judged: Iterable[EventId] = ()) -> None:
        """Topics are in no more pieces than open events explain; each is told once, until it is connected."""
        if not self._promised:
            return
        split = self._promise.split_topics(judged)
        for topic in sorted(split.keys() - self._unexplained, key=self._label):
            pieces = " | ".join(listed(map(self._name, piece)) for piece in split[topic])
            self._record(JOINED, f"{who}, yet no open event explains the pieces of {self._label(topic)}: {pieces}")
        self._unexplained = set(split)

    def _label(self, topic: Topic) -> str:
        return str(self.population.topic_labels.get(topic, topic))

    def _check_handled(self) -> None:
        here = {(node, self.population.cores[node].ref.incarnation) for node in self.population.members()}
        for event in [event for event in self._expected if self._knowing.get(event, here).isdisjoint(here)]:
            del self._expected[event]  # all that knew of it have failed as well
        for event, since in self._expected.items():
            if self.world.now - max(since, self.last_event) > self.bounds.handled + self._patience:
                self._record(HANDLED, f"no node has handled the {event.kind} of {self._name(event.node)}")

    def _check_links(self) -> None:
        """No link that only one side believes in, and none half made, for long."""
        now = self.world.now
        one_sided = self._one_sided_links()
        for pair in [pair for pair in self._one_sided if pair not in one_sided]:
            del self._one_sided[pair]
        for node, other in sorted(one_sided):
            since = self._one_sided.setdefault((node, other), now)
            if now - since > self.bounds.one_sided + self._patience:
                state = self.population.cores[node].links()[other].state.value
                self._record(AGREED, f"{self._name(node)} alone has a link to {self._name(other)} ({state})")

    def _one_sided_links(self) -> set[tuple[NodeId, NodeId]]:
        """Looked for again only when something has changed."""
        members = self.population.members()
        paused = {node for node in members if self.world.places[node].paused}
        stamp = (paused, self.population.stamp())
        if self._paired is None or self._paired[0] != stamp:
            self._paired = (stamp, set(self._find_one_sided(set(members), paused)))
        return self._paired[1]

    def _find_one_sided(self, members: set[NodeId], paused: set[NodeId]) -> Iterator[tuple[NodeId, NodeId]]:
        cores = self.population.cores
        links = {node: cores[node].links() for node in members}
        for node in members - paused:
            for other, link in links[node].items():
                back = links[other].get(node) if other in members else None
                agreed = (
                    back is not None
                    and link.ref.incarnation == cores[other].ref.incarnation
                    and back.ref.incarnation == cores[node].ref.incarnation
                    and link.is_up
                    and back.is_up
                )
                if not agreed and other not in paused:
                    yield node, other

    def _check_sizes(self, core: OmenNode) -> None:
        sizes = core.sizes()
        for size, most, what in zip(sizes, self._sizes_at_most, SIZES.values(), strict=True):
            if size > most:
                self._note_size(core, what, size, most)
        if self.world.now - self.last_event > self.bounds.idle:
            left = [what for size, what in zip(sizes[FIRST_OF_WORK:], WORK, strict=True) if size]
            if left:
                self._record(BOUNDED, f"{self._name(core.ref.id)} long after the last event still has {listed(left)}")

    def _note_size(self, core: OmenNode, what: str, size: int, most: int) -> None:
        """The peer table has room for what is of use besides, and only here it is worth the look how much that is."""
        if what == SIZES["known"]:
            status = core.status()
            most += len({*status.membership.ring, *status.links, *status.membership.view})
        if size > most:
            self._record(BOUNDED, f"{self._name(core.ref.id)} has {size} in its {what}, {most} at most")

    def _check_views(self, core: OmenNode) -> None:
        """R(v'): each topic covered lambda times, or by all subscribers this node knows."""
        stamp = core.backups_stamp
        if self._views_at.get(core.ref.id) == stamp and not core.config.global_view:
            return
        self._views_at[core.ref.id] = stamp
        me, known = core.ref.id, core.topic_sets
        mine = frozenset(core.topics)
        for node, shadow in core.backup_sets().items():
            if not shadow.ready:
                continue
            backups = set(shadow.backups)
            counts = dict.fromkeys(shadow.topics, 0)
            for backup in backups:
                for topic in shadow.topics & (mine if backup == me else known.get(backup, frozenset())):
                    counts[topic] += 1
            for topic, have in counts.items():
                if have >= core.config.coverage:
                    continue
                left_out = [
                    other
                    for other, topics in known.items()
                    if topic in topics and other not in backups and other != node
                ]
                if left_out:
                    where = f"{self._name(me)}'s view of {self._name(node)}"
                    missing = f"{self.population.topic_labels[topic]!r} {have} times, leaving out"
                    self._record(COVERED, f"{where} is ready, yet has {missing} {self._name(left_out[0])}")


def _sizes_at_most(config: Config, bounds: Bounds) -> tuple[int, ...]:
    """In the order of `NodeSizes`."""
    most = NodeSizes(
        backup_sets=2 * config.resilience,
        sample=config.sample_size,
        ring=2 * (config.resilience + SPARE),
        handled=HANDLED_AT_MOST,
        known=bounds.news_in_a_round,
        seen_digests=SEEN_AT_MOST,
        path_probes=PROBES_AT_MOST,
        **dict.fromkeys(NodeSizes._fields[FIRST_OF_WORK:], bounds.open_events),
    )
    return tuple(most)


def _time_to_notice(population: Population) -> Time:
    """How long nodes may take to find out by themselves that one has failed; nothing where they are told."""
    config = population.config
    return 16 * config.heartbeat_period + 4 * config.suspicion_time if config.detector else 0
