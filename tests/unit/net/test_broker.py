"""What a broker writes into the log of what its application is not given."""

from __future__ import annotations

import asyncio
import logging

import pytest

from omen.net.broker import Broker
from omen.net.errors import Stopped
from omen.net.observe.logs import LOGGER
from omen.net.settings import Limits, NodeConfig
from omen.protocol import events


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """The fields of each line of an event."""
    return [record.__dict__["fields"] for record in caplog.records if record.getMessage() == event]


def test_an_inbox_that_overflows_is_told_once_for_each_gap(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with Broker(NodeConfig(name="ann", topics=("tea",), limits=Limits(inbox_messages=2))) as ann:
            for _ in range(10):
                await ann.publish("tea", b"green")

    with caplog.at_level(logging.WARNING, LOGGER):
        asyncio.run(test())
    assert lines(caplog, "inbox_overflow") == [{"topic": "tea", "publisher": "ann", "sequence": 3, "messages": 3}]


def test_a_gap_is_told_with_names_where_the_topic_is_subscribed_to(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with Broker(NodeConfig(name="ann", topics=("tea",))) as ann:
            (tea,) = ann.subscribed_keys
            assert ann.driver is not None
            ann.driver.obey([events.Gap(tea, 5, 2, 7, 9), events.Gap(tea + 1, 5, 2, 7, 9)])
            assert ann.gaps == 1

    with caplog.at_level(logging.WARNING, LOGGER):
        asyncio.run(test())
    (fields,) = lines(caplog, "gap_told")
    assert fields == {
        "topic": "tea",
        "publisher": "0000000000000005",
        "incarnation": 2,
        "first": 7,
        "last": 9,
        "reason": "window",
    }


def test_nothing_is_held_of_a_broker_that_was_not_started() -> None:
    ann = Broker(NodeConfig(name="ann"))
    assert ann.held("tea") == 0
    assert not ann.lacks("tea", 1)
    with pytest.raises(Stopped):
        asyncio.run(ann.wait_held("tea", 1))


class Renewable(Broker):
    async def begin_anew(self) -> None:
        """As when its name was taken, and is free again."""
        assert self.driver is not None
        await self.driver.stop()
        await self._begin()


def test_what_a_former_incarnation_published_is_not_held_by_what_the_next_one_does() -> None:
    """Both count from 1; what the former one kept is gone with it."""

    async def test() -> None:
        ann = Renewable(NodeConfig(name="ann", topics=("tea",)))
        async with ann:
            (tea,) = ann.subscribed_keys
            sequence = await ann.publish("tea", b"green")
            waiting = asyncio.ensure_future(ann.wait_held("tea", sequence, 60))
            await asyncio.sleep(0)
            await ann.begin_anew()
            assert ann.driver is not None
            ann.driver.obey([events.Held(tea, sequence, 0)])
            assert not await waiting

    asyncio.run(test())
