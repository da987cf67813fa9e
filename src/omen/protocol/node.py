"""One OMen node: peer sampling, ring, views, links, coordinator, detector and audit, put together (omen 3-5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from omen.protocol.audit.audit import Audit
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.dissemination.dissemination import TIMER, Dissemination
from omen.protocol.dissemination.publisher import Publisher
from omen.protocol.events import (
    Depart,
    Engine,
    Input,
    LinkReady,
    LinkSlow,
    NodeId,
    Output,
    PeerLost,
    Publish,
    Randomness,
    Received,
    Replay,
    Subscribe,
    Time,
    TimerFired,
    Topic,
)
from omen.protocol.handlers import build_handlers
from omen.protocol.membership.connections import Connections
from omen.protocol.membership.failure_detector import FailureDetector
from omen.protocol.membership.gossip import Gossip
from omen.protocol.membership.join_leave import Membership
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.registry import Registry, SharedPeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.messages.overlay import Descriptor, Descriptors, Digest, Handled, LinkOk, Located, Ref
from omen.protocol.messages.publications import Publication
from omen.protocol.repair.coordinator import Coordinator
from omen.protocol.repair.link_pruning import LinkPruning
from omen.protocol.repair.links import Links
from omen.protocol.repair.loss_reports import LossReports
from omen.protocol.repair.requests import Requests
from omen.protocol.repair.shadow_member import ShadowMember
from omen.protocol.repair.views import Views
from omen.protocol.validation import MessageValidator


class OmenNode:
    """The core of one node. `contacts`: whom to join through; none: the first node of a new overlay.

    `registry`: everybody's descriptors, for OMen-G.
    """

    def __init__(
        self,
        ref: Ref,
        topics: Iterable[Topic],
        config: Config,
        randomness: Randomness,
        engine: Engine,
        contacts: Sequence[Ref] = (),
        registry: Registry | None = None,
    ) -> None:
        self.config = config
        self.out = Outbox(ref.id)
        self.stopped = False
        self.next_life: int | None = None
        self.now: Time = 0
        self.refused: Counter[str] = Counter()
        self._random = randomness
        self._engine = engine
        self._registry = registry
        self.publisher = Publisher(self)
        self.dissemination = Dissemination(ref, config, self.out, self.publisher.is_waiting)
        self._build(ref, topics, contacts)

    def _build(self, ref: Ref, topics: Iterable[Topic], contacts: Sequence[Ref]) -> None:
        """All parts, from nothing: at the beginning of each life."""
        config, out, randomness = self.config, self.out, self._random
        self.contacts = tuple(contacts)
        me = Descriptor(Digest(ref, 1, 1), tuple(sorted(set(topics))), ())
        life, registry = config.tombstone_life, self._registry
        self.peer_table = peer_table = PeerTable(me, life) if registry is None else SharedPeerTable(me, life, registry)
        self.membership = Membership(self)
        self.peer_sampling = PeerSampling(peer_table, config, randomness, out)
        self.ring = ring = Ring(peer_table, config)
        self.views = views = Views(peer_table, config, randomness)
        views.registry = registry
        self.links = links = Links(peer_table, config, out)
        self.gossip = Gossip(peer_table, ring, views, links, self.peer_sampling, config, randomness, out)
        self.gossip.on_reborn = self.membership.end_former_life
        self.gossip.on_myself = self.membership.hear_of_oneself
        self.ring_lookup = ring_lookup = RingLookup(peer_table, config, out)
        self.coordinator = Coordinator(peer_table, ring, views, ring_lookup, config, randomness, self._engine, out)
        self.requests = Requests(peer_table, ring, links, views, config, out, self._describe)
        self.loss_reports = LossReports(peer_table, ring, self.coordinator, ring_lookup, config, out)
        self.shadow_member = ShadowMember(
            peer_table,
            ring,
            links,
            self.loss_reports,
            self.requests,
            config,
            out,
            self.membership.lose_ref,
            self._clock,
        )
        self.requests.count_on = self.shadow_member.count_on
        self.link_pruning = LinkPruning(
            peer_table, links, config, out, self.shadow_member.count_on, self._is_leaving, self._clock
        )
        if config.redundant_removals:
            self.shadow_member.link_pruning = self.link_pruning
        self.detector = FailureDetector(peer_table, config, randomness, out)
        self.audit = Audit(peer_table, ring, links, ring_lookup, config, randomness, self._engine, out, self._clock)
        self._contacts = Connections(peer_table, ring, links, out)
        self._offset = 0
        self._paced_at = 0
        self._handlers = build_handlers(self)
        self._door = MessageValidator(peer_table, self.membership, self.coordinator, frozenset(self._handlers))

    @property
    def ref(self) -> Ref:
        return self.peer_table.ref

    def _is_leaving(self) -> bool:
        return self.requests.departing

    def _clock(self) -> Time:
        return self.now

    def preset(
        self,
        near: Iterable[Descriptor],
        neighbours: Iterable[tuple[Ref, tuple[Ref, ...]]],
        sample: Iterable[Ref],
    ) -> None:
        """Begin as a member of an overlay that was designed beforehand: ring and links are there already.

        `near`: those around on the circle and the neighbours. `neighbours`: each with its own successors.
        """
        for ref, successors in neighbours:
            self.links.preset(ref, successors)
        for descriptor in near:
            self.gossip.meet(descriptor.digest.ref)
            self.peer_table.learn(descriptor)
        for ref in sample:
            self.peer_sampling.add(ref)
        self._describe()

    @property
    def is_busy(self) -> bool:
        """Whether this node has something to mend, to make or to report."""
        event_queue = self.coordinator.event_queue
        return bool(
            self.requests.open
            or self.loss_reports.open
            or event_queue.exe_q
            or event_queue.standby
            or self.coordinator.repairer.repair
            or self.shadow_member.proposals
            or self.link_pruning.is_busy
        )

    def start(self, now: Time) -> Sequence[Output]:
        """Begin: gossip at a random time in each interval, and join where there is whom to join."""
        self.now = now
        self._begin()
        return self.conclude()

    def _begin(self) -> None:
        self._set_round_timer(0)
        if self.config.detector:
            self.detector.start()
        if self.config.audit:
            self.audit.start()
        if self.contacts:
            self.membership.join()

    def _begin_again(self, incarnation: int) -> None:
        """This node was taken for gone: all it had is void, but whom it knows, and what it wants."""
        ref = Ref(self.ref.id, incarnation, self.ref.address)
        known = {other: entry for other, (entry, _) in self.peer_sampling.view.items()} | self.ring.members
        wanted, buried, before = self.requests.wanted, self.peer_table.tombstones, self.membership
        before.tell_everybody(handled=False)
        self._build(ref, wanted, [known[other] for other in sorted(known)])
        self.peer_table.tombstones, self.membership.remembered = buried, before.remembered
        self.out.to_oneself.clear()
        self.out.notify("renewed", incarnation)
        self.dissemination.me = ref
        self._begin()

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        """Take in one input; everything that follows from it comes back."""
        if self.stopped:
            return []
        self.now = now
        match event:
            case Received(sender, message):
                if type(message) is Publication:
                    return self.receive(sender, message, now)
                self._receive(sender, message)
            case TimerFired(key):
                self._on_timer(key)
            case PeerLost(peer, incarnation):
                if not (self.config.detector and self.detector.suspect(peer, now)):
                    self.membership.lose(peer, incarnation)
            case Publish(topic, payload):
                return self.publisher.publish(topic, payload)
            case LinkSlow(peer):
                self.dissemination.on_slow(peer)
            case LinkReady(peer):
                self.publisher.on_ready(peer)
            case Replay(topic):
                self.publisher.replay(topic)
            case Subscribe(added, dropped):
                self.requests.resubscribe(added, dropped)
            case Depart():
                self.membership.depart()
        return self.conclude()

    def receive(self, sender: NodeId, publication: Publication, now: Time) -> Sequence[Output]:
        """A publication came in. Nothing else of this node changes by it, so nothing has to be settled."""
        if self.stopped:
            return ()
        if not self.dissemination.in_use:
            self.now = now
            self.publisher.spread_over_links()
        return self.dissemination.receive(sender, publication, now)

    def _receive(self, sender: NodeId, message: Any) -> None:
        """Through the door, and to whom it is for."""
        message, complaint = self._door.take_in(sender, message)
        if complaint is not None:
            self.refused[complaint] += 1
            return
        if sender in self.peer_table.tombstones:
            self.membership.meet_ghost(sender)
        if self.config.detector:
            self.detector.hear(sender, self.now)
        self._handlers[type(message)](sender, message)

    def conclude(self) -> Sequence[Output]:
        """Hear what this node has to say to itself, then hand everything over."""
        if self.next_life is not None and not self.stopped:
            incarnation, self.next_life = self.next_life, None
            self._begin_again(incarnation)
        if not self.stopped:
            self._settle()
        while self.out.to_oneself and not self.stopped:
            message = self.out.to_oneself.popleft()
            self._handlers[type(message)](self.peer_table.id, message)
            if not self.stopped:
                self._settle()
        return self.out.take()

    def _on_timer(self, key: Any) -> None:
        if key == "round":
            self._round()
            return
        kind = key[0]
        if kind == TIMER:
            self.dissemination.on_timer(key, self.now)
        elif kind == "link":
            self.links.on_timer(key[1])
        elif kind == "mend":
            self.coordinator.on_timer(key)
        elif kind == "locate":
            self._located(self.ring_lookup.on_timer(key[1], key[2]))
        elif kind == "arrive":
            self.requests.ask_again(key[1])
        elif kind == "report":
            self.loss_reports.report(key[1])
        elif kind == "join":
            self.membership.join_unless_taken_in()
        elif kind in ("spare", "fade"):
            self.link_pruning.on_timer(key)
        elif kind == "depart":
            self.membership.say_goodbye(handled=False)
        elif kind == "detect":
            self.detector.on_timer(key, self.now)
            for ref in self.detector.take_gone():
                self.membership.lose_ref(ref)
        elif kind == "audit" and self.audit.on_timer(key):
            self.membership.try_lost()

    def _round(self) -> None:
        """Once in each interval of T_wait (Alg. 3)."""
        self.membership.expire(self.now)
        self.gossip.exchange()
        self._set_round_timer(self.config.gossip_period * self.gossip.rest - self._offset)

    def _set_round_timer(self, to_next_interval: Time) -> None:
        """A random time in the next interval (Alg. 3 line 1)."""
        self._offset = self._random.randrange(self.config.gossip_period)
        self.out.set_timer("round", to_next_interval + self._offset)

    def on_located(self, sender: NodeId, message: Located) -> None:
        self._located(self.ring_lookup.on_located(message, sender))

    def _located(self, found: tuple[Any, Ref | None, list[Ref]] | None) -> None:
        if found is None:
            return
        purpose, successor, met = found
        if purpose[0] == "linked":
            self.coordinator.repairer.on_located(purpose, successor)
        elif purpose[0] == "report":
            self.loss_reports.on_located(purpose[1], successor)
        elif purpose[0] == "audit":
            self.audit.reporter.on_located(purpose[1], successor)
        elif purpose[0] == "join":
            self.membership.take_place(met)

    def on_handled(self, message: Handled) -> None:
        """Somebody has mended it."""
        if self.loss_reports.close(message.event):
            self.links.changed = True
        if self.requests.on_handled(message.event, message.repaired):
            self.membership.say_goodbye(handled=True)
            return
        self.coordinator.on_handled(message.event, message.repaired)

    def on_details(self, message: Descriptors) -> None:
        self.gossip.learn(message.descriptors)

    def on_link_ok(self, message: LinkOk) -> None:
        self.gossip.learn((message.descriptor,))
        self.links.on_ok(message)

    def on_link_seen(self, sender: NodeId, _: object) -> None:
        self.links.on_seen(sender)

    def withdraw(self) -> None:
        """Gone for good: OMen-G's registry is told."""
        if self._registry is not None:
            self._registry.withdraw(self.peer_table.id)

    def forget_connection(self, node: NodeId) -> None:
        self._contacts.forget(node)

    def _describe(self) -> Descriptor:
        """This node's descriptor, as new as its links.

        A lost neighbour counts until its loss is known to be mended: were this node lost too, the two would be linked
        losses although the link is down already.
        """
        if self.links.changed:
            self.links.changed = False
            digest = self.peer_table.me.digest
            lost = (ref for ref in self.loss_reports.unrepaired() if ref.id not in self.links.links)
            neighbours = tuple(sorted((*self.links.neighbours(), *lost), key=lambda ref: ref.id))
            if neighbours != self.peer_table.me.neighbours:
                digest = Digest(digest.ref, digest.topics_version, digest.links_version + 1)
                self.peer_table.describe(Descriptor(digest, self.peer_table.me.topics, neighbours))
        return self.peer_table.me

    def _settle(self) -> None:
        """After each input: keep what others rely on up to date, and publications on the links there are."""
        self._settle_overlay()
        if self.dissemination.in_use:
            self.publisher.spread_over_links()

    def _settle_overlay(self) -> None:
        """Confirm links that came up, keep connections, tell others what changed."""
        if self.config.audit and (self.links.came_up or self.links.changed):
            self.audit.labels.note_change()
        if self.links.came_up or self.shadow_member.proposals:
            self.shadow_member.confirm_links()
        ring_changed = self.gossip.ring_changed
        if ring_changed:
            self.gossip.ring_changed = False
            self.links.successors = self.ring.successor_refs()
            self.views.follow(self.ring.get_preds(), self.coordinator.pinned())
            self.views.select_view()
            self.gossip.fetch_predecessors()
        if self.links.changed or ring_changed or self.peer_table.me.digest is not self._contacts.told:
            self._describe()
            watched = self._contacts.keep_connections()
            if self.config.detector:
                self.detector.watch(watched, self.now)
            self._contacts.tell_status()
        if self.views.version != self._paced_at:
            self._paced_at = self.views.version
            self._hurry()

    def _hurry(self) -> None:
        """Rest no longer where a view needs others."""
        if self.gossip.rest > 1 and not self.views.are_ready():
            self.gossip.rest = 1
            self._set_round_timer(0)
