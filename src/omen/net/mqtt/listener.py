"""The sockets of the front door, and the broker below it: what the state machine wants is done here."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_never

from websockets.asyncio.server import Server

from omen.errors import InvalidInput, OmenError
from omen.net.errors import Stopped
from omen.net.inbox import Gap, Message
from omen.net.mqtt import records, websocket
from omen.net.mqtt.client_link import ClientLink
from omen.net.mqtt.door import Door
from omen.net.mqtt.keeper import Keeper
from omen.net.mqtt.outputs import (
    Carry,
    Claim,
    Close,
    Forget,
    GiveUp,
    HoldBack,
    Output,
    Publish,
    Retained,
    Save,
    TellGroup,
    Write,
)
from omen.net.mqtt.publisher import Publisher
from omen.net.mqtt.session import ApplicationMessage
from omen.net.mqtt.sys_topics import sys_facts
from omen.net.mqtt.topics import OWN
from omen.net.names import join_address, split_address

if TYPE_CHECKING:
    from omen.net.broker import Broker

LINK_TIMEOUT_S = 1.5
"""SUBACK waits so long for links; a subscription that takes longer comes into force later."""
SAVE_PERIOD_S = 0.5
"""Changes of sessions that no acknowledgement promises are stored after this."""
ANSWER_WITHIN_S = 0.3
"""A question is answered after a random time up to this, unless another node has answered it."""
UNSURE_S, UNSURE_LATER_S = 10.0, 1.0
"""A door that has asked so lately may not know everything: others have so much time to answer before it."""
ASK_AGAIN_S = 1.0
"""After a gap in what doors say, they are asked for it so much later."""
CARRYING_AT_ONCE = 4
CLOSE_TIMEOUT_S = 5.0
SYS_PERIOD_S = 10.0
ANNOUNCED_AT_ONCE = 500
"""Names in one announcement."""
RETAINED_AT_ONCE = 256 << 10
"""Bytes of retained messages in one answer."""


class FrontDoor:
    """Listens for MQTT clients on behalf of a broker."""

    def __init__(self, broker: Broker, door: Door) -> None:
        self.broker = broker
        self.door = door
        self.addresses: list[str] = []
        self._links: dict[int, ClientLink] = {}
        self._next = 0
        self._servers: list[asyncio.Server | Server] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._nobody = ClientLink(self, 0, 0)  # publishes wills
        self._is_flushing = False
        self._dirty: dict[int, ClientLink] = {}
        self._has_topics = False
        self._to_carry: list[Carry] = []
        self._carrying: list[asyncio.Task[Any]] = []
        self._answers: dict[str, asyncio.TimerHandle] = {}
        self._started = time.time()
        self._asked_at = 0.0
        self._missed: set[str] = set()
        self.keeper = Keeper(self)
        self.publisher = Publisher(self)

    @property
    def incarnation(self) -> int:
        """The incarnation that this node is in."""
        driver = self.broker.driver
        return (driver.incarnation if driver is not None else None) or 0

    @property
    def publishing(self) -> int:
        """How many clients publish just now."""
        return self.publisher.active

    # Beginning and end

    async def open(self, addresses: Sequence[tuple[str, ssl.SSLContext | None]]) -> None:
        """Listen, once this node hears what other front doors say."""
        await self.broker.subscribe(records.ASKS, records.RETAINED, records.CLIENTS)
        loop = asyncio.get_running_loop()
        for address, context in addresses:
            host, port = split_address(address, "mqtt")
            try:
                server = await loop.create_server(self._make_link, host, port, ssl=context, backlog=1024)
            except OSError as error:
                raise InvalidInput(f"mqtt {address}: cannot listen there: {error.strerror or error}") from None
            self._servers.append(server)
            bound = server.sockets[0].getsockname()
            self.addresses.append(join_address(bound[0], bound[1]))
        kept = self.keeper.begin()
        self.start(self._tick())
        self.start(self.keeper.run())
        await self._ask(records.RETAINED)
        await self._tell_all(kept, "")

    async def open_websocket(self, address: str, origins: Sequence[str]) -> None:
        """Listen for pages in browsers."""
        host, port = split_address(address, "mqtt_ws")
        server = await websocket.listen(host, port, self._make_link, origins, self.door.limits.packet_bytes)
        self._servers.append(server)
        bound = next(iter(server.sockets)).getsockname()
        self.addresses.append(f"ws://{join_address(bound[0], bound[1])}")

    def _make_link(self) -> ClientLink:
        self._next += 1
        return ClientLink(self, self._next, self.door.limits.packet_bytes)

    async def close(self) -> None:
        """Tell clients to connect elsewhere, publish what is still to be published."""
        for server in self._servers:
            server.close()
        self.door.shut(time.time())
        self.act()
        workers = [link.worker for link in (*self._links.values(), self._nobody) if link.worker is not None]
        if workers:
            await asyncio.wait(workers, timeout=2.0)
        with suppress(TimeoutError, Stopped):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.keeper.close()
        for task in list(self._tasks):
            task.cancel()
        for handle in self._answers.values():
            handle.cancel()

    def start(self, work: Any) -> asyncio.Task[Any]:
        """Do something beside the rest; it ends with the door at the latest."""
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tick(self) -> None:
        told_at = 0.0
        while True:
            await asyncio.sleep(SAVE_PERIOD_S)
            now = time.time()
            self.door.tick(now)
            self.door.save_soon()
            if now - told_at >= SYS_PERIOD_S:
                told_at = now
                self._tell_sys(now)
            self.act()

    # Connections

    def on_open(self, link: ClientLink) -> None:
        self._links[link.number] = link
        self.door.open(link.number, time.time(), link.certified)

    def on_lost(self, link: ClientLink) -> None:
        self._links.pop(link.number, None)
        self.door.lost(link.number, time.time())
        self.act()

    def consume(self, item: Message | Gap) -> bool:
        """What came over the overlay; the end of it never comes."""
        if isinstance(item, Gap):
            self.broker.log.warning("mqtt_gap", topic=item.topic, first=item.first, last=item.last)
            if item.topic.startswith(OWN):
                self.ask_again(item.topic)
            else:
                self.start(self.keeper.recover(item))
            return False
        if item.topic.startswith(OWN):
            self._hear(item)
        else:
            is_own = item.publisher == self.broker.name
            client = self.publisher.client_of(item.topic, item.sequence) if is_own else ""
            now, stream = time.time(), (item.topic, item.node, item.incarnation)
            message = records.message_from(item, client)
            self.door.remember(message, stream, item.sequence, now)
            self.door.deliver(message, now, stream, item.sequence)
        self.act_soon()
        return False

    def act_soon(self) -> None:
        """Act once all that comes in this turn of the event loop has come."""
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._act_now)

    def _act_now(self) -> None:
        self._is_flushing = False
        self.act()

    def act(self) -> None:
        """Do what the state machine wants; each connection is written to once."""
        dirty = self._dirty
        for output in self.door.take():
            if type(output) is Write:
                link = self._links.get(output.connection)
                if link is not None:
                    link.buffer.append(output.data)
                    dirty[link.number] = link
            else:
                self._do(output)
        for link in dirty.values():
            link.flush()
        dirty.clear()

    def _do(self, output: Output) -> None:
        match output:
            case Write():
                raise AssertionError(output)
            case Close(number):
                link = self._links.pop(number, None)
                if link is not None:
                    link.close()
            case Publish(number):
                self.publisher.publish(self._links.get(number, self._nobody), output)
            case Carry(_, _, replay=True):
                self.start(self._carry([output]))  # begins before what is published on these topics next
            case Carry():
                self._to_carry.append(output)
                self._carrying = [task for task in self._carrying if not task.done()]
                if len(self._to_carry) == 1 and len(self._carrying) < CARRYING_AT_ONCE:
                    self._carrying.append(self.start(self._carry_all()))
            case GiveUp(topics):
                left = set(topics)
                self._to_carry = [Carry(one.token, _without(one.topics, left), one.replay) for one in self._to_carry]
                self.start(self._give_up(topics))
            case Claim():
                self.start(self.keeper.claim(output))
            case TellGroup():
                self.keeper.tell_group(output)
            case Save(client_id):
                self.start(self.keeper.save(client_id))
            case Forget():
                self.start(self.keeper.forget(output))
            case HoldBack():
                self.publisher.tell_busy()
            case _:
                assert_never(output)

    # Topics

    async def _carry_all(self) -> None:
        """Subscribe to the topics that clients asked for since the last time, together; several such batches at once,
        so that one that takes long does not hold up the next.
        """
        while self._to_carry:
            batch, self._to_carry = self._to_carry, []
            await self._carry(batch)

    async def _carry(self, asked: list[Carry]) -> None:
        replay = asked[0].replay
        wanted = list(dict.fromkeys(topic for one in asked for topic in one.topics))
        if self.door.wishes.has_wildcards and not self._has_topics:
            self._has_topics = True
            wanted.append(records.TOPICS)
        try:
            with suppress(TimeoutError):
                await self.broker.subscribe(*wanted, replay=replay, timeout=LINK_TIMEOUT_S)
            if records.TOPICS in wanted:
                await self._ask(records.TOPICS)
        except Stopped:
            return
        except OmenError as error:
            self.broker.log.warning("mqtt_subscribe_failed", cause=str(error))
        for one in asked:
            if one.token:
                self.door.linked(one.token, time.time())
        self.act()

    async def _give_up(self, topics: tuple[str, ...]) -> None:
        with suppress(Stopped):
            await self.broker.unsubscribe(*topics)

    # Among front doors

    async def say(self, topic: str, record: records.Record) -> None:
        await self.broker.publish(topic, records.write_record(record))

    def tell(self, topic: str, record: records.Record) -> None:
        """The same, without waiting for it."""
        self.start(self.say(topic, record))

    def _hear(self, item: Message) -> None:
        record = records.read_record(item.payload)
        is_own = item.publisher == self.broker.name
        now = time.time()
        match record:
            case records.RetainedMessages(messages, to):
                for kept in messages:
                    self.door.retain(kept)
                self._forget_answer(f"retained {to}")
            case records.TopicsPublished(names, fresh) if not is_own:
                self.door.learn_topics(names, fresh, now)
            case records.AskTopics(node) if not is_own:
                self._answer(f"topics {node}", self._tell_topics())
            case records.AskRetained(node) if not is_own:
                self._answer(f"retained {node}", self._tell_retained(node))
            case records.ClientHere() if not is_own:
                self.keeper.doors.note_client(record.client_id, now)
                self.start(self.keeper.give(record))
            case records.SessionHanded(node, token, again) if node == self.broker.name:
                self.keeper.handed(token)
                self.door.store_again(again)
            case records.DoorHere() if not is_own:
                self.keeper.hear(record, now)
            case records.TopicsBusy() if not is_own:
                self.publisher.hear_busy(record, now)
            case records.GroupMembers() if not is_own:
                self.keeper.doors.hear_groups(record, now)
            case _:
                pass

    async def _ask(self, topic: str) -> None:
        """Ask other doors for what they have said on a topic."""
        if topic == records.RETAINED:
            self._asked_at = time.time()
            await self.say(records.ASKS, records.AskRetained(self.broker.name))
        elif topic == records.TOPICS and self._has_topics:
            await self.say(records.ASKS, records.AskTopics(self.broker.name))

    def ask_again(self, *topics: str) -> None:
        """This node has missed something that doors said: a while later it asks, once however much it was."""

        async def ask(topic: str) -> None:
            await asyncio.sleep(ASK_AGAIN_S)
            self._missed.discard(topic)
            with suppress(OmenError):
                await self._ask(topic)

        for topic in topics:
            if topic not in self._missed:
                self._missed.add(topic)
                self.start(ask(topic))

    def _answer(self, question: str, answer: Any) -> None:
        """After a random pause; who hears another's answer before that says nothing, and who has asked itself just now
        lets others answer first. Names of topics all nodes tell.
        """
        delay = random.uniform(0, ANSWER_WITHIN_S) if question.startswith("retained") else 0.0
        if delay and time.time() - self._asked_at < UNSURE_S:
            delay += UNSURE_LATER_S
        self._forget_answer(question)
        loop = asyncio.get_running_loop()
        self._answers[question] = loop.call_later(delay, lambda: self.start(answer()))

    def _forget_answer(self, question: str) -> None:
        handle = self._answers.pop(question, None)
        if handle is not None:
            handle.cancel()

    def _tell_topics(self) -> Any:
        async def tell() -> None:
            names = sorted(self.publisher.announced)
            for start in range(0, len(names), ANNOUNCED_AT_ONCE):
                part = names[start : start + ANNOUNCED_AT_ONCE]
                await self.say(records.TOPICS, records.TopicsPublished(part, fresh=False))

        return tell

    def _tell_retained(self, node: str) -> Any:
        async def tell() -> None:
            await self._tell_all(list(self.door.retained.values()), node)

        return tell

    async def _tell_all(self, messages: list[Retained], to: str) -> None:
        """Retained messages, in parts."""
        part: list[Retained] = []
        size = 0
        for kept in [*(one for one in messages if not one.message.topic.startswith("$")), None]:
            if kept is not None:
                part.append(kept)
                size += kept.message.size
            if part and (kept is None or size > RETAINED_AT_ONCE):
                await self.say(records.RETAINED, records.RetainedMessages(part, to))
                part, size = [], 0

    # What tools expect

    def _tell_sys(self, now: float) -> None:
        door = self.door
        for name, value in sys_facts(door, now - self._started).items():
            message = ApplicationMessage(f"$SYS/broker/{name}", value.encode(), retain=True)
            door.retain(Retained((int(now * 1000), self.broker.name), message))
            door.deliver(message, now)


def _without(topics: tuple[str, ...], left: set[str]) -> tuple[str, ...]:
    return topics if left.isdisjoint(topics) else tuple(topic for topic in topics if topic not in left)
