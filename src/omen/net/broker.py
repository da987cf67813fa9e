"""A node as an application embeds it: publish, subscribe, no central server."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import assert_never

import msgspec

from omen.errors import CannotWrite, InvalidInput
from omen.net.core_spec import CoreSpec, Preset
from omen.net.descriptors import make_room
from omen.net.driver import Driver, ForApplication
from omen.net.engine import load_engine, load_soon
from omen.net.errors import NameTaken, NotHeld, NotJoined, Stopped
from omen.net.flow import Stalled, block_of, fields_of, stalled_streams, wait_for_room, wait_until_held
from omen.net.former_names import FormerNames
from omen.net.inbox import INBOX, WINDOW, Gap, Inbox, Message
from omen.net.joining import POLL_S, SeedSearch, wait_until_joined
from omen.net.name_guard import NameGuard
from omen.net.names import join_address, next_incarnation, topic_key
from omen.net.observe.health import HealthWatch
from omen.net.observe.http_server import serve_pages
from omen.net.observe.latency import DeliveryLatency
from omen.net.observe.logs import Log
from omen.net.observe.metrics import Histogram
from omen.net.security.admission import AdmissionControl
from omen.net.security.credentials import check_own
from omen.net.security.hello import REVISION, Hello
from omen.net.seeds import SeedList
from omen.net.settings import Limits, NodeConfig
from omen.net.state import last_incarnation, write_state
from omen.net.transport.accepting import Acceptor, listen_on
from omen.protocol import events
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import EventKind, Ref
from omen.protocol.messages.publications import Fields
from omen.protocol.node import OmenNode
from omen.protocol.status import NodeStatus

__all__ = ["Broker", "NameTaken", "NotHeld", "NotJoined", "Origin", "Stalled", "Stopped"]

WAIT_BOUNDS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
HOLDING = 0.75  # of the time to leave: until neighbours hold what was accepted; the rest is for the repair
FIRST_RETURN_S, LONGEST_RETURN_S = 1.0, 30.0
UNFLUSHED = 64  # publications after which the loop gets a turn, so that a tight loop of them cannot starve it


class Origin(msgspec.Struct, frozen=True):
    """Where a node of a designed overlay comes from: its place in it, its incarnation, the socket it listens on."""

    preset: Preset
    incarnation: int
    socket: socket.socket


class Broker(FormerNames):
    """One node of the cluster, alive inside `async with`.

    Subscriptions last until `unsubscribe` or until the broker stops. `publish` makes a topic part of the node's
    interest: it is then carried for others like any subscription, without being delivered here.
    """

    def __init__(self, config: NodeConfig | None = None, origin: Origin | None = None) -> None:
        self.config = config or NodeConfig()
        self.name = self.config.name
        self.node = place_of(self.name)
        self.address = ""
        self.http_address = ""
        self.mqtt_addresses: list[str] = []
        self.driver: Driver | None = None
        self.inbox = Inbox(self.config.limits)
        self.names: dict[int, str] = {}
        self.delivered = 0
        self.published = 0
        self.latency = DeliveryLatency()
        self.publish_waits = Histogram(WAIT_BOUNDS_S)
        self._overflows = 0
        self.log = Log(self.name, self.names)
        self._admission: AdmissionControl | None = None
        self.guard = NameGuard(self.name, self.log, self._give_way)
        self._search: SeedSearch | None = None
        self._seeking: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._loading: asyncio.TimerHandle | None = None
        self._origin = origin
        self._servers: list[asyncio.Server | Acceptor] = []
        self.subscribed_keys: set[int] = set()
        self._held: dict[int, int] = {}
        self._news = asyncio.Event()
        self._has_left = False
        self._is_direct = False
        self._is_leaving = False
        self._is_released = asyncio.Event()
        self.health = HealthWatch(self)
        self._is_draining = False
        self._has_arrived = False
        self._since_yield = 0

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop()
        except NotHeld:
            if error is None:
                raise

    @property
    def core(self) -> OmenNode | None:
        """The protocol node inside; None until the broker runs."""
        return self.driver.core if self.driver is not None else None

    @property
    def admission(self) -> AdmissionControl:
        """Admission control, and with it the access rules. Stopped: the broker has not been started."""
        if self._admission is None:
            raise Stopped(f"broker {self.name!r} is not running")
        return self._admission

    def status(self) -> NodeStatus:
        """The protocol node as it is now. Stopped: it has not begun yet."""
        if self.driver is None:
            raise Stopped(f"broker {self.name!r} is not running")
        return self.driver.status()

    @property
    def is_joined(self) -> bool:
        """Whether this node has its place and its links; the first node of a cluster has from the beginning."""
        core = self.core
        if core is None or core.stopped or core.is_joining or self.guard.error is not None:
            return False
        return self._has_arrived or core.has_ring

    @property
    def unreachable_seeds(self) -> list[str]:
        """Seeds that did not answer when they were last asked."""
        return self._search.unreachable if self._search is not None else []

    @property
    def is_leaving(self) -> bool:
        """Whether it was asked to drain or to stop."""
        return self._is_leaving or self._is_draining

    @property
    def gaps(self) -> int:
        """Gaps the application is told of, for either reason."""
        return self.inbox.gaps.total()

    @property
    def slow_consumers(self) -> list[str]:
        """Neighbours that do not keep up now: when they read again they get what windows still keep, else a `Gap`."""
        return self._running().peers.queues.slow_consumers()

    @property
    def stalled(self) -> list[Stalled]:
        """Streams subscribed to that wait for a hole, and have for a while; the longest first."""
        return stalled_streams(self)

    @property
    def topics(self) -> list[str]:
        """What is subscribed to."""
        return sorted(self.names[key] for key in self.subscribed_keys)

    async def start(self) -> None:
        """Listen, find the cluster, join it.

        NotJoined: no member could be reached within `join_timeout_s`, or all refused; NameTaken: another living node
        has this name.
        """
        config = self.config
        admission = self._admission = AdmissionControl.of(config, self.log)
        check_own(admission.credentials, config.cluster, config.name)
        admission.fit_descriptors(make_room(config.limits.connections + 2 * config.limits.outgoing))
        admission.access.check_subscribe(config.topics)
        self.subscribed_keys = {self._key(topic) for topic in config.topics}
        listener = self._origin.socket if self._origin is not None else listen_on(config.listen)
        try:
            own_address = join_address(*listener.getsockname()[:2])
            self.address = config.advertise or own_address
            self._is_direct = self.address in (own_address, config.listen) or config.refusal_is_failure
            if config.engine == "eager":
                await asyncio.get_running_loop().run_in_executor(None, load_engine)
            if config.http:
                pages = listen_on(config.http)
                self.http_address = join_address(*pages.getsockname()[:2])
                self._servers.append(await serve_pages(self, pages))
            await self._join(listener)
        except BaseException:
            await self.abandon()
            listener.close()
            raise
        self.health.begin()
        if config.engine == "soon":
            self._loading = load_soon()
        if config.security.files:
            self._watcher = asyncio.ensure_future(admission.watch_keys(self.renew_keys))
        self.log.info("node_started", address=self.address, http=self.http_address, topics=len(self.subscribed_keys))

    async def _join(self, listener: socket.socket) -> None:
        """Take connections from the first moment on, and look for others meanwhile."""
        await self._begin()
        self._servers.append(Acceptor(listener, self.admission, lambda: self._running().peers.accept()))
        await self._enter()

    async def _begin(self) -> None:
        """Begin an incarnation, alone as yet."""
        config, origin = self.config, self._origin
        last = last_incarnation(config.state, self.name)
        incarnation = origin.incarnation if origin is not None else next_incarnation(last)
        session, seed = (int.from_bytes(os.urandom(size), "big") for size in (6, 8))
        hello = Hello(
            config.cluster,
            self.node,
            self.name,
            incarnation,
            self.address,
            session,
            REVISION,
            is_direct=self._is_direct,
            process=os.getpid(),
            joining=origin is None,
        )
        driver = self.driver = Driver(hello, self.log, self.admission, self._deliver, self._hear, self.guard)
        self.guard.begin()
        self._has_arrived = False
        self._keep_state(incarnation, left=False)
        topics = tuple(sorted(self.subscribed_keys))
        preset = origin.preset if origin is not None else None
        spec = CoreSpec(Ref(self.node, incarnation, self.address), topics, config.protocol, seed, (), preset)
        self._origin = None
        driver.start(spec, config.record)

    async def _enter(self) -> None:
        """Join through any seed that answers; go on asking them for as long as this node lives."""
        driver, config = self._running(), self.config
        if self._search is None:
            seeds = SeedList(config.join, config.join_file)
            own = (self.address, config.listen)
            self._search = SeedSearch(seeds, own, lambda address: self._running().peers.greet(address), self, self.log)
            self._seeking = asyncio.ensure_future(self._search.run())
        await wait_until_joined(self._search, self, config.limits.join_timeout_s)
        self._has_arrived = driver.is_member = True

    def set_seeds(self, addresses: tuple[str, ...], file: str = "") -> None:
        """Ask these from now on."""
        if self._search is not None:
            self._search.seeds.set_addresses(addresses, file)

    def on_contact(self, ref: Ref) -> None:
        """A seed has answered."""
        if self.guard.error is None and self.core is not None and self.driver is not None:
            self.driver.feed(events.ContactsFound((ref,)))

    def on_outcome(self) -> None:
        """Something came of asking a seed."""
        self._news.set()

    def is_connected(self, node: int) -> bool:
        """Whether a connection to a node is kept."""
        return self.driver is not None and self.driver.peers.is_connected(node)

    def estimate_nodes(self) -> int:
        """How many nodes the cluster has, as far as this one can tell from the ring around it."""
        core = self.core
        return 1 if core is None else core.estimate_nodes()

    def _give_way(self) -> None:
        """Another living node has this name: a member stops, tells its application, and waits for the name."""
        self._news.set()
        if self.driver is not None and self.driver.is_member and self._returning is None and not self._is_leaving:
            error = self.guard.error or NameTaken(f"the name {self.name!r} is taken")
            self.inbox.put_error(error)
            self._returning = asyncio.ensure_future(self._return())

    async def _return(self) -> None:
        """Join again under this name once it is free."""
        pause_s = FIRST_RETURN_S
        while not self._is_leaving:
            await self._running().stop()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_RETURN_S)
            await self._begin()
            try:
                await self._enter()
            except NotJoined as error:
                self.log.warning("rejoin_refused", cause=str(error))
                continue
            self.log.info("node_rejoined", incarnation=self._running().incarnation)
            break
        self._returning = None

    def _keep_state(self, incarnation: int, left: bool) -> None:
        if self.config.state:
            facts = {"name": self.name, "cluster": self.config.cluster, "incarnation": incarnation, "left": left}
            places = {"address": self.address, "http": self.http_address}
            try:
                write_state(self.config.state, self.name, facts | places)
            except CannotWrite as error:  # the clock gives incarnations that are higher too
                self.log.warning("state_not_kept", cause=str(error))

    def _running(self) -> Driver:
        if self.driver is None or self._has_left:
            raise Stopped(f"broker {self.name!r} is not running")
        return self.driver

    def _serving(self) -> Driver:
        """For the application: NameTaken while another living node has this one's name."""
        if self._returning is not None and self.guard.error is not None:
            raise self.guard.error
        return self._running()

    def _key(self, topic: str) -> int:
        key = topic_key(topic)
        if key not in self.names:
            self.names[key] = topic
            if self._admission is not None:
                self._admission.access.know_topic(key, topic)
        return key

    def _deliver(self, output: events.Deliver) -> None:
        """A publication for the application."""
        topic = output.topic
        if topic in self.subscribed_keys:
            publisher, sequence = output.publisher, output.sequence
            name = self._label(publisher)
            message = Message(
                self.names[topic], output.payload, name, output.incarnation, sequence, output.fields, publisher
            )
            if self.inbox.put(message):
                self.delivered += 1
                if output.fields and publisher != self.node:
                    self.latency.observe(output.fields)
            elif self.inbox.gaps[INBOX] > self._overflows:
                self._overflows = self.inbox.gaps[INBOX]
                self.log.warning(
                    "inbox_overflow", topic=message.topic, publisher=name, sequence=sequence, messages=len(self.inbox)
                )

    def _label(self, node: int) -> str:
        """The name of a node, where it was ever a peer here, else its place."""
        if node == self.node or self.driver is None:
            return self.name
        return self.driver.peers.label_of(node)

    def _hear(self, output: ForApplication) -> None:
        """What else the core has for the application."""
        match output:
            case events.Gap(topic, publisher, incarnation, first, last):
                if topic in self.subscribed_keys:
                    gap = Gap(self.names[topic], self._label(publisher), incarnation, first, last, WINDOW, publisher)
                    self.inbox.put_gap(gap)
                    self.log.warning(
                        "gap_told",
                        topic=gap.topic,
                        publisher=gap.publisher,
                        incarnation=incarnation,
                        first=first,
                        last=last,
                        reason=gap.reason,
                    )
            case events.Held(topic, sequence):
                self._held[topic] = sequence
                self._news.set()
            case events.Left():
                self._has_left = True
                self._news.set()
            case events.RequestHandled(event):
                self._has_arrived = self._has_arrived or event.kind is EventKind.JOIN
                self._news.set()
            case events.Rejoined():
                self._has_arrived = not self._running().contacts
                self._news.set()
            case events.NameConflict() | events.OwnNameSeen():
                pass
            case (
                events.RepairStageEntered()
                | events.RepairFinished()
                | events.RepairStopped()
                | events.PeerSuspected()
                | events.SuspicionRefuted()
                | events.StoodStill()
                | events.PeerDeclaredFailed()
                | events.PeerLeft()
                | events.SplitTopicsLinked()
                | events.LinkUp()
                | events.LinkPruned()
                | events.WindowCut()
            ):
                self._news.set()
            case _:
                assert_never(output)

    async def wait_for_news(self, at_most: float) -> None:
        """Until something has happened that may concern those who wait, or the time is over."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most):
                await self._news.wait()

    async def subscribe(self, *topics: str, replay: bool = False, timeout: float | None = None) -> None:
        """Want these topics; returns when this node is linked to their subscribers.

        `replay`: deliver also what neighbours still keep, not only what comes next; not for a topic that was published
        on here before. TimeoutError: it takes longer than `timeout` seconds; the subscription stands and comes into
        force later. Denied: the access rules forbid it.
        """
        driver = self._serving()
        self.admission.access.check_subscribe(topics)
        keys = [key for key in dict.fromkeys(map(self._key, topics)) if key not in self.subscribed_keys]
        if not keys:
            return
        self.subscribed_keys.update(keys)
        if replay:
            for key in keys:
                driver.feed(events.Replay(key))
        await self._link(tuple(keys), timeout)

    async def carry(self, topic: str, timeout: float | None = None) -> None:
        """Carry a topic without being handed what comes on it, as for a publisher that may not subscribe."""
        self._serving()
        self.admission.access.check_publish(topic)
        await self._link((self._key(topic),), timeout)

    async def _link(self, keys: tuple[int, ...], timeout: float | None) -> None:
        driver = self._running()
        driver.feed(events.Subscribe(keys))
        async with asyncio.timeout(timeout):
            while not (self.is_joined and driver.status().waiting.isdisjoint(keys)) and not self._has_left:
                await self.wait_for_news(POLL_S)

    async def unsubscribe(self, *topics: str) -> None:
        """Give these topics up. They are carried for others until that is repaired, which is not waited for."""
        driver = self._running()
        keys = [key for key in dict.fromkeys(map(self._key, topics)) if key in self.subscribed_keys]
        self.subscribed_keys.difference_update(keys)
        if keys:
            driver.feed(events.Subscribe((), tuple(keys)))

    async def publish(
        self,
        topic: str,
        payload: bytes | bytearray | memoryview,
        headers: Mapping[str, str] | None = None,
        *,
        fields: Fields | None = None,
    ) -> int:
        """Publish to all subscribers of the topic; the sequence among this node's publications on it.

        Backpressure: waits for nodes that do not keep up, `publish_patience_s` at most. A link that does not catch up
        makes its peer a slow consumer: it gets what it missed when it reads again, as far as windows still keep it, and
        a `Gap` for the rest. `headers` go along, or `fields`, which hold more than them (expiry, reply-to, content
        type); nodes of version 0.1 do not pass them on. When it returns the publication is accepted: this node keeps it
        in its window, and `wait_held` tells when neighbours hold it, `slow_consumers` apart. InvalidInput: it is too
        large, or not bytes. Denied: the access rules forbid it.
        """
        driver = self._serving()
        if self._is_draining:
            raise Stopped(f"broker {self.name!r} is leaving: it takes no more publications")
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise InvalidInput(f"a payload must be bytes, not {type(payload).__name__}")
        self.admission.access.check_publish(topic)
        block = fields_of(headers) if fields is None else block_of(fields)
        content, limit = bytes(payload), self.config.limits.payload_bytes
        if len(content) > limit:
            raise InvalidInput(f"a publication of {len(content)} bytes on {topic!r}: at most {limit} are taken")
        key = self._key(topic)
        begun = time.monotonic()
        if driver.peers.queues.congested():
            await driver.peers.queues.wait_for_congested()
        if driver.core is not None and driver.core.room(key, driver.now()) < len(content):
            await wait_for_room(driver, key, len(content), self.config.limits.publish_patience_s)
        self.publish_waits.observe(time.monotonic() - begun)
        self._since_yield += 1
        if self._since_yield >= UNFLUSHED:
            self._since_yield = 0
            await asyncio.sleep(0)
        sequence = self._running().publish(key, content, self.latency.stamp(block))
        self.published += 1
        return sequence

    async def drain(self, timeout: float | None = None) -> int:
        """Take no more publications, and wait until neighbours hold all that were accepted; how many they do not.

        Deliveries go on. `timeout`: `leave_timeout_s` where it is not given.
        """
        self._is_draining = True
        timeout_s = self.config.limits.leave_timeout_s if timeout is None else timeout
        return await wait_until_held(self._running(), timeout_s)

    async def wait_held(self, topic: str, sequence: int, timeout: float | None = None) -> bool:
        """Wait until the neighbours on this topic have all up to `sequence`; whether they did within `timeout`."""
        key = self._key(topic)
        try:
            async with asyncio.timeout(timeout):
                while self._held.get(key, 0) < sequence:
                    self._running()
                    await self.wait_for_news(POLL_S)
        except TimeoutError:
            return False
        return True

    def held(self, topic: str) -> int:
        """Up to which sequence the neighbours on a topic hold what this node published on it."""
        return self._held.get(self._key(topic), 0)

    def wants(self, topic: str) -> bool:
        """Whether this node has subscribed to a topic."""
        return self._key(topic) in self.subscribed_keys

    def is_linking(self, topic: str) -> bool:
        """Whether this node still waits to be linked to the subscribers of a topic."""
        key = self._key(topic)
        return any(key in asked.added for asked in self._running().status().repairs.requests.values())

    def has_neighbours(self, topic: str) -> bool:
        """Whether a neighbour wants this topic too."""
        status, key = self._running().status(), self._key(topic)
        return any(key in status.membership.topic_sets.get(node, ()) for node in status.links)

    def messages(self) -> AsyncIterator[Message | Gap]:
        """What arrives, as it arrives; ends when the broker stops."""
        return self.inbox.take()

    def set_limits(self, limits: Limits) -> None:
        """Go by these from now on; a connection keeps the write buffer it began with."""
        self.inbox.set_limits(limits)
        self.admission.set_limits(limits)
        self._running().peers.renew_limits()

    async def renew_keys(self, settings: NodeConfig | None = None) -> bool:
        """Read keys, and from new settings refused names and access rules, again; whether anything changed.

        Connections made by former keys are made again, one after the other; nothing is lost over it.
        """
        driver = self._running()
        told = (settings.security, settings.access) if settings is not None else (None, None)
        changed = self.admission.renew(*told)
        if changed:
            await driver.peers.renew()
        return changed

    async def stop(self) -> None:
        """Leave in good order: neighbours hold what was accepted, and are linked around this node, before it goes.

        NotHeld: after three quarters of `leave_timeout_s` they do not hold all of it. The node has stopped then too,
        as it has where this is cancelled: at once, and everything is released. It may be called any number of times.
        """
        if self.driver is None:
            return
        if self._is_leaving:
            await self._is_released.wait()
            return
        self._is_leaving = True
        try:
            left = await self._leave(self.driver)
        finally:
            await self.abandon()
        if left:
            self.log.warning("publications_not_held", count=left)
            raise NotHeld(f"node {self.name!r} has left: neighbours do not hold {left} of its publications")

    async def _leave(self, driver: Driver) -> int:
        """Leave in good order; how many publications neighbours do not hold."""
        core, left = driver.core, 0
        if core is None or core.stopped:
            return left
        deadline = asyncio.get_running_loop().time() + self.config.limits.leave_timeout_s
        self._is_draining = True
        if self.is_joined:
            left = await wait_until_held(driver, HOLDING * self.config.limits.leave_timeout_s)
        driver.feed(events.Depart())
        while not self._has_left and asyncio.get_running_loop().time() < deadline:
            await self.wait_for_news(POLL_S)
        self.log.info("node_left", repaired=self._has_left)
        self._keep_state(core.ref.incarnation, left=True)
        return left

    async def abandon(self) -> None:
        """Stop at once, without a word to any peer. Cancelled or not, everything is released."""
        self._has_left = True
        self.health.end()
        if self._loading is not None:
            self._loading.cancel()
        for task in (self._watcher, self._seeking, self._returning):
            if task is not None:
                task.cancel()
        for server in self._servers:
            server.close()
        self._servers.clear()
        try:
            if self.driver is not None:
                await self.driver.stop()
        finally:
            self.inbox.close()
            self._is_released.set()
