"""Brokers in one event loop, for tests: quick settings, and waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.inbox import Message
from omen.net.settings import LIVE, NodeConfig

PATIENCE_S = 180.0
QUICK = replace(LIVE, gossip_period=100_000, ready_rounds=2)


def config(name: str, *topics: str, join: tuple[str, ...] = (), **more: Any) -> NodeConfig:
    return NodeConfig(name=name, topics=topics, join=join, protocol=QUICK, **more)


def go(test: Coroutine[Any, Any, None]) -> None:
    """Run a test, within patience."""

    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test

    run(limited())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


async def take(broker: Broker, count: int) -> list[Message]:
    """The next messages; a gap among them fails the test."""
    found: list[Message] = []
    async for item in broker.messages():
        assert isinstance(item, Message)
        found.append(item)
        if len(found) == count:
            break
    return found
