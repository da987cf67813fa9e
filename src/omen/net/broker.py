"""A node as an application embeds it: publish, subscribe, no central server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import assert_never

from omen.errors import InvalidInput
from omen.net.descriptors import make_room
from omen.net.driver import ForApplication
from omen.net.engine import load_engine, load_soon
from omen.net.errors import NameTaken, NotHeld, NotJoined, Stopped
from omen.net.flow import Stalled, block_of, fields_of, stalled_streams, wait_for_room, wait_until_held
from omen.net.former_names import FormerNames
from omen.net.inbox import INBOX, WINDOW, Gap, Inbox, Message
from omen.net.joining import POLL_S
from omen.net.member import ClusterMember, Origin
from omen.net.names import join_address, topic_key
from omen.net.observe.health import HealthWatch
from omen.net.observe.http_server import PageServer, serve_pages
from omen.net.observe.latency import DeliveryLatency
from omen.net.observe.metrics import Histogram
from omen.net.requests import Requests, fields_of_reply
from omen.net.security.admission import AdmissionControl
from omen.net.security.credentials import check_own
from omen.net.settings import Limits, NodeConfig
from omen.net.transport.accepting import Acceptor, listen_on
from omen.net.watching.gathering import Gathering
from omen.protocol import events
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.publications import Fields

__all__ = ["Broker", "NameTaken", "NotHeld", "NotJoined", "Origin", "Stalled", "Stopped"]

WAIT_BOUNDS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
BYTES = (bytes, bytearray, memoryview)
UNFLUSHED, UNFLUSHED_BYTES = 64, 1 << 16  # publications, or parts of so many bytes, after which the loop gets a turn


class Broker(ClusterMember, FormerNames):
    """One node of the cluster, alive inside `async with`.

    Subscriptions last until `unsubscribe` or until the broker stops. `publish` makes a topic part of the node's
    interest: it is then carried for others like any subscription, without being delivered here.
    """

    def __init__(self, config: NodeConfig | None = None, origin: Origin | None = None) -> None:
        super().__init__(config or NodeConfig(), origin)
        self.inbox = Inbox(self.config.limits)
        self.delivered = 0
        self.published = 0
        self.latency = DeliveryLatency()
        self.publish_waits = Histogram(WAIT_BOUNDS_S)
        self.health = HealthWatch(self)
        self._overflows = 0
        self._watcher: asyncio.Task[None] | None = None
        self._loading: asyncio.TimerHandle | None = None
        self._servers: list[PageServer | Acceptor] = []
        self._is_released = asyncio.Event()
        self._since_yield = 0
        self._requests = Requests(self)
        self.gathering = Gathering(self)

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
        return sorted(self.names[key] for key in self.subscribed_keys if self.names[key] != self._requests.topic)

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

    def _key(self, topic: str) -> int:
        key = topic_key(topic)
        if key not in self.names:
            self.names[key] = topic
            if self._admission is not None:
                self._admission.access.know_topic(key, topic)
        return key

    def _deliver(self, output: events.Deliver) -> None:
        """A publication for the application."""
        if output.topic in self.subscribed_keys:
            message = self._message_of(output)
            if message.topic == self._requests.topic:
                self._requests.take(message)
            elif self.inbox.put(message):
                self.delivered += 1
                if message.fields and message.node != self.node:
                    self.latency.observe(message.fields)
            elif self.inbox.gaps[INBOX] > self._overflows:
                self._overflows = self.inbox.gaps[INBOX]
                told = {"sequence": message.sequence, "messages": len(self.inbox)}
                self.log.warning("inbox_overflow", topic=message.topic, publisher=message.publisher, **told)

    def _message_of(self, output: events.Deliver) -> Message:
        """As the application sees it. For each delivery: signatures are looked at only where there are any."""
        admission, driver, node = self._admission, self.driver, output.publisher
        topic = self.names[output.topic]
        name = self.name if node == self.node or driver is None else driver.peers.label_of(node)
        verified = admission is not None and admission.signatures is not None and self._is_verified(output)
        return Message(topic, output.payload, name, output.incarnation, output.sequence, output.fields, node, verified)

    def kept(self, topic: str) -> list[Message]:
        """What this node keeps of a topic it carries, whether the application has had it or not."""
        driver = self.driver
        if driver is None or driver.core is None:
            return []
        return list(map(self._message_of, driver.core.kept(self._key(topic))))

    def _on_name_taken(self, error: NameTaken) -> None:
        self.inbox.put_error(error)

    def _is_verified(self, output: events.Deliver) -> bool:
        """Whether it is signed by its publisher; of what this incarnation of the node says itself there is no doubt."""
        signatures = self.admission.signatures
        if signatures is None:
            return False
        core = self.core
        if output.publisher == self.node and core is not None and output.incarnation == core.ref.incarnation:
            return signatures.signer is not None
        return signatures.verifier is not None and signatures.verifier.is_verified(output)

    def _label(self, node: int) -> str:
        """The name of a node, where it was ever a peer here, else its place."""
        if node == self.node or self.driver is None:
            return self.name
        return self.driver.peers.label_of(node)

    def _hear(self, output: ForApplication) -> None:
        """What else the core has for the application."""
        match output:
            case events.Gap(topic, publisher, incarnation, first, last):
                if topic in self.subscribed_keys and self.names[topic] != self._requests.topic:
                    gap = Gap(self.names[topic], self._label(publisher), incarnation, first, last, WINDOW, publisher)
                    self.inbox.put_gap(gap)
                    told = {"first": first, "last": last, "reason": gap.reason}
                    self.log.warning(
                        "gap_told", topic=gap.topic, publisher=gap.publisher, incarnation=incarnation, **told
                    )
            case events.Held():
                self._held.hear(output)
                self._news.set()
            case events.Stored() | events.Fetched() | events.RecordKept() | events.RecordDropped():
                self.records.hear(output)
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
                | events.PeerBanned()
                | events.SplitTopicsLinked()
                | events.LinkUp()
                | events.LinkPruned()
                | events.WindowCut()
            ):
                self._news.set()
            case _:
                assert_never(output)

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
        large, or not bytes. Denied: the access rules forbid it. Stopped: the node drains or leaves, or has begun to.
        """
        driver = self._accepting()
        if not isinstance(payload, BYTES):
            raise InvalidInput(f"a payload must be bytes, not {type(payload).__name__}")
        self.admission.access.check_publish(topic)
        block = (fields_of(headers) if headers else b"") if fields is None else block_of(fields)
        content, limit = bytes(payload), self.config.limits.payload_bytes
        if len(content) > limit:
            raise InvalidInput(f"a publication of {len(content)} bytes on {topic!r}: at most {limit} are taken")
        key = self._key(topic)
        queues, core = driver.peers.queues, driver.core
        if queues.congested() or (core is not None and core.room(key, driver.now()) < len(content)):
            waited = await wait_for_room(driver, key, len(content), self.config.limits.publish_patience_s)
            self.publish_waits.observe(waited)
            driver = self._accepting()
        else:
            self.publish_waits.observe(0.0)
        self._since_yield += 1 + len(content) // UNFLUSHED_BYTES
        if self._since_yield >= UNFLUSHED:
            self._since_yield = 0
            await asyncio.sleep(0)
            driver = self._accepting()
        sequence = driver.publish(key, content, self.latency.stamp(block))
        self.published += 1
        return sequence

    async def request(
        self, topic: str, payload: bytes, headers: Mapping[str, str] | None = None, timeout: float = 5.0
    ) -> Message:
        """Publish a request, and wait for the first reply of a subscriber; others come to nobody. TimeoutError: none
        came in time. The first request takes longer than the next: those that reply are linked here.
        """
        return await self._requests.ask(topic, payload, headers, timeout)

    async def reply(self, message: Message, payload: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Reply to a request. InvalidInput: the message wants no reply."""
        topic, fields = fields_of_reply(message, headers)
        return await self.publish(topic, payload, fields=fields)

    async def drain(self, timeout: float | None = None) -> int:
        """Take no more publications, and wait until neighbours hold all that were accepted; how many they do not.

        Deliveries go on. `timeout`: `leave_timeout_s` where it is not given.
        """
        driver = self._running()
        self._is_draining = True
        return await wait_until_held(driver, self.config.limits.leave_timeout_s if timeout is None else timeout)

    async def wait_held(self, topic: str, sequence: int, timeout: float | None = None) -> bool:
        """Wait until the neighbours on this topic have all up to `sequence`; whether they have it within `timeout`."""
        acknowledgements = self._held  # of this incarnation: the next one counts from 1
        try:
            async with asyncio.timeout(timeout):
                while self.held(topic) < sequence:
                    self._running()
                    await self.wait_for_news(POLL_S)
                    if self._held is not acknowledgements:
                        return False
        except TimeoutError:
            return False
        return not self.lacks(topic, sequence)

    def held(self, topic: str) -> int:
        """Up to which sequence the neighbours on a topic hold what this node published on it, but what they `lack`."""
        return self._held.upto(self._key(topic))

    def lacks(self, topic: str, sequence: int) -> bool:
        """Whether some neighbour on a topic never had this publication of this node, and can no longer have it."""
        return self._held.lacks(self._key(topic), sequence)

    def wants(self, topic: str) -> bool:
        """Whether this node has subscribed to a topic."""
        return self._key(topic) in self.subscribed_keys

    def is_linking(self, topic: str) -> bool:
        """Whether this node waits to be linked to the subscribers of a topic, or for a repair in it."""
        core = self._running().core
        return core is not None and core.is_linking(self._key(topic))

    def has_neighbours(self, topic: str) -> bool:
        """Whether a neighbour wants this topic too."""
        status, key = self._running().status(), self._key(topic)
        return any(key in status.membership.topic_sets.get(node, ()) for node in status.links)

    def count_neighbours(self, topic: str) -> int:
        """How many neighbours want this topic too."""
        status, key = self._running().status(), self._key(topic)
        return sum(key in status.membership.topic_sets.get(node, ()) for node in status.links)

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
            self.records.close()
            self.inbox.close()
            self._is_released.set()
