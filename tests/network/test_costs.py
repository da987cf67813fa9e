"""What one member may cost a live node: dials, file descriptors, health that is hidden."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from omen.net.broker import Broker
from omen.net.names import split_address
from omen.net.observe.http_client import fetch
from omen.net.security.hello import Hello, Refused, read_hello, write_hello
from omen.protocol.membership.ring import place_of
from omen.protocol.messages import wire
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import Digest, DigestOffer, EventId, IndirectPing, Message, Ping, Ref, ShadowQuery

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
