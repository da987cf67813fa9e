"""Requests and their replies between brokers."""

from __future__ import annotations

import asyncio

import pytest

from omen.errors import InvalidInput
from omen.net.broker import Broker
from omen.net.inbox import Message

from .brokers import config, go


async def answer_all(broker: Broker) -> None:
    async for message in broker.messages():
        assert isinstance(message, Message)
        if message.payload != b"no answer":
            await broker.reply(message, message.payload.upper(), {"by": broker.name})


def test_requests_are_answered_each_by_its_reply_and_replies_come_to_no_other() -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea")) as ann,
            Broker(config("bob", "tea", join=(ann.address,))) as bob,
            Broker(config("cid", "tea", join=(ann.address,))) as cid,
        ):
            serving = [asyncio.ensure_future(answer_all(broker)) for broker in (bob, cid)]
            first = await ann.request("tea", b"green", {"sort": "sencha"}, timeout=10)
            assert (first.payload, first.headers["by"] in ("bob", "cid")) == (b"GREEN", True)
            asked = [b"cup %d" % number for number in range(40)]
            replies = await asyncio.gather(*(ann.request("tea", payload, timeout=10) for payload in asked))
            assert [reply.payload for reply in replies] == [payload.upper() for payload in asked]
            with pytest.raises(TimeoutError):
                await ann.request("tea", b"no answer", timeout=0.3)
            assert ann.topics == ["tea"], "the topic of replies is not the application's"
            assert ann.delivered == len(asked) + 2, "what ann asked came to it as a subscriber, and no reply did"
            for task in serving:
                task.cancel()

    go(test())


def test_a_message_without_reply_to_cannot_be_replied_to() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            await ann.publish("tea", b"green")
            message = await anext(ann.messages())
            assert isinstance(message, Message) and message.reply_to is None
            with pytest.raises(InvalidInput, match="wants no reply"):
                await ann.reply(message, b"thanks")

    go(test())
