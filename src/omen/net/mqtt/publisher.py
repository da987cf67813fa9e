"""What clients publish, on its way to the overlay: one after the other for each client, acknowledged when other nodes
hold it, refused where it cannot be published.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from mqtt5 import PubAckReasonCode

from omen.errors import Denied, InvalidInput, OmenError
from omen.net.mqtt import records
from omen.net.mqtt.client_link import ClientLink
from omen.net.mqtt.outputs import Publish, Retained
from omen.net.mqtt.session import ApplicationMessage, Stream
from omen.net.mqtt.stored import Published

if TYPE_CHECKING:
    from omen.net.driver import Driver
    from omen.net.mqtt.listener import FrontDoor

ACK_POLL_S = 0.005
PUBLISHED_AT_ONCE, BYTES_AT_ONCE = 400, 2 << 20
"""All clients together publish so much in one turn of the event loop, then what came of it is looked at."""
HELD_BACK_AT_MOST_S, HELD_BACK_POLL_S = 10.0, 0.03
TELL_BUSY_S, BUSY_S, BUSY_AT_MOST = 0.1, 1.0, 200
"""How often doors are told which topics are busy, how long that holds, and of how many."""
REASONS: tuple[tuple[type[OmenError], PubAckReasonCode], ...] = (
    (Denied, PubAckReasonCode.NOT_AUTHORIZED),
    (InvalidInput, PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
)
"""Why a message is not taken, however often it is sent. Of other errors a client may hope that they pass."""


class Publisher:
    """Publishes for the clients of one door. `active`: how many of them have something to publish just now;
    `held_back`: how often one waited for those who read; `failed`: messages that could not be published.
    """

    def __init__(self, front: FrontDoor) -> None:
        self._front = front
        self._broker = front.broker
        self._door = front.door
        self.active = 0
        self.announced: set[str] = set()
        self._own: dict[tuple[str, int], str] = {}
        self._unheld: dict[str, deque[tuple[int, int]]] = {}
        self._counted_by: Driver | None = None
        self._ack_loop: asyncio.Task[None] | None = None
        self.held_back = self.failed = 0
        self._busy_elsewhere: dict[str, tuple[frozenset[str], float]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._to_hold: set[int] = set()  # tokens that wait for both, neighbours and successors

    def publish(self, link: ClientLink, output: Publish) -> None:
        """Publish it after all that its client published before."""
        link.pending.append(output)
        link.read_if_room()
        if link.worker is None or link.worker.done():
            link.worker = self._front.start(self._publish_pending(link))

    def client_of(self, topic: str, sequence: int) -> str:
        """The client that published what comes back to this node, for subscriptions without what is their own."""
        return self._own.pop((topic, sequence), "")

    async def _publish_pending(self, link: ClientLink) -> None:
        self.active += 1
        try:
            await self._publish_all(link)
        finally:
            self.active -= 1

    async def _publish_all(self, link: ClientLink) -> None:
        count = size = 0
        while link.pending:
            output = link.pending.popleft()
            count, size = count + 1, size + len(output.message.payload)
            if count * self.active >= PUBLISHED_AT_ONCE or size * self.active >= BYTES_AT_ONCE:
                count = size = 0
                await asyncio.sleep(0)  # publishing need not wait for anything: others have their turn
            if output.token and self._is_busy(output.message.topic):
                await self._wait_for_readers(output.message.topic)
            try:
                await self._publish_one(output.message, output.token, output.at or time.time())
            except OmenError as error:
                self.failed += 1
                self._broker.log.warning("mqtt_publish_failed", topic=output.message.topic, cause=str(error))
                self._refuse(output.token, reason_of(error))
            link.read_if_room()

    # Back-pressure

    def _is_busy(self, topic: str) -> bool:
        now = time.time()
        return self._door.is_busy(topic, now) or any(
            now < until and topic in topics for topics, until in self._busy_elsewhere.values()
        )

    async def _wait_for_readers(self, topic: str) -> None:
        """Hold a message back, and so its acknowledgement, while clients that read have enough of its topic."""
        self.held_back += 1
        end = time.monotonic() + HELD_BACK_AT_MOST_S
        while self._is_busy(topic) and time.monotonic() < end:
            await asyncio.sleep(HELD_BACK_POLL_S)

    def tell_busy(self) -> None:
        """Clients here do not keep up: other doors are told until they do."""
        if self._telling is None or self._telling.done():
            self._telling = self._front.start(self._tell_busy())

    async def _tell_busy(self) -> None:
        is_over = False
        while not is_over:
            topics = self._door.busy_topics(time.time())[:BUSY_AT_MOST]
            is_over = not topics
            with suppress(OmenError):  # where it cannot be said, clients that do not keep up are disconnected
                await self._front.say(records.CLIENTS, records.TopicsBusy(self._front.keeper.owner, topics))
            await asyncio.sleep(TELL_BUSY_S)

    def hear_busy(self, said: records.TopicsBusy, now: float) -> None:
        """Clients of another door do not keep up with these topics."""
        if said.topics:
            self._busy_elsewhere[said.door] = (frozenset(said.topics), now + BUSY_S)
        else:
            self._busy_elsewhere.pop(said.door, None)

    async def _publish_one(self, message: ApplicationMessage, token: int, at: float) -> None:
        topic = message.topic
        if topic not in self.announced:
            self.announced.add(topic)
            self._door.learn_topics([topic], fresh=True)
            self._front.act()
            await asyncio.sleep(0)  # wildcards of clients here: what is published before it is subscribed to is missed
            await self._front.say(records.TOPICS, records.TopicsPublished([topic], fresh=True))
        message = self._door.address(message)
        fields = records.fields_of_message(message, self._door.is_not_for_its_client(message))
        sequence = await self._broker.publish(topic, message.payload, fields=fields)
        driver = self._count_anew()
        if self._broker.wants(topic):
            if message.client:
                self._own[topic, sequence] = message.client
        elif message.qos:
            self._door.remember(message, self._stream(topic), sequence, time.time())
        if message.retain:
            kept = Retained((round(at * 1000), self._broker.name), message)
            await self._front.say(records.RETAINED, records.RetainedMessages([kept]))
            if not await self._front.keeper.retain(kept):
                self._refuse(token, PubAckReasonCode.QUOTA_EXCEEDED)
                return
        if token and self._broker.config.mqtt_ack == "nodes" and self._front.keeper.lacks_copies(topic):
            self._hold(Published(message, self._stream(topic), sequence, time.time()), token)
        if token and self._count_anew() is not driver:
            self._refuse(token, PubAckReasonCode.UNSPECIFIED_ERROR)
        elif token:
            self._unheld.setdefault(topic, deque()).append((sequence, token))
            if self._ack_loop is None or self._ack_loop.done():
                self._ack_loop = self._front.start(self._acknowledge())

    def _stream(self, topic: str) -> Stream:
        return topic, self._broker.node, self._front.incarnation

    # Acknowledgements

    def _count_anew(self) -> Driver | None:
        """A node that gave its name up and has it again counts from 1: what nobody held by then is to be sent again.
        Returns what counts now.
        """
        driver = self._broker.driver
        if driver is not self._counted_by:
            self._counted_by = driver
            former, self._unheld = self._unheld, {}
            self._own.clear()
            for _, token in chain.from_iterable(former.values()):
                self._refuse(token, PubAckReasonCode.UNSPECIFIED_ERROR)
        return driver

    def _refuse(self, token: int, reason: PubAckReasonCode) -> None:
        self._to_hold.discard(token)
        self._door.refused(token, reason, time.time())
        self._front.act_soon()

    def _hold(self, published: Published, token: int) -> None:
        self._to_hold.add(token)

        def then(is_held: bool) -> None:
            if is_held:
                self._on_stored(token)
            else:
                self._refuse(token, PubAckReasonCode.QUOTA_EXCEEDED)

        self._front.start(self._front.keeper.hold(published, then))

    async def _acknowledge(self) -> None:
        """Acknowledge publications as soon as the neighbours on their topics hold them."""
        while self._unheld:
            self._count_anew()
            now = time.time()
            for topic, waiting in list(self._unheld.items()):
                held = self._broker.held(topic)
                if waiting[0][0] > held and not self._is_awaited(topic):
                    held = waiting[-1][0]
                ready = []
                while waiting and waiting[0][0] <= held:
                    ready.append(waiting.popleft())
                if not waiting:
                    del self._unheld[topic]
                for sequence, token in ready:
                    if token not in self._to_hold and self._broker.lacks(topic, sequence):
                        self._door.refused(token, PubAckReasonCode.UNSPECIFIED_ERROR, now)
                    else:
                        self._on_held(token, now)
            self._front.act()
            if self._unheld:
                await asyncio.sleep(ACK_POLL_S)

    def _on_held(self, token: int, now: float) -> None:
        """The neighbours in its topic hold a publication."""
        if token in self._to_hold:
            self._to_hold.discard(token)
        else:
            self._door.acknowledged(token, now)

    def _on_stored(self, token: int) -> None:
        """The successors of its topic hold a publication."""
        if token in self._to_hold:
            self._to_hold.discard(token)
        else:
            self._on_held(token, time.time())
            self._front.act_soon()

    def _is_awaited(self, topic: str) -> bool:
        """Whether another node wants a topic, or may want it."""
        return self._broker.is_linking(topic) or self._broker.has_neighbours(topic)


def reason_of(error: OmenError) -> PubAckReasonCode:
    """What a client is told of a publication that failed."""
    return next((code for kind, code in REASONS if isinstance(error, kind)), PubAckReasonCode.UNSPECIFIED_ERROR)
