"""One OMen node: its parts, and what goes where (omen 3-5).

A part handles its own messages and timers, and returns what it found out; the node decides who hears of it. Whatever
concerns several parts is here: a node that joins, leaves or rejoins. What the loss of a peer means to all of them is in
peer_losses.py, how publications meet the links there are in publishing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never, cast

from omen.protocol import events
from omen.protocol.audit.audit import AuditPeriodTimer
from omen.protocol.audit.leader_reports import RendezvousLookup
from omen.protocol.config import Config
from omen.protocol.context import Clock, NodeContext, Outbox
from omen.protocol.dissemination.plumtree import Dissemination
from omen.protocol.events import (
    Engine,
    Handlers,
    Input,
    NodeId,
    Offence,
    Output,
    Randomness,
    RarerInput,
    Received,
    Time,
    TimerFired,
    TimerHandlers,
    Topic,
)
from omen.protocol.membership.conduct import Conduct
from omen.protocol.membership.gossip import Finding, OwnDigestSeen, PeerRejoined, RoundTimer
from omen.protocol.membership.join_leave import JoinLookup
from omen.protocol.membership.lost_peers import LostPeer
from omen.protocol.membership.peer_table import PeerTable, Registry, SharedPeerTable, is_newer
from omen.protocol.membership.refusals import Refusals
from omen.protocol.membership.ring_lookup import LookupDone, LookupTimer
from omen.protocol.messages import overlay as messages
from omen.protocol.messages.base import (
    INCARNATION_AT_MOST,
    Descriptor,
    Digest,
    EventKind,
    Ref,
)
from omen.protocol.messages.publications import Publication
from omen.protocol.parts import build_parts
from omen.protocol.peer_losses import PeerLosses
from omen.protocol.publishing import Publishing
from omen.protocol.repair.loss_reports import LossReportLookup
from omen.protocol.repair.requests import DepartTimer
from omen.protocol.repair.timers import LinkedLossLookup
from omen.protocol.shown import ShownNode
from omen.protocol.storage.storage import StorageLookup
from omen.protocol.storage.store import RecordStore
from omen.protocol.validation import STALE, MessageValidator

BANNED = "banned"
AnyLookup = LinkedLossLookup | LossReportLookup | RendezvousLookup | JoinLookup | StorageLookup
"""What a place on the ring is looked up for."""


class OmenNode(ShownNode):
    """The core of one node. `contacts`: the peers to join through; none: the first node of a new overlay.

    `registry`: the descriptors of all nodes, for OMen-G.
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
        self.stopped = False
        self._out = Outbox(ref.id)
        self._clock = Clock()
        self._refused: Counter[str] = Counter()
        self._random = randomness
        self._engine = engine
        self._registry = registry
        self._next_incarnation: int | None = None
        self._dissemination = Dissemination(ref, config, self._out)
        self._refusals = Refusals(config)
        self._store = RecordStore(config.storage_bytes)
        self._conduct = Conduct(config)
        self._build(ref, topics, contacts)

    def _build(
        self,
        ref: Ref,
        topics: Iterable[Topic],
        contacts: Sequence[Ref],
        tombstones: Mapping[NodeId, tuple[int, Time]] | None = None,
        lost_peers: Mapping[NodeId, LostPeer] | None = None,
        lent: Iterable[Topic] = (),
    ) -> None:
        """All parts, from nothing: at the beginning of each incarnation."""
        config, registry = self.config, self._registry
        me = Descriptor(Digest(ref, 1, 1), tuple(sorted(set(topics))), (), config.link_rules)
        table = (
            PeerTable(me, config.tombstone_life, tombstones)
            if registry is None
            else SharedPeerTable(me, config.tombstone_life, tombstones, registry)
        )
        context = NodeContext(table, config, self._out, self._clock, self._random, self._engine)
        self._parts = parts = build_parts(context, registry, lost_peers or {}, self._store)
        self._contacts = tuple(contacts)
        self._offset = 0
        self._paced_at = 0
        self._peer_losses = losses = PeerLosses(context, parts, self._refusals, self._conduct)
        self._publishing = publishing = Publishing(context, parts, self._dissemination, lent)
        self._handlers = parts.handlers() | losses.handlers() | publishing.handlers() | self._own_handlers()
        self._timers = parts.timers() | losses.timers() | publishing.timers() | self._own_timers()
        member, incarnations = parts.shadow_member, parts.incarnations
        self._validator = MessageValidator(context, parts.coordinator, self._handlers, incarnations, member)

    def _own_handlers(self) -> Handlers:
        """The messages that concern several parts."""
        return {
            messages.DigestOffer: self._on_digest_offer,
            messages.Descriptors: self._on_descriptors,
            messages.Status: self._on_status,
            messages.Located: self._on_located,
            messages.Heartbeat: self._on_heartbeat,
            messages.FailureNotice: self._on_failure_notice,
            messages.Refutation: self._on_refutation,
            messages.Leaving: self._on_leaving,
            messages.NameClaimed: self._on_name_claimed,
            messages.LinkOpen: self._on_link_open,
            messages.LinkOk: self._on_link_ok,
            messages.RepairRequest: self._on_repair_request,
            messages.LossReport: self._on_loss_report,
            messages.ShadowQuery: self._on_shadow_query,
            messages.Handled: self._on_handled,
        }

    def _own_timers(self) -> TimerHandlers:
        return {
            RoundTimer: self._on_round,
            LookupTimer: self._on_lookup_timer,
            DepartTimer: self._on_depart_timer,
            AuditPeriodTimer: self._on_audit_period,
        }

    def preset(
        self,
        near: Iterable[Descriptor],
        neighbours: Iterable[tuple[Ref, tuple[Ref, ...]]],
        sample: Iterable[Ref],
    ) -> None:
        """Begin as a member of an overlay that was designed beforehand: ring and links are there already.

        `near`: the nodes around on the ring and the neighbours. `neighbours`: each with its own successors.
        """
        for ref, successors in neighbours:
            self._parts.links.preset(ref, successors)
        for descriptor in near:
            self._act_on(self._parts.gossip.meet(descriptor.digest.ref))
            self._parts.peer_table.learn(descriptor)
        for ref in sample:
            self._parts.peer_sampling.add(ref)
        self._parts.descriptor.refresh()

    def drop_link(self, node: NodeId) -> None:
        """A fault, for simulations: this end forgets a link as if it had never been."""
        self._parts.links.drop(node)

    def start(self, now: Time) -> Sequence[Output]:
        """Begin: gossip at a random time in each interval, and join where there are contacts."""
        self._clock.now = now
        self._begin()
        return self._conclude()

    def _begin(self) -> None:
        self._set_round_timer(0)
        if self.config.detector:
            self._parts.failure_detector.start()
        if self.config.audit:
            self._parts.audit.start()
        self._parts.connectivity.start()
        self._parts.lost_peers.start()
        self._parts.storage.start()
        if self._contacts:
            self._dissemination.note_joining(None)
            self._parts.join_leave.join(self._contacts, persists=True)

    def _join(self, met: Ref) -> None:
        self._dissemination.note_joining(None)
        self._parts.join_leave.join_through((met,))

    def _rejoin(self, incarnation: int) -> None:
        """This node was declared failed: all it had is void, but the peers it knows, and what it wants."""
        ref, parts = Ref(self.ref.id, incarnation, self.ref.address), self._parts
        parts.failure_detector.check_own_pace()
        known = {other: entry for other, (entry, _) in parts.peer_sampling.view.items()} | parts.ring.members
        tombstones, lost_peers = parts.peer_table.tombstones, parts.lost_peers.remembered
        farewell = messages.Leaving(self.ref, handled=False)
        parts.join_leave.say_goodbye(handled=False)
        contacts = [known[other] for other in sorted(known)]
        self._build(ref, parts.requests.wanted, contacts, tombstones, lost_peers, self._publishing.lent)
        self._parts.links.opened = parts.links.opened  # what is said of links of before concerns none of these
        self._out.to_oneself.clear()
        self._out.notify(events.Rejoined(incarnation))
        self._dissemination.rejoin(ref)
        self._begin()
        self._parts.lost_peers.repeat_farewell(farewell, [link.ref for _, link in sorted(parts.links.links.items())])

    # Inputs

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        """Take in one input; everything that follows from it comes back."""
        if self.stopped:
            return []
        self._clock.now = now
        if isinstance(event, Received):  # by far the most frequent
            if type(event.message) is Publication:
                return self.receive(event.sender, event.message, now)
            self._receive(event.sender, event.message)
        elif isinstance(event, TimerFired):
            self._timers[type(event.timer)](event.timer)
        else:
            return self._obey(event, now)
        return self._conclude()

    def _obey(self, event: RarerInput, now: Time) -> Sequence[Output]:
        """What became of connections, and commands."""
        match event:
            case events.PeerLost(peer, incarnation):
                self._peer_losses.on_connection_lost(peer, incarnation)
            case events.ContactsFound(peers):
                self._meet_contacts(peers)
            case events.PeerRefused(peer, later):
                self._peer_losses.on_refused(peer, later)
            case events.PeerUnreached(peer, address):
                self._parts.coordinator.on_unreached(peer, address)
            case events.PeerOffended(peer, offence):
                self._peer_losses.hold_to_account(peer, offence)
            case events.NameFree(incarnation):
                if incarnation > self.ref.incarnation:
                    self._renew(incarnation)
            case events.Publish(topic, payload, fields):
                return self._publish(topic, payload, fields)[1]
            case events.LinkRoom(peer, room):
                self._dissemination.on_room(peer, room, now)
            case events.LinkBroken(peer):
                self._dissemination.on_broken(peer, now)
            case events.LinkSlow(peer):
                self._dissemination.on_slow(peer)
            case events.LinkReady(peer):
                self._publishing.follow_links()
                self._dissemination.on_ready(peer, now)
            case events.Replay(topic):
                self._publishing.follow_links()
                self._dissemination.replay(topic, now)
            case events.Subscribe(added, dropped):
                self._publishing.subscribe(added, dropped)
            case events.Store(token, records):
                self._parts.storage.write(token, records)
            case events.Fetch(token, place):
                self._parts.storage.read(token, place)
            case events.LoadRecords(records):
                self._parts.storage.load(records)
            case events.Depart(is_brief):
                if is_brief and self._parts.join_leave.is_leaf:
                    self._leave(handled=False)
                elif self._parts.join_leave.depart():
                    self._leave(handled=True)
            case _:
                assert_never(event)
        return self._conclude()

    def receive(self, sender: NodeId, publication: Publication, now: Time) -> Sequence[Output]:
        """A publication came in. Nothing else of this node changes by it, so nothing has to be settled."""
        if self.stopped or (self._conduct.banned and self._conduct.is_banned(sender, now)):
            return ()
        if not self._dissemination.in_use:
            self._clock.now = now
            self._publishing.follow_links()
        outputs = self._dissemination.receive(sender, publication, now)
        if not self._dissemination.offenders:
            return outputs
        self._dissemination.offenders.clear()
        self._clock.now = now
        self._peer_losses.hold_to_account(sender, Offence.IMPOSSIBLE)
        return [*outputs, *self._conclude()]

    def _receive(self, sender: NodeId, message: Any) -> None:
        """Validate a message, then hand it to its handler."""
        parts = self._parts
        if self._conduct.banned and self._conduct.is_banned(sender, self._clock.now):
            self._refused[BANNED] += 1
            return
        message, complaint = self._validator.check(sender, message)
        if complaint is not None:
            self._refused[complaint] += 1
            if complaint == STALE and type(message) is messages.RepairRequest:
                parts.lost_peers.on_stale_request(message)
            if self._validator.offence is not None:
                self._peer_losses.hold_to_account(sender, self._validator.offence)
            return
        if sender in parts.peer_table.tombstones:
            parts.lost_peers.on_message_from(sender, parts.incarnations.latest(sender))
        self._peer_losses.on_heard(sender)
        self._handlers[type(message)](sender, message)

    def _conclude(self) -> Sequence[Output]:
        """Handle what this node has to say to itself, then hand everything over."""
        if self._next_incarnation is not None and not self.stopped:
            incarnation, self._next_incarnation = self._next_incarnation, None
            self._rejoin(incarnation)
        if not self.stopped:
            self._settle()
        while self._out.to_oneself and not self.stopped:
            message = self._out.to_oneself.popleft()
            self._handlers[type(message)](self._parts.peer_table.id, message)
            if not self.stopped:
                self._settle()
        return self._out.take()

    def _settle(self) -> None:
        """After each input: keep what others rely on up to date, and publications on the links there are."""
        parts = self._parts
        links = parts.links
        if (
            links.changed
            or links.came_up
            or parts.ring.changed
            or parts.shadow_member.proposals
            or parts.views.version != self._paced_at
            or parts.peer_table.me.digest is not parts.connections.told
        ):
            self._settle_overlay()
        if self._dissemination.in_use:
            self._publishing.follow_links()

    def _settle_overlay(self) -> None:
        """Confirm links that came up, keep connections, tell others what changed."""
        parts = self._parts
        links, ring = parts.links, parts.ring
        if self.config.audit and (links.came_up or links.changed):
            parts.audit.labels.note_change()
        if links.came_up or links.version != parts.connectivity.links_version:
            parts.connectivity.follow_links()
        if links.came_up or parts.shadow_member.proposals:
            parts.shadow_member.confirm_links()
        ring_changed = ring.changed
        if ring_changed:
            ring.settle()
            links.announce_successors(ring.successor_refs())
            parts.storage.follow_ring()
            parts.requests.follow_ring()
            parts.views.follow(ring.get_preds(), parts.coordinator.pinned())
            parts.views.select_view()
            parts.gossip.fetch_predecessors()
            if self.config.audit and parts.ring_merge.notice():
                parts.audit.hurry()
                self._set_round_timer(0)
        if links.changed or ring_changed or parts.peer_table.me.digest is not parts.connections.told:
            parts.descriptor.refresh()
            watched = parts.connections.keep()
            if self.config.detector:
                parts.failure_detector.watch(watched, self._clock.now)
            parts.connections.tell_status()
        if parts.views.version != self._paced_at:
            self._paced_at = parts.views.version
            if parts.gossip.rest > 1 and not parts.views.are_ready():
                parts.gossip.hurry()  # rest no longer where a view needs others
                self._set_round_timer(0)

    # Gossip and lookups

    def _on_round(self, _: RoundTimer) -> None:
        """Once in each interval of T_wait (Alg. 3)."""
        self._peer_losses.expire_tombstones()
        self._parts.gossip.exchange()
        self._set_round_timer(self.config.gossip_period * self._parts.gossip.rest - self._offset)

    def _set_round_timer(self, to_next_interval: Time) -> None:
        """A random time in the next interval (Alg. 3 line 1)."""
        self._offset = self._random.randrange(self.config.gossip_period)
        self._out.set_timer(RoundTimer(), to_next_interval + self._offset)

    def _act_on(self, findings: Iterable[Finding]) -> None:
        """Act on each finding as it comes: what the part does next builds on it."""
        for finding in findings:
            match finding:
                case PeerRejoined(former):
                    self._peer_losses.lose(former.id, former.incarnation, doubtful=False)
                case OwnDigestSeen(digest):
                    self._on_own_digest(digest)
                case _:
                    assert_never(finding)

    def _on_digest_offer(self, sender: NodeId, message: messages.DigestOffer) -> None:
        if self._parts.join_leave.is_offered_a_ring(sender, message):
            self._join(message.digests[0].ref)
        self._act_on(self._parts.gossip.on_offer(sender, message))

    def _on_descriptors(self, sender: NodeId, message: messages.Descriptors) -> None:
        self._act_on(self._parts.gossip.learn(message.descriptors, sender))

    def _on_status(self, sender: NodeId, message: messages.Status) -> None:
        self._act_on(self._parts.gossip.on_status(sender, message))

    def _on_own_digest(self, digest: Digest) -> None:
        """Others know a later incarnation or later topics of this node than there are: go beyond them."""
        table = self._parts.peer_table
        mine = table.me.digest
        if digest.ref.incarnation > mine.ref.incarnation:
            if digest.ref.address in ("", mine.ref.address):
                self._renew(digest.ref.incarnation)
            else:
                self._out.notify(events.OwnNameSeen(digest.ref))
        elif digest.ref.incarnation == mine.ref.incarnation and is_newer(digest, mine):
            table.outrun(digest)

    def _on_name_claimed(self, _: NodeId, message: messages.NameClaimed) -> None:
        self._out.notify(events.NameConflict(message.claimant))

    def _on_located(self, sender: NodeId, message: messages.Located) -> None:
        self._end_lookup(self._parts.ring_lookup.on_located(sender, message))

    def _on_lookup_timer(self, timer: LookupTimer) -> None:
        self._end_lookup(self._parts.ring_lookup.on_timer(timer))

    def _end_lookup(self, done: LookupDone | None) -> None:
        if done is None:
            return
        match cast(AnyLookup, done.purpose):
            case LinkedLossLookup() as purpose:
                self._parts.coordinator.on_located(purpose, done.successor)
            case LossReportLookup(event):
                self._parts.loss_reports.on_located(event, done.successor)
            case RendezvousLookup(place):
                self._parts.audit.leader_reports.on_located(place, done.successor)
            case JoinLookup():
                for request in self._parts.join_leave.take_place(done.met, done.in_doubt):
                    self._parts.coordinator.on_request(request)
            case StorageLookup(nonce):
                self._parts.storage.on_located(nonce, done.met)
            case unknown:
                assert_never(unknown)

    # Peers that are there or back, and the end of this node

    def _on_heartbeat(self, sender: NodeId, message: messages.Heartbeat) -> None:
        detector = self._parts.failure_detector
        is_known = detector.on_heartbeat(sender, message, self._clock.now)
        if sender in self._parts.links.links:
            self._dissemination.note_round_trip(detector.longest_round_trip(self._parts.links.links))
        if not is_known:
            self._peer_losses.hear_of_incarnation(sender, message.incarnation)

    def _on_failure_notice(self, sender: NodeId, message: messages.FailureNotice) -> None:
        """A peer has declared this node failed. If that has cost it a link, it rejoins; else it refutes.

        One that stood still rejoins as well: nodes may have been linked meanwhile as if it were not there.
        """
        link = self._parts.links.links.get(sender)
        given_up = link is not None and link.ref.incarnation == message.me.incarnation
        out_of_account = self.config.detector and self._parts.failure_detector.has_stood_still()
        if message.incarnation == self.ref.incarnation and (message.final or given_up or out_of_account):
            self._renew(message.incarnation)
            return
        self._out.send(message.me, messages.Refutation(self.ref))
        self._take_back(message.me)

    def _on_leaving(self, sender: NodeId, message: messages.Leaving) -> None:
        """A peer leaves. A node that leaves as well, the last of the ring, has nobody left to ask for a repair."""
        self._peer_losses.on_leaving(sender, message)
        if self._parts.requests.departing and not self._parts.ring.members:
            self._leave(handled=True)

    def _on_refutation(self, _: NodeId, message: messages.Refutation) -> None:
        self._take_back(message.me)

    def _take_back(self, ref: Ref) -> None:
        """A peer says itself that it is there: it is no loss, and is taken in again."""
        self._peer_losses.take_back(ref)
        self._meet(ref)

    def _meet_contacts(self, peers: Sequence[Ref]) -> None:
        """The driver has found nodes alive. One that was declared failed here is told so: it refutes, or rejoins."""
        for ref in peers:
            if ref.id == self.ref.id or self._conduct.is_banned(ref.id, self._clock.now):
                continue
            if self._parts.peer_table.is_declared_failed(ref):
                self._out.send(ref, messages.FailureNotice(self.ref, ref.incarnation, final=False))
            else:
                self._meet(ref)

    def _meet(self, ref: Ref) -> None:
        """A living node, maybe of another ring: swap what both know, and the two are one. One that is alone joins."""
        parts = self._parts
        if parts.join_leave.is_outside:
            self._join(ref)
            return
        sampling = parts.peer_sampling
        if ref.id not in parts.ring.members:
            if ref.id not in sampling.view and len(sampling.view) >= self.config.sample_size:
                sampling.drop(max(sampling.view, key=lambda other: (sampling.view[other][1], other)))
            parts.gossip.offer(ref)
        sampling.add(ref)
        self._act_on(parts.gossip.meet(ref))

    def _renew(self, beyond: int) -> None:
        """Rejoin under a higher incarnation. A node that was leaving has left."""
        if self._parts.requests.departing:
            self._leave(handled=False)
        elif beyond < INCARNATION_AT_MOST:
            self._next_incarnation = max(beyond, self.ref.incarnation) + 1

    def _on_depart_timer(self, _: DepartTimer) -> None:
        self._leave(handled=False)

    def _leave(self, handled: bool) -> None:
        """Leave now; `handled`: the gap is repaired."""
        self._parts.join_leave.say_goodbye(handled)
        self.stopped = True
        if self._registry is not None:
            self._registry.withdraw(self._parts.peer_table.id)
        self._out.notify(events.Left())

    def _on_audit_period(self, _: AuditPeriodTimer) -> None:
        self._parts.audit.next_period()

    # Links and repairs

    def _on_link_open(self, sender: NodeId, message: messages.LinkOpen) -> None:
        self._act_on(self._parts.gossip.learn((message.descriptor,)))
        ref = message.descriptor.digest.ref
        if self._parts.requests.departing and ref.id not in self._parts.links.links:
            self._out.send(ref, messages.LinkClose(self.ref.incarnation, message.number))
            return
        self._parts.links.on_open(sender, message)

    def _on_link_ok(self, sender: NodeId, message: messages.LinkOk) -> None:
        self._act_on(self._parts.gossip.learn((message.descriptor,)))
        self._parts.links.on_ok(sender, message)

    def _on_repair_request(self, sender: NodeId, message: messages.RepairRequest) -> None:
        self._act_on(self._parts.gossip.learn((message.descriptor,), sender))
        if not self._parts.join_leave.hold(message):
            self._parts.coordinator.on_request(message)

    def _on_loss_report(self, sender: NodeId, message: messages.LossReport) -> None:
        if not self._parts.join_leave.is_seeking:  # it follows no node yet: the reporter goes on to another
            self._parts.coordinator.on_report(sender, message)

    def _on_shadow_query(self, sender: NodeId, message: messages.ShadowQuery) -> None:
        """A coordinator names losses that this node may not have heard of yet."""
        self._peer_losses.on_told(message.lost, sender)
        self._parts.shadow_member.on_query(sender, message)

    def _on_handled(self, _: NodeId, message: messages.Handled) -> None:
        """A coordinator says that it has repaired an event."""
        repaired = {ref.id for ref in message.repaired}
        was_heard = message.heard and (not repaired or self._parts.peer_table.id in repaired)
        if was_heard and self._parts.loss_reports.close(message.event):
            self._parts.links.mark_changed()
        if self._parts.requests.on_handled(message.event, message.repaired):
            self._leave(handled=True)
            return
        if message.event.kind == EventKind.JOIN and message.event.node == self.ref.id:
            self._dissemination.note_joining(self._clock.now)
        self._parts.coordinator.on_handled(message.event, message.repaired)

    # Publications

    def publish(self, topic: Topic, payload: bytes, now: Time, fields: bytes = b"") -> tuple[int, Sequence[Output]]:
        """As `handle(Publish(...))`, with the sequence of the publication; 0: this node has stopped."""
        if self.stopped:
            return 0, ()
        self._clock.now = now
        return self._publish(topic, payload, fields)

    def _publish(self, topic: Topic, payload: bytes, fields: bytes) -> tuple[int, Sequence[Output]]:
        """Publishing on a topic makes it part of the node's interest (spidercast 2)."""
        dissemination, now = self._dissemination, self._clock.now
        dissemination.check_payload(payload)
        if topic not in self._parts.requests.wanted:
            self._publishing.lend(topic)
            before = self._conclude()
            sequence, outputs = dissemination.publish(topic, payload, now, fields)
            return sequence, [*before, *outputs]
        if not dissemination.in_use:
            self._publishing.follow_links()
        return dissemination.publish(topic, payload, now, fields)
