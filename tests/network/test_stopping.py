"""A stop that is cancelled, repeated, or cannot keep its state: everything is released all the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from omen.net.broker import Broker
from omen.net.errors import Stopped
from omen.net.names import split_address
from omen.net.settings import Limits
from omen.protocol import events
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import FailureNotice

from .brokers import config, go, until

DESCRIPTORS = Path("/proc/self/fd")


def descriptors() -> int:
    return len(os.listdir(DESCRIPTORS))  # noqa: PTH208 -- the folder changes while it is read


async def is_open(address: str) -> bool:
    try:
        _, writer = await asyncio.open_connection(*split_address(address))
    except OSError:
        return False
    writer.close()
    return True


def test_a_cancelled_stop_releases_everything_and_can_be_repeated(tmp_path: Path) -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea", limits=Limits(leave_timeout_s=0.5))) as ann:
            before = descriptors()
            more = {"http": "127.0.0.1:0", "record": str(tmp_path / "record"), "state": str(tmp_path)}
            bob = Broker(config("bob", "tea", join=(ann.address,), **more))
            await bob.start()
            stopping = asyncio.ensure_future(bob.stop())
            await asyncio.sleep(0.01)
            stopping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopping
            assert [message async for message in bob.messages()] == []
            assert not await is_open(bob.address)
            assert not await is_open(bob.http_address)
            await bob.stop()
            await bob.abandon()
            await until(lambda: descriptors() <= before)

    go(test())


def test_a_second_stop_waits_for_the_first() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            bob = Broker(config("bob", "tea", join=(ann.address,)))
            await bob.start()
            await asyncio.gather(bob.stop(), bob.stop())
            assert not await is_open(bob.address)

    go(test())


def test_a_node_whose_state_folder_is_gone_stops_and_releases_everything(tmp_path: Path) -> None:
    async def test() -> None:
        before = descriptors()
        ann = Broker(config("ann", "tea", state=str(tmp_path / "state")))
        await ann.start()
        for path in (tmp_path / "state").iterdir():
            path.unlink()
        (tmp_path / "state").rmdir()
        (tmp_path / "state").write_text("in the way")
        await ann.stop()
        assert not await is_open(ann.address)
        await until(lambda: descriptors() <= before)

    go(test())


def test_what_was_accepted_while_a_node_rejoins_is_held_before_it_stops() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann, Broker(config("cid", "tea", join=(ann.address,))):
            bob = Broker(config("bob", "tea", join=(ann.address,)))
            await bob.start()
            await until(lambda: bob.has_neighbours("tea"))
            renew(bob, ann)
            assert not bob.is_joined
            for number in range(20):
                await bob.publish("tea", b"%d" % number)
            await bob.stop()
            async with asyncio.timeout(10):
                payloads = [(await anext(ann.messages())).payload for _ in range(20)]
            assert payloads == [b"%d" % number for number in range(20)]

    go(test())


def renew(broker: Broker, by: Broker) -> None:
    """Have it hear from another that its incarnation was declared failed."""
    assert broker.core is not None and by.core is not None
    notice = FailureNotice(by.core.ref, broker.core.ref.incarnation, final=True)
    broker.driver.feed(events.Received(by.core.ref.id, notice))


def test_what_waits_for_room_when_a_node_drains_is_refused() -> None:
    """It would be accepted after the last look at what neighbours hold."""

    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann, Broker(config("bob", "tea", join=(ann.address,))):
            assert ann.driver is not None
            await ann.publish("tea", b"green")
            place = place_of("bob")
            ann.driver.feed(events.LinkRoom(place, 0))
            publishing = asyncio.ensure_future(ann.publish("tea", b"black"))
            await asyncio.sleep(0.05)
            assert not publishing.done()
            assert await ann.drain() == 0
            ann.driver.feed(events.LinkRoom(place, events.PLENTY))
            with pytest.raises(Stopped):
                await publishing
            assert ann.published == 1

    go(test())


def test_a_node_that_was_not_started_is_not_drained() -> None:
    async def test() -> None:
        ann = Broker(config("ann", "tea"))
        with pytest.raises(Stopped):
            await ann.drain()
        async with ann:
            assert await ann.publish("tea", b"green") == 1

    go(test())
