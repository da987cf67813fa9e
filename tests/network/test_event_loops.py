"""Nodes with certificates on every event loop: they connect, deliver, turn away who has none, and let go of crowds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omen.net.broker import Broker, NotJoined
from omen.net.event_loop import event_loops, run
from omen.net.names import split_address
from omen.net.security.config import Security
from omen.net.security.hello import Refused
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


def test_why_a_certificate_was_refused_reaches_the_refused_end_whichever_it_is(
    on_loop: Go, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under TLS 1.3 the end that dialled takes itself for connected before the other has looked at its certificate."""
    monkeypatch.setattr("omen.net.broker.check_own", lambda *_: None)
    make_cluster_keys(tmp_path, "omen", ["ann", "bob"], 30)
    believed = (str(keys / "ca.pem"),)
    foreign = {name: replace(security_from(tmp_path, name), authorities=believed) for name in ("ann", "bob")}
    words = "refused by the other end: it does not believe the authority of this node's certificate"

    async def test() -> None:
        patience = Limits(join_timeout_s=2.0)
        async with Broker(config("ann", "tea", security=security_from(keys, "ann"))) as ann:
            with pytest.raises(NotJoined, match=words):
                await Broker(config("bob", join=(ann.address,), security=foreign["bob"], limits=patience)).start()
        async with Broker(config("ann", "tea", security=foreign["ann"])) as ann:
            said: list[str] = []
            note = ann.admission.note_refusal

            def hear(refusal: Refused, *more: Any) -> None:
                said.append(str(refusal))
                note(refusal, *more)

            monkeypatch.setattr(ann.admission, "note_refusal", hear)
            with pytest.raises(NotJoined, match="the certificate of the other end"):
                bob = config("bob", join=(ann.address,), security=security_from(keys, "bob"), limits=patience)
                await Broker(bob).start()
            await until(lambda: said)
            assert set(said) == {words}
            assert not ann.admission.banned(), "the one that told this node so is no offender"

    on_loop(test())


def test_one_that_is_turned_away_at_the_door_hears_why(on_loop: Go, keys: Path) -> None:
    async def test() -> None:
        for security in (security_from(keys, "ann"), Security()):
            bob = replace(security, **_files(keys, "bob")) if security.files else security
            limits = Limits(join_timeout_s=0.3)
            async with Broker(config("ann", "tea", security=security)) as ann:
                ann.admission.bans.ban("127.0.0.1", asyncio.get_running_loop().time())
                ann.admission.bans.ban("127.0.0.1", asyncio.get_running_loop().time())
                with pytest.raises(NotJoined, match=r"refused by the other end: this .*address is banned"):
                    await Broker(config("bob", join=(ann.address,), security=bob, limits=limits)).start()

    on_loop(test())


def _files(keys: Path, name: str) -> dict[str, str]:
    return {"certificate": str(keys / f"{name}.pem"), "key": str(keys / f"{name}.key")}
