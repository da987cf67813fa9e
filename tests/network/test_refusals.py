"""A process that was killed is declared failed at once; one that is only crowded, or out of descriptors, is not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from network.brokers import config, go, until
from omen.net.broker import Broker
from omen.net.local.forking import fork_node
from omen.net.names import split_address
from omen.net.security.hello import Hello
from omen.protocol.events import Connect, Send
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import Heartbeat

ENOUGH_S = 0.6  # two attempts and their refusals take 0.1 s
BACKLOG = 256


@contextmanager
def child_of(parent: Broker, log: Path, **settings: Any) -> Iterator[int]:
    """A process that joins through a broker of this one."""
    child = fork_node(config("child", "tea", join=(parent.address,), **settings), None, log)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@asynccontextmanager
async def linked(tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[Broker, int, int]]:
    """A broker, and the process and the place of a child that it is linked to and has been for a while."""
    async with Broker(config("ann", "tea")) as ann:
        with child_of(ann, tmp_path / "log", **settings) as child:
            await until(lambda: ann.status().neighbours())
            (place,) = ann.status().neighbours()
            await asyncio.sleep(1.1)
            yield ann, child, place


def break_connections(broker: Broker) -> None:
    assert broker.driver is not None
    for connection in broker.driver.peers.connections():
        connection.abort()


def refused(broker: Broker) -> int:
    assert broker.driver is not None
    return broker.driver.counters.peers_refused


def test_a_killed_process_is_declared_failed_before_a_heartbeat_is_missed(tmp_path: Path) -> None:
    async def run() -> None:
        async with linked(tmp_path) as (ann, child, place):
            os.kill(child, signal.SIGKILL)
            async with asyncio.timeout(ann.config.protocol.heartbeat_period / 1e6):
                await until(lambda: place not in ann.status().links)
            assert refused(ann) == 1

    go(run())


def test_a_name_of_several_addresses_that_all_refuse_has_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `localhost` where it is ::1 too: what the loop makes of several refusals is no ConnectionRefusedError."""
    resolve = socket.getaddrinfo

    def two_of(host: str, port: int, *words: Any, **more: Any) -> list[Any]:
        hosts = ("127.0.0.1", "127.0.0.2") if host == "kennel" else (host,)
        return [found for each in hosts for found in resolve(each, port, *words, **more)]

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with Broker(config("ann", "tea")) as ann:
            assert ann.driver is not None
            monkeypatch.setattr(socket, "getaddrinfo", two_of)
            with pytest.raises(ConnectionRefusedError):
                await ann.driver.peers.greet(f"kennel:{port}")

    go(run())


