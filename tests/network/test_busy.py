"""A busy topic keeps flowing through a kill, a join, a restart, a burst, a stand-still and a leave."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from network.busy import Verdict, run_case
from omen.errors import InvalidInput
from omen.net.broker import Broker, NotHeld
from omen.net.errors import SecondConsumer
from omen.net.inbox import Gap, Message
from omen.net.settings import LIVE, Limits, NodeConfig

FAST = replace(LIVE, gossip_period=100_000, ready_rounds=2)


@pytest.mark.parametrize("case", ["kill", "restart", "join"])
def test_a_thousand_publications_per_second_are_delivered_through(case: str) -> None:
    verdict = run_case(case, rate=1000, payload=100, seconds=9.0 if case == "kill" else 6.0)
    judge(verdict)


@pytest.mark.parametrize("case", ["kill", "restart", "join"])
def test_twenty_publications_per_second_over_thirty_topics_are_delivered_through(case: str) -> None:
    judge(run_case(case, rate=20, payload=100, seconds=5.0, topics=30))


def judge(verdict: Verdict) -> None:
    """Nothing is missing, and all are at the live edge soon after the repair, or after they were linked."""
    assert verdict.is_kept, verdict
    assert verdict.told == 0, verdict
    assert verdict.edge_s < 2, verdict
    assert verdict.joined_edge_s < 1, verdict


@pytest.mark.parametrize(("payload", "count"), [(1 << 20, 150), (20_000, 8_000)])
def test_a_burst_over_six_nodes_is_delivered(payload: int, count: int) -> None:
    verdict = run_case("burst", rate=0, payload=payload, count=count)
    assert verdict.is_kept, verdict
    assert verdict.delivered + verdict.told == 6 * count, verdict


def test_a_tight_loop_of_large_publications_does_not_fill_queues_beyond_their_limit() -> None:
    """The event loop has its turns: what a peer does not take is seen before far more is queued for it."""

    async def test() -> None:
        async with asyncio.timeout(60), Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))):
            while not ann.has_neighbours("tea"):
                await asyncio.sleep(0.01)
            most = 0
            for _ in range(60):
                await ann.publish("tea", bytes(1 << 20))
                connections = [peer.connection for peer in ann.driver.peers.table.values()]
                most = max(most, *(each.bulk_bytes for each in connections if each is not None))
            assert most <= Limits().queue_bytes

    asyncio.run(test())


def config(name: str, join: tuple[str, ...] = (), **limits: float) -> NodeConfig:
    return NodeConfig(name=name, topics=("tea",), join=join, protocol=FAST, limits=replace(Limits(), **limits))


def test_headers_and_the_publishers_name_come_with_the_message() -> None:
    async def test() -> None:
        async with asyncio.timeout(60), Broker(config("ann")) as ann, Broker(config("bob", (ann.address,))) as bob:
            await ann.publish("tea", b"with", headers={"kind": "green"})
            await ann.publish("tea", b"without")
            first, second = [await anext(bob.messages()) for _ in range(2)]
            assert isinstance(first, Message) and isinstance(second, Message)
            assert (first.payload, first.headers, first.publisher) == (b"with", {"kind": "green"}, "ann")
            assert (second.payload, second.headers) == (b"without", {})

    asyncio.run(test())


def test_a_payload_that_is_not_bytes_is_refused() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann:
            for payload in ("text", 5, None):
                with pytest.raises(InvalidInput, match="must be bytes"):
                    await ann.publish("tea", payload)  # type: ignore[arg-type]

    asyncio.run(test())


def test_a_wait_for_a_message_that_times_out_loses_nothing_and_a_second_consumer_is_an_error() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann:
            messages = ann.messages()
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await anext(messages)
            waiting = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0)
            with pytest.raises(SecondConsumer):
                await anext(ann.messages())
            await ann.publish("tea", b"1")
            await ann.publish("tea", b"2")
            item = await waiting
            assert isinstance(item, Message) and item.payload == b"1"
            item = await anext(messages)
            assert isinstance(item, Message) and item.payload == b"2"

    asyncio.run(test())


def test_a_subscriber_that_stands_still_is_told_what_it_missed() -> None:
    """What passes while it reads nothing, and is kept by nobody any more when it does, is told as a gap: soon, and not
    only when something else is published."""
    quick = replace(
        FAST,
        dissemination=replace(FAST.dissemination, window_age=1_000_000, stream_memory=2_000_000, graft_delay=200_000),
    )

    async def test() -> None:
        ann_config, plain = replace(config("ann"), protocol=quick), replace(config("bob"), protocol=quick)
        async with (
            asyncio.timeout(90),
            Broker(ann_config) as ann,
            Broker(replace(plain, join=(ann.address,))) as bob,
        ):
            assert bob.driver is not None and ann.driver is not None
            for _ in range(10):
                await ann.publish("tea", b"heard")
            await asyncio.sleep(0.5)
            real = bob.driver.on_peer_frames
            bob.driver.on_peer_frames = (  # type: ignore[method-assign]
                lambda node, data, connection: real(node, [body for body in data if body[0] in (0,)], connection)
            )
            for _ in range(10):
                await ann.publish("tea", b"missed")
            await asyncio.sleep(5)
            bob.driver.on_peer_frames = real  # type: ignore[method-assign]
            async with asyncio.timeout(10):
                items = [await anext(bob.messages()) for _ in range(11)]
            assert [item.sequence for item in items if isinstance(item, Message)] == list(range(1, 11))
            assert isinstance(items[-1], Gap) and (items[-1].first, items[-1].last) == (11, 20)
            for sequence in range(21, 26):
                await ann.publish("tea", b"heard again")
                item = await anext(bob.messages())
                assert isinstance(item, Message) and item.sequence == sequence

    asyncio.run(test())


def test_leaving_waits_until_neighbours_hold_what_was_accepted() -> None:
    async def test() -> None:
        async with asyncio.timeout(60), Broker(config("ann")) as ann:
            bob = Broker(config("bob", (ann.address,)))
            await bob.start()
            for _ in range(200):
                await bob.publish("tea", bytes(20_000))
            await bob.stop()
            taken = [await anext(ann.messages()) for _ in range(200)]
            assert [item.sequence for item in taken if isinstance(item, Message)] == list(range(1, 201))

    asyncio.run(test())


def test_leaving_says_how_many_publications_no_neighbour_holds() -> None:
    async def test() -> None:
        async with asyncio.timeout(60), Broker(config("ann")) as ann:
            bob = Broker(config("bob", (ann.address,), leave_timeout_s=0.5))
            await bob.start()
            assert ann.driver is not None
            ann.driver.on_peer_frames = lambda *_: None  # type: ignore[method-assign]
            for _ in range(3):
                await bob.publish("tea", b"x")
            with pytest.raises(NotHeld, match="do not hold 3 of its publications"):
                await bob.stop()

    asyncio.run(test())
