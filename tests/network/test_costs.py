"""What one member may cost a live node: dials, file descriptors, health that is hidden."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from omen.net.broker import Broker
from omen.net.names import split_address
from omen.net.observe.http_client import fetch
from omen.net.security.config import Security
from omen.net.security.hello import Hello, Reason, Refused, read_hello, write_hello, write_refusal
from omen.net.security.key_files import make_secret
from omen.protocol.membership.ring import place_of
from omen.protocol.messages import wire
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import Digest, DigestOffer, EventId, IndirectPing, Message, Ping, Ref, ShadowQuery

from .attackers import Attacker, hello_of
from .besieged import Stranger
from .brokers import QUICK, config, go

NODES = 3_000
BURST, PER_S = 128, 16


def say(broker: Broker, message: Message) -> Stranger:
    """As a member that has all keys would."""
    stranger = Stranger()
    assert broker.driver is not None
    broker.driver.on_peer_frames(stranger.peer.node, [wire.encode(message)], stranger)  # type: ignore[arg-type]
    return stranger


def test_a_member_leads_to_as_many_dials_as_it_can_pay_for() -> None:
    """Before: 583 kB of `Ping` led to 16,651 dials, and to a node that could accept no connection."""

    async def attack() -> None:
        # without accountability: that a member which goes on so is dropped is another matter
        async with Broker(replace(config("ann", "tea"), protocol=replace(QUICK, offence_limit=0))) as ann:
            eve, begun = place_of("eve-0"), asyncio.get_running_loop().time()
            for number in range(NODES):
                there = Ref(place_of(f"x{number}"), 1, f"127.0.0.77:{1024 + number}")
                event = EventId(there.id, 1, EventKind.JOIN)
                say(ann, Ping(1, there))
                say(ann, IndirectPing(1, Ref(eve, 1, "127.0.0.66:1"), there))
                say(ann, ShadowQuery(there, event, 1, (), (), ()))
                say(ann, DigestOffer((Digest(Ref(eve, 1, ""), 1, 1), Digest(there, 1, 1)), (), True))
            await asyncio.sleep(0.2)
            assert ann.driver is not None
            peers = ann.driver.peers
            most = BURST + PER_S * (asyncio.get_running_loop().time() - begun + 1)
            assert 0 < peers.counters.dials <= most
            assert peers.counters.dropped_unpaid > NODES
            assert len(peers.table) < 2 * most
            assert ann.status().refused["false"] == NODES  # each direct probe that another node was to hear of

    go(attack())


def test_an_address_that_would_forge_a_line_in_the_log_is_no_address() -> None:
    async def attack() -> None:
        async with Broker(config("ann", "tea")) as ann:
            for bad in ("127.0.0.1:1\n12:00 info ann: all_is_well", "127.0.0.1:1 x", "127.0.0.1\x1b[2J:1", "ä:1"):
                assert say(ann, Ping(1, Ref(place_of("eve-0"), 1, bad))).refusals == {"frame": 1}
            assert say(ann, Ping(1, Ref(place_of("eve-0"), 1, "[::1]:7"))).refusals == {}

    go(attack())


def test_silent_connections_do_not_hide_a_nodes_health() -> None:
    """Before: 64 of them, and `/healthz` was answered to nobody for ten seconds, then again."""

    async def attack() -> None:
        async with Broker(config("ann", "tea", http="127.0.0.1:0")) as ann:
            host, port = split_address(ann.http_address)
            silent = [await asyncio.open_connection(host, port) for _ in range(70)]
            silent += [await asyncio.open_connection(host, port, local_addr=("127.0.0.5", 0)) for _ in range(70)]
            for _ in range(3):
                status, _ = await fetch(ann.http_address, "/healthz", 3.0)
                assert status == 200
            for _, writer in silent:
                writer.close()

    go(attack())


def test_a_hello_with_a_bad_address_is_refused() -> None:
    hello = Hello("omen", place_of("eve-0"), "eve-0", 1, "127.0.0.1:1\nx", 1, 1)
    with pytest.raises(Refused, match="cannot be read"):
        read_hello(write_hello(hello))


def test_processes_that_join_lead_to_as_many_dials_as_their_address_can_pay_for() -> None:
    """Before: each of any number of sessions had the node dial wherever it said, 1,000 at once for 1,000 hellos."""

    async def attack() -> None:
        taken: list[asyncio.StreamWriter] = []

        async def keep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)

        silent = await asyncio.start_server(keep, "0.0.0.0", 0, backlog=1000)
        async with Broker(config("ann", "tea")) as ann, silent:
            port = silent.sockets[0].getsockname()[1]
            begun = asyncio.get_running_loop().time()
            for number in range(4 * BURST):
                attacker = await Attacker.dial(ann.address, "127.0.7.1")
                where = f"127.66.{number // 250}.{1 + number % 250}:{port}"
                assert await attacker.greet(hello_of(f"x{number}", address=where, joining=True)) is not None
                attacker.close()
            await asyncio.sleep(0.1)
            assert 0 < len(taken) <= BURST + PER_S * (asyncio.get_running_loop().time() - begun + 1)
            for writer in taken:
                writer.close()

    go(attack())


def test_a_stranger_cannot_tell_a_member_that_its_name_is_taken(tmp_path: Path) -> None:
    """Before: 22 bytes from a process without the secret, and a member left the overlay and joined again."""
    make_secret(tmp_path / "secret")
    secret = Security(secrets=(str(tmp_path / "secret"),))

    async def attack() -> None:
        async with (
            Broker(config("ann", "tea", security=secret)) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=secret)) as bob,
        ):
            incarnation = bob.status().ref.incarnation
            for said in (Reason.NAME_TAKEN, Reason.UNREACHABLE):
                attacker = await Attacker.dial(bob.address, "127.0.7.1")
                attacker.send(write_refusal("so they say", said))
                await attacker.read_to_end()
            assert bob.admission.refused[Reason.REFUSED_BY_PEER] == 2
            assert bob.guard.error is None and not bob.guard.unreachable and bob.is_joined
            assert await bob.publish("tea", b"hot") and bob.status().ref.incarnation == incarnation

    go(attack())