@pytest.mark.parametrize("is_failure", [False, True])
def test_a_killed_process_behind_another_address_is_left_to_the_failure_detector(
    tmp_path: Path, is_failure: bool
) -> None:
    """What refuses may be what passes the address on, unless `refusal_is_failure` says that it is not."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        at = {"listen": f"127.0.0.1:{port}", "advertise": f"localhost:{port}", "refusal_is_failure": is_failure}
        async with linked(tmp_path, **at) as (ann, child, place):
            os.kill(child, signal.SIGKILL)
            await asyncio.sleep(ENOUGH_S)
            assert refused(ann) == is_failure
            assert (place in ann.status().links) != is_failure

    go(run())


@pytest.mark.parametrize("is_wanted", [False, True])
def test_a_message_to_where_nobody_listens_is_told_to_the_core(
    monkeypatch: pytest.MonkeyPatch, is_wanted: bool
) -> None:
    async def run() -> None:
        unreached: list[tuple[int, str]] = []
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        async with Broker(config("ann", "tea")) as ann:
            assert ann.driver is not None
            monkeypatch.setattr(ann.driver, "on_peer_unreached", lambda node, where: unreached.append((node, where)))
            ann.driver.obey([Connect(99, address)] if is_wanted else [])
            ann.driver.obey([Send(99, address, Heartbeat(1))])
            await until(lambda: unreached)
            assert unreached[0] == (99, address)
            assert (99 in ann.driver.peers.table) == is_wanted
            if is_wanted:  # it is dialled again after a pause: nobody waits for that
                await until(lambda: ann.driver is not None and ann.driver.peers.table[99].failures > 4)
                unreached.clear()
                ann.driver.obey([Send(99, address, Heartbeat(1))])
                await asyncio.sleep(0.05)
                assert unreached

    go(run())


@pytest.mark.parametrize("is_moved", [False, True])
def test_of_a_peer_that_has_refused_nothing_is_told_that_was_not_tried(
    monkeypatch: pytest.MonkeyPatch, is_moved: bool
) -> None:
    """It listens again, or elsewhere: two words that it does not would have a repair do without it."""

    async def run() -> None:
        unreached: list[int] = []
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        async with Broker(config("ann", "tea")) as ann:
            assert ann.driver is not None
            peers, bob = ann.driver.peers, place_of("bob")
            ann.driver.obey([Connect(bob, address)])
            await until(lambda: peers.table[bob].failures > 3)
            await asyncio.sleep(0.15)
            monkeypatch.setattr(ann.driver, "on_peer_unreached", lambda node, where: unreached.append(node))
            async with Broker(config("bob", "jazz", listen="127.0.0.1:0" if is_moved else address)) as there:
                ann.driver.obey([Send(bob, there.address, Heartbeat(1))])
                await until(lambda: there.driver is not None and there.driver.received["Heartbeat"])
            assert not unreached

    go(run())


def test_a_dial_to_a_wrong_address_does_not_take_a_message_to_the_right_one_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            wrong = f"127.0.0.1:{closed.getsockname()[1]}"
        async with Broker(config("ann", "tea")) as ann, Broker(config("bob", "jazz")) as bob:
            assert ann.driver is not None and bob.driver is not None
            ann.driver.obey([Send(bob.node, wrong, Heartbeat(1)), Send(bob.node, bob.address, Heartbeat(1))])
            await until(lambda: bob.driver is not None and bob.driver.received["Heartbeat"])

    go(run())


def test_a_connection_that_breaks_alone_is_made_again_and_nobody_is_declared_failed(tmp_path: Path) -> None:
    async def run() -> None:
        async with linked(tmp_path) as (ann, _, place):
            assert ann.driver is not None
            break_connections(ann)
            await asyncio.sleep(ENOUGH_S)
            assert ann.driver.peers.connections()
            assert ann.status().neighbours() == [place]
            assert refused(ann) == 0

    go(run())


def test_a_process_without_descriptors_is_not_declared_failed(tmp_path: Path) -> None:
    async def run() -> None:
        async with linked(tmp_path) as (ann, child, place):
            used = len(list(Path(f"/proc/{child}/fd").iterdir()))
            resource.prlimit(child, resource.RLIMIT_NOFILE, (used - 2, used))
            break_connections(ann)
            await asyncio.sleep(ENOUGH_S)
            assert not ann.driver.peers.connections()  # type: ignore[union-attr]
            assert ann.status().neighbours() == [place]
            assert refused(ann) == 0

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors of another process are seen in /proc")
    go(run())


def test_a_process_whose_backlog_is_full_is_not_declared_failed(tmp_path: Path) -> None:
    async def run() -> None:
        async with linked(tmp_path) as (ann, child, place):
            address = split_address(ann.driver.peers.table[place].address)  # type: ignore[union-attr]
            os.kill(child, signal.SIGSTOP)
            crowd = [socket.socket() for _ in range(BACKLOG + 8)]
            try:
                for one in crowd:
                    one.setblocking(False)
                    one.connect_ex(address)
                break_connections(ann)
                await asyncio.sleep(ENOUGH_S)
                assert not ann.driver.peers.connections()  # type: ignore[union-attr]
                assert ann.status().neighbours() == [place]
                assert refused(ann) == 0
            finally:
                for one in crowd:
                    one.close()

    go(run())


@pytest.mark.parametrize(
    ("advertise", "is_failure", "is_direct"), [(False, False, True), (True, False, False), (True, True, True)]
)
def test_a_refusal_counts_where_a_node_listens_itself_or_says_so(
    advertise: bool, is_failure: bool, is_direct: bool
) -> None:
    """An address that is passed on, as by a container's host, may be refused by what passes it on."""

    async def run() -> None:
        settings = replace(config("ann", "tea"), refusal_is_failure=is_failure)
        if advertise:
            settings = replace(settings, listen="127.0.0.1:0", advertise="localhost:7")
        async with Broker(settings) as ann:
            assert ann.driver is not None
            hello: Hello = ann.driver.peers.hello
            assert hello.is_direct == is_direct

    go(run())
