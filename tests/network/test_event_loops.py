"""Nodes with certificates on every event loop: they connect, deliver, turn away who has none, and let go of crowds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from omen.net.broker import Broker
from omen.net.event_loop import event_loops, run
from omen.net.names import split_address
from omen.net.security.key_files import make_cluster_keys, security_from
from omen.net.settings import Limits

from .brokers import PATIENCE_S, config, take, until

Go = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def on_loop(request: pytest.FixtureRequest) -> Go:
    """Run a test on one loop, within patience."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")

    async def limited(test: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        assert request.param in type(loop).__module__
        async with asyncio.timeout(PATIENCE_S):
            await test

    return lambda test: run(limited(test), event_loops()[request.param])


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    make_cluster_keys(folder, "omen", ["ann", "bob"], 30)
    return folder


def test_nodes_with_certificates_connect_and_deliver(on_loop: Go, keys: Path) -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", security=security_from(keys, "ann"))) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=security_from(keys, "bob"))) as bob,
        ):
            for number in range(300):
                await ann.publish("tea", str(number).encode())
            assert [int(message.payload) for message in await take(bob, 300)] == list(range(300))
            await bob.publish("tea", b"x" * 500_000)
            assert len((await take(ann, 301))[-1].payload) == 500_000

    on_loop(test())


def test_crowds_without_certificates_are_let_go_of_and_a_node_still_comes_in(on_loop: Go, keys: Path) -> None:
    async def test() -> None:
        limits = Limits(half_open=4)
        async with Broker(config("ann", "tea", limits=limits, security=security_from(keys, "ann"))) as ann:
            host, port = split_address(ann.address)
            crowd = [await asyncio.open_connection(host, port) for _ in range(9)]
            await until(lambda: ann.admission.refused["connection_limit"] == 5)
            assert await crowd[0][0].read() == b""
            crowd[8][1].write(b"GET / HTTP/1.0\r\n\r\n")
            await until(lambda: ann.admission.refused["not_a_node"] == 1)
            async with Broker(config("bob", "tea", join=(ann.address,), security=security_from(keys, "bob"))) as bob:
                await ann.publish("tea", b"green")
                assert (await take(bob, 1))[0].payload == b"green"
            for _, writer in crowd:
                writer.close()
        await until(lambda: not ann.admission.inbound.half_open)

    on_loop(test())
