"""A peer that does not read holds no publisher up, and lacks nothing once it reads again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.inbox import Gap, Message
from omen.net.names import topic_key
from omen.net.settings import LIVE, Limits, NodeConfig

PATIENCE_S = 120.0
ROOMY = replace(
    LIVE,
    gossip_period=100_000,
    ready_rounds=2,
    dissemination=replace(LIVE.dissemination, total_window_bytes=1 << 28),
)
TIGHT = Limits(queue_bytes=256 << 10, write_buffer_bytes=64 << 10, publish_patience_s=0.2)


def config(name: str, join: tuple[str, ...] = ()) -> NodeConfig:
    return NodeConfig(name=name, topics=("tea",), join=join, protocol=ROOMY, limits=TIGHT)


def pause(broker: Broker, reading: bool) -> None:
    assert broker.driver is not None
    for connection in broker.driver.peers.connections():
        assert connection.transport is not None
        (connection.transport.resume_reading if reading else connection.transport.pause_reading)()


async def collect(broker: Broker, count: int) -> list[int]:
    sequences = []
    async for item in broker.messages():
        assert not isinstance(item, Gap)
        assert isinstance(item, Message)
        sequences.append(item.sequence)
        if len(sequences) == count:
            break
    return sequences


def test_a_slow_consumer_is_waited_for_no_longer_and_catches_up_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
                assert ann.driver is not None
                pause(bob, reading=False)
                count = 1500
                for number in range(count):
                    await ann.publish("tea", number.to_bytes(4, "big") * 2500)
                assert ann.driver.counters.slow_consumers >= 1
                assert ann.slow_consumers == ["bob"]
                assert "slow_consumer" in caplog.messages
                pause(bob, reading=True)
                assert await collect(bob, count) == list(range(1, count + 1))
                assert bob.gaps == 0
                assert ann.slow_consumers == []

    caplog.set_level("INFO", "omen.node")
    run(test())


def test_a_forwarder_publishes_at_once_when_a_slow_consumer_has_caught_up() -> None:
    """What it passes on does not wait, so its queue is full when the peer is given up; that must not stay so for it."""

    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
                assert ann.driver is not None
                pause(bob, reading=False)
                count = 0
                while not ann.slow_consumers:
                    ann.driver.publish(topic_key("tea"), bytes(10_000))
                    count += 1
                    await asyncio.sleep(0)
                pause(bob, reading=True)
                assert await collect(bob, count) == list(range(1, count + 1))
                begun = asyncio.get_running_loop().time()
                for _ in range(20):
                    await ann.publish("tea", bytes(10_000))
                assert asyncio.get_running_loop().time() - begun < TIGHT.publish_patience_s

    run(test())


def test_a_slow_consumer_that_reads_again_in_the_same_tick_is_none() -> None:
    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
                assert ann.driver is not None
                (connection,) = ann.driver.peers.connections()
                connection.pause_writing()
                connection.mark_slow_consumer()
                connection.resume_writing()
                await asyncio.sleep(0.1)
                for _ in range(5):
                    await ann.publish("tea", b"green")
                async with asyncio.timeout(10):
                    assert await collect(bob, 5) == [1, 2, 3, 4, 5]

    run(test())


def test_a_connection_that_breaks_is_made_again_and_nothing_is_lost_over_it() -> None:
    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
                assert ann.driver is not None
                assert bob.driver is not None
                for number in range(600):
                    await ann.publish("tea", bytes(100))
                    if number % 100 == 50:
                        for connection in (ann if number % 200 == 50 else bob).driver.peers.connections():  # type: ignore[union-attr]
                            connection.abort()
                    await asyncio.sleep(0.001)
                assert await collect(bob, 600) == list(range(1, 601))
                assert ann.driver.peers.counters.connections_broken >= 6
                assert ann.status().ref.incarnation == ann.driver.peers.hello.incarnation
                assert ann.driver.counters.rejoins == bob.driver.counters.rejoins == 0

    run(test())


def test_two_ends_that_dial_at_once_end_up_with_one_connection() -> None:
    async def test() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
                assert ann.driver is not None
                assert bob.driver is not None
                for _ in range(5):
                    await asyncio.gather(ann.driver.peers.greet(bob.address), bob.driver.peers.greet(ann.address))
                    await ann.publish("tea", b"still here")
                assert await collect(bob, 5) == [1, 2, 3, 4, 5]
                await asyncio.sleep(0.5)
                assert len(ann.driver.peers.connections()) == len(bob.driver.peers.connections()) == 1

    run(test())
