"""One OMen node: peer sampling, ring, views, links and coordinator, put together (omen 3-5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from omen.protocol.book import Book
from omen.protocol.circle import clockwise
from omen.protocol.config import Config
from omen.protocol.coordinator import Coordinator
from omen.protocol.dissemination import TIMER, Dissemination
from omen.protocol.events import (
    Depart,
    Engine,
    Input,
    LinkBehind,
    LinkReady,
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
from omen.protocol.gossip import Gossip
from omen.protocol.links import FADING, UP, Links
from omen.protocol.locate import Locator
from omen.protocol.messages import (
    Answer,
    Arrive,
    Ask,
    Confirmed,
    Descriptor,
    Details,
    Digest,
    EventId,
    Found,
    Goodbye,
    Handled,
    Inherit,
    Inquire,
    LinkClose,
    LinkOk,
    LinkOpen,
    LinkSeen,
    Locate,
    Located,
    Offer,
    Ping,
    Pong,
    Probe,
    Propose,
    Ref,
    Relay,
    Report,
    Reported,
    Settled,
    Shuffle,
    ShuffleReply,
    Spare,
    Status,
    Trail,
    Walk,
    Want,
    Yield,
    Yielded,
)
from omen.protocol.outbox import Outbox
from omen.protocol.publications import Announce, Graft, Prune, Publication, Pull
from omen.protocol.registry import Registry, SharedBook
from omen.protocol.reports import Reports
from omen.protocol.requests import Requests
from omen.protocol.ring import Ring
from omen.protocol.sampling import Sampling
from omen.protocol.serving import Serving
from omen.protocol.sparing import Sparing
from omen.protocol.views import Views


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
        self._random = randomness
        self._contacts = tuple(contacts)
        self.out = Outbox(ref.id)
        me = Descriptor(Digest(ref, 1, 1), tuple(sorted(set(topics))), ())
        life = config.tombstone_life
        self.book = Book(me, life) if registry is None else SharedBook(me, life, registry)
        self.sampling = Sampling(self.book, config, randomness, self.out)
        self.ring = Ring(self.book, config)
        self.views = Views(self.book, config, randomness)
        self.views.registry = self._registry = registry
        self.links = Links(self.book, config, self.out)
        self.gossip = Gossip(self.book, self.ring, self.views, self.links, self.sampling, config, randomness, self.out)
        self.gossip.on_reborn = lambda former: self._lose(former.id, former.incarnation)
        self.locator = Locator(self.book, config, self.out)
        self.coordinator = Coordinator(
            self.book, self.ring, self.views, self.locator, config, randomness, engine, self.out
        )
        self.requests = Requests(
            self.book, self.ring, self.links, self.views, config, self.out, lambda: self._describe()
        )
        self.reports = Reports(self.book, self.ring, self.coordinator, self.locator, config, self.out)
        self.serving = Serving(
            self.book,
            self.ring,
            self.links,
            self.reports,
            self.requests,
            self.out,
            lambda ref: self._lose(ref.id, ref.incarnation),
        )
        self.sparing = Sparing(
            self.book,
            self.links,
            config,
            self.out,
            self.serving.count_on,
            lambda: self.requests.departing,
            lambda: self._now,
        )
        if config.redundant_removals:
            self.serving.sparing = self.sparing
        self.dissemination = Dissemination(ref, config, self.out, lambda topic: topic in self.requests.waiting_for())
        self.stopped = False
        self._connected: set[NodeId] = set()
        self._told_successors: tuple[Ref, ...] = ()
        self._told: set[NodeId] = set()
        self._told_digest = Digest(ref, 0, 0)
        self._now: Time = 0
        self._offset = 0
        self._handlers: dict[type, Callable[[NodeId, Any], None]] = {
            Shuffle: self.sampling.on_shuffle,
            ShuffleReply: lambda _, message: self.sampling.on_reply(message),
            Offer: self.gossip.on_offer,
            Details: lambda _, message: self.gossip.learn(message.descriptors),
            Want: lambda _, message: self.gossip.on_want(message),
            Locate: self._on_locate,
            Located: self._on_located,
            Status: self.gossip.on_status,
            LinkOpen: self._on_link_open,
            LinkOk: self._on_link_ok,
            LinkSeen: lambda sender, _: self.links.on_seen(sender),
            LinkClose: self.links.on_close,
            Report: lambda _, message: self.coordinator.on_report(message),
            Reported: lambda _, message: self.reports.on_reported(message),
            Ask: lambda _, message: self.serving.on_ask(message),
            Answer: lambda _, message: self.coordinator.repairer.on_answer(message),
            Inquire: lambda _, message: self.coordinator.on_inquire(message),
            Inherit: lambda _, message: self.coordinator.repairer.on_inherit(message),
            Propose: lambda _, message: self.serving.on_propose(message),
            Confirmed: self.coordinator.repairer.on_confirmed,
            Handled: self._on_handled,
            Arrive: self._on_arrive,
            Walk: lambda _, message: self.serving.on_walk(message),
            Found: lambda _, message: self.coordinator.repairer.on_found(message),
            Goodbye: self._on_goodbye,
            Relay: lambda _, message: self.serving.on_relay(message),
            Spare: lambda _, message: self.sparing.on_spare(message),
            Probe: self.sparing.on_probe,
            Trail: self.sparing.on_trail,
            Yield: self.sparing.on_yield,
            Yielded: self.sparing.on_yielded,
            Settled: self.sparing.on_settled,
            Ping: lambda sender, message: self._reply(sender, Pong(message.nonce)),
            Pong: lambda sender, message: None,
            Announce: self._on_spread,
            Pull: self._on_spread,
            Prune: self._on_spread,
            Graft: self._on_spread,
        }

    @property
    def ref(self) -> Ref:
        return self.book.ref

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
            self.book.learn(descriptor)
        for ref in sample:
            self.sampling.add(ref)
        self._describe()

    @property
    def is_busy(self) -> bool:
        """Whether this node has something to mend, to make or to report."""
        docket = self.coordinator.docket
        return bool(
            self.requests.open
            or self.reports.open
            or docket.exe_q
            or docket.standby
            or self.coordinator.repairer.mending
            or self.serving.proposals
            or self.sparing.is_busy
        )

    def start(self, now: Time) -> Sequence[Output]:
        """Begin: gossip at a random time in each interval, and join where there is whom to join."""
        self._set_round_timer(0)
        if self._contacts:
            self._join()
        return self._conclude()

    def handle(self, event: Input, now: Time) -> Sequence[Output]:
        """Take in one input; everything that follows from it comes back."""
        if self.stopped:
            return []
        match event:
            case Received(sender, message):
                if type(message) is Publication:
                    return self.receive(sender, message, now)
                handler = self._handlers.get(type(message))
                if handler is not None:
                    self._now = now
                    handler(sender, message)
            case TimerFired(key):
                self._now = now
                self._on_timer(key)
            case PeerLost(peer, incarnation):
                self._now = now
                self._lose(peer, incarnation)
            case Publish(topic, payload):
                return self._publish(topic, payload, now)
            case LinkBehind(peer):
                self.dissemination.on_behind(peer)
            case LinkReady(peer):
                self._now = now
                self._spread_over_links()
                self.dissemination.on_ready(peer, now)
            case Replay(topic):
                self._now = now
                self._spread_over_links()
                self.dissemination.replay(topic, now)
            case Subscribe(added, dropped):
                self._now = now
                self.requests.resubscribe(added, dropped)
            case Depart():
                self._depart()
        return self._conclude()

    def receive(self, sender: NodeId, publication: Publication, now: Time) -> Sequence[Output]:
        """A publication came in. Nothing else of this node changes by it, so nothing has to be settled."""
        if self.stopped:
            return ()
        if not self.dissemination.in_use:
            self._now = now
            self._spread_over_links()
        return self.dissemination.receive(sender, publication, now)

    def _publish(self, topic: Topic, payload: bytes, now: Time) -> Sequence[Output]:
        """Publishing on a topic makes it part of the node's interest (spidercast 2)."""
        self._now = now
        self.dissemination.check_payload(payload)
        if topic not in self.requests.wanted:
            self.requests.resubscribe((topic,), ())
            self._spread_over_links()
            return [*self._conclude(), *self.dissemination.publish(topic, payload, now)]
        if not self.dissemination.in_use:
            self._spread_over_links()
        return self.dissemination.publish(topic, payload, now)

    def _on_spread(self, sender: NodeId, message: Any) -> None:
        if not self.dissemination.in_use:
            self._spread_over_links()
        self.dissemination.on_control(sender, message, self._now)

    def _spread_over_links(self) -> None:
        """Tell the dissemination which links there are, and who wants what at their far ends."""
        topics_of = self.book.topics_of
        neighbours = {
            node: (link.ref, topics_of(node)) for node, link in self.links.links.items() if link.state in (UP, FADING)
        }
        self.dissemination.refresh(topics_of(self.book.id), self.requests.wanted, neighbours, self._now)

    def _conclude(self) -> Sequence[Output]:
        """Hear what this node has to say to itself, then hand everything over."""
        if not self.stopped:
            self._settle()
        while self.out.to_oneself and not self.stopped:
            message = self.out.to_oneself.popleft()
            self._handlers[type(message)](self.book.id, message)
            if not self.stopped:
                self._settle()
        return self.out.take()

    def _on_timer(self, key: Any) -> None:
        if key == "round":
            self._round()
            return
        kind = key[0]
        if kind == TIMER:
            self.dissemination.on_timer(key, self._now)
        elif kind == "link":
            self.links.on_timer(key[1])
        elif kind == "mend":
            self.coordinator.on_timer(key)
        elif kind == "locate":
            self._located(self.locator.on_timer(key[1], key[2]))
        elif kind == "arrive":
            self.requests.ask_again(key[1])
        elif kind == "report":
            self.reports.report(key[1])
        elif kind == "join" and not self.ring.members:
            self._join()
        elif kind in ("spare", "fade"):
            self.sparing.on_timer(key)
        elif kind == "depart":
            self._say_goodbye(handled=False)

    def _round(self) -> None:
        """Once in each interval of T_wait (Alg. 3)."""
        self.book.expire(self._now)
        self.gossip.exchange()
        self._set_round_timer(self.config.gossip_period - self._offset)

    def _set_round_timer(self, to_next_interval: Time) -> None:
        """A random time in the next interval (Alg. 3 line 1)."""
        self._offset = self._random.randrange(self.config.gossip_period)
        self.out.set_timer("round", to_next_interval + self._offset)

    def _on_locate(self, sender: NodeId, message: Locate) -> None:
        nodes = [*self.ring.members.values(), *(ref for ref, _ in self.sampling.view.values())]
        after = sorted({ref.id: ref for ref in nodes}.values(), key=lambda ref: clockwise(message.target, ref.id))
        near = [ref for ref in after if ref.id != message.asker.id][: 2 * self.config.resilience]
        before = [ref for ref in reversed(after) if ref.id != message.asker.id][: self.config.resilience]
        reply = {ref.id: ref for ref in (*near, *before)}
        self.out.send(message.asker, Located(message.nonce, message.target, tuple(reply.values())))

    def _on_located(self, sender: NodeId, message: Located) -> None:
        self._located(self.locator.on_located(message, sender))

    def _located(self, found: tuple[Any, Ref | None, list[Ref]] | None) -> None:
        if found is None:
            return
        purpose, successor, met = found
        if purpose[0] == "linked":
            self.coordinator.repairer.on_located(purpose, successor)
        elif purpose[0] == "report":
            self.reports.on_located(purpose[1], successor)
        elif purpose[0] == "join":
            self._take_place(met)

    def _join(self) -> None:
        self.out.set_timer(("join",), self.config.standby_timeout)
        self.locator.search(self.book.id, ("join",), self._contacts)

    def _take_place(self, met: Iterable[Ref]) -> None:
        """The place on the circle is found: say hello to those around it, then ask the successor for links."""
        for ref in met:
            self.ring.consider(ref)
            self.sampling.add(ref)
        self.gossip.ring_changed = True
        if not self.ring.members:
            return
        for node in sorted(self.ring.members):
            self.gossip.offer(self.ring.members[node])
        self.requests.join()

    def _on_arrive(self, sender: NodeId, message: Arrive) -> None:
        """Only the nearest successor handles it; who knows a nearer one passes it on."""
        self.gossip.learn((message.descriptor,))
        nearest = self.ring.nearest_successor_of(message.event.node)
        if nearest != self.book.id:
            self.out.send(self.ring.members[nearest], message)
            return
        self.coordinator.on_arrive(message)

    def _depart(self) -> None:
        self.requests.depart()
        if not self.ring.members:
            self._say_goodbye(handled=True)

    def _say_goodbye(self, handled: bool) -> None:
        told = {**self.ring.members, **{node: link.ref for node, link in self.links.links.items()}}
        for node in sorted(told):
            self.out.send(told[node], Goodbye(self.ref, handled))
        self.stopped = True
        if self._registry is not None:
            self._registry.withdraw(self.book.id)
        self.out.notify("left")

    def _on_goodbye(self, sender: NodeId, message: Goodbye) -> None:
        if message.handled:
            event = EventId(message.ref.id, message.ref.incarnation, "leave")
            self.coordinator.docket.remember(event, ())
            self.links.drop(sender)
        self._lose(message.ref.id, message.ref.incarnation)

    def _lose(self, node: NodeId, incarnation: int | None) -> None:
        """A node is gone: report it if it was a neighbour, handle or watch its event if it was a predecessor."""
        known = self.book.known.get(node)
        member = self.ring.members.get(node)
        link = self.links.links.get(node)
        refs = (member, link.ref if link else None, known.digest.ref if known else None)
        lives = [ref.incarnation for ref in refs if ref is not None]
        life = incarnation if incarnation is not None else max(lives, default=0)
        if link is not None and link.ref.incarnation > life:
            link = None
        if known is not None and known.digest.ref.incarnation > life:
            known = None
        was_predecessor = node in self.views.shadows and node in self.ring.get_preds()
        backups = self.views.backups_of(node) if was_predecessor else []
        topics = tuple(sorted(self.book.topics_of(node) & self.book.topics_of(self.book.id)))
        self.book.bury(node, life, self._now)
        if not any(alive > life for alive in lives):
            self._forget(node)
        if link is not None:
            self.links.drop(node)
        if was_predecessor and known is not None:
            self.coordinator.on_loss(known, backups)
        self.coordinator.on_node_lost(node, life)
        if link is not None:
            self.reports.on_neighbour_lost(Ref(node, life, ""), topics, link.successors)
        self.requests.ask_all_again()

    def _forget(self, node: NodeId) -> None:
        """Nothing newer is known of a lost node: it has no place here any more."""
        self.sampling.drop(node)
        self.views.note_loss(node)
        self.views.select_view()
        self._connected.discard(node)
        if self.ring.drop(node):
            self.gossip.ring_changed = True

    def _on_handled(self, _: NodeId, message: Handled) -> None:
        if self.reports.close(message.event):
            self.links.changed = True
        if self.requests.on_handled(message.event, message.mended):
            self._say_goodbye(handled=True)
            return
        self.coordinator.on_handled(message.event, message.mended)

    def _on_link_open(self, _: NodeId, message: LinkOpen) -> None:
        self.gossip.learn((message.descriptor,))
        if self.requests.departing and message.descriptor.digest.ref.id not in self.links.links:
            self.out.send(message.descriptor.digest.ref, LinkClose(self.ref.incarnation))
            return
        self.links.on_open(message)

    def _on_link_ok(self, _: NodeId, message: LinkOk) -> None:
        self.gossip.learn((message.descriptor,))
        self.links.on_ok(message)

    def _reply(self, sender: NodeId, message: Any) -> None:
        known = self.ring.members.get(sender) or (self.links.links[sender].ref if sender in self.links.links else None)
        if known is not None:
            self.out.send(known, message)

    def _describe(self) -> Descriptor:
        """This node's descriptor, as new as its links.

        A lost neighbour counts until its loss is known to be mended: were this node lost too, the two would be linked
        losses although the link is down already.
        """
        if self.links.changed:
            self.links.changed = False
            digest = self.book.me.digest
            lost = (ref for ref in self.reports.unmended() if ref.id not in self.links.links)
            neighbours = tuple(sorted((*self.links.neighbours(), *lost), key=lambda ref: ref.id))
            if neighbours != self.book.me.neighbours:
                digest = Digest(digest.ref, digest.topics_version, digest.links_version + 1)
                self.book.describe(Descriptor(digest, self.book.me.topics, neighbours))
        return self.book.me

    def _settle(self) -> None:
        """After each input: keep what others rely on up to date, and publications on the links there are."""
        self._settle_overlay()
        if self.dissemination.in_use:
            self._spread_over_links()

    def _settle_overlay(self) -> None:
        """After each input: confirm links that came up, keep connections, tell others what changed."""
        if self.links.came_up or self.serving.proposals:
            self.serving.confirm_links()
        ring_changed = self.gossip.ring_changed
        if ring_changed:
            self.gossip.ring_changed = False
            self.links.successors = self.ring.successor_refs()
            self.views.follow(self.ring.get_preds(), self.coordinator.pinned())
            self.views.select_view()
            self.gossip.fetch_predecessors()
        if self.links.changed or ring_changed or self.book.me.digest is not self._told_digest:
            self._describe()
            self._keep_connections()
            self._tell_status()

    def _tell_status(self) -> None:
        """Successors hear of every change; neighbours of changed successors or topics, to report and link by."""
        me, successors = self.book.me, self.links.successors
        before = self._told_digest
        changed = me.digest is not before
        everyone = successors != self._told_successors or before.topics_version != me.digest.topics_version
        targets = {ref.id: ref for ref in successors}
        if everyone:
            targets.update({node: link.ref for node, link in self.links.links.items()})
        for node in sorted(targets):
            if changed or everyone or node not in self._told:
                self.out.send(targets[node], Status(me.digest, me.neighbours, successors))
        self._told = {ref.id for ref in successors}
        self._told_successors, self._told_digest = successors, me.digest

    def _keep_connections(self) -> None:
        refs = {node: self.ring.members[node] for node in (*self.ring.get_preds(), *self.ring.get_succs())}
        refs.update({node: link.ref for node, link in self.links.links.items()})
        for node in sorted(refs.keys() - self._connected):
            self.out.connect(refs[node])
        for node in sorted(self._connected - refs.keys()):
            self.out.disconnect(node)
        self._connected = set(refs)
