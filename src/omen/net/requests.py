"""Requests and replies on the overlay: a request says where it wants its reply, and the reply names the request.

Replies to a node come on a topic of its own, which it subscribes to with its first request. Who replies carries that
topic for as long as windows last, no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from omen.errors import InvalidInput
from omen.net.inbox import Message
from omen.protocol.messages.publications import Fields

if TYPE_CHECKING:
    from omen.net.broker import Broker

REPLIES = "$omen/replies/"
REQUEST, CORRELATION = "omen-request", "mqtt-correlation"
"""The headers by which a reply names its request, of a node and of a client of MQTT."""


class Requests:
    """The requests of one node that wait for a reply."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._count = 0
        self.topic = f"{REPLIES}{broker.name}"

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(self, topic: str, payload: bytes, headers: Mapping[str, str] | None, timeout: float) -> Message:
        async with asyncio.timeout(timeout):
            await self._broker.subscribe(self.topic)
            self._count += 1
            number = f"{self._broker.status().ref.incarnation}.{self._count}"
            reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            self._waiting[number] = reply
            fields = Fields(headers={**(headers or {}), REQUEST: number}, reply_to=self.topic)
            try:
                await self._broker.publish(topic, payload, fields=fields)
                return await reply
            finally:
                del self._waiting[number]

    def take(self, message: Message) -> None:
        """A reply came. The second to one request, or one that comes too late, is nobody's."""
        reply = self._waiting.get(message.headers.get(REQUEST, ""))
        if reply is not None and not reply.done():
            reply.set_result(message)


def fields_of_reply(message: Message, headers: Mapping[str, str] | None) -> tuple[str, Fields]:
    """Where a reply to this message goes, and what goes with it. InvalidInput: it wants none."""
    topic = message.reply_to
    if not topic:
        raise InvalidInput(f"the message on {message.topic!r} wants no reply: it has no reply-to")
    named = {name: value for name, value in message.headers.items() if name in (REQUEST, CORRELATION)}
    return topic, Fields(headers={**(headers or {}), **named})
