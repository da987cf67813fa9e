"""A member that breaks rules again and again is dropped by a running node; slow and overloaded ones are not."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from omen.net.broker import Broker
from omen.net.observe.node_metrics import metrics_of
from omen.net.observe.pages import topology_of
from omen.net.settings import Limits
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import Digest, Ref
from omen.protocol.messages.overlay import Status

from .attackers import Attacker, hello_of
from .brokers import config, go, take, until


async def call(broker: Broker, name: str) -> Attacker | None:
    """A connection as a member of this name; None: refused."""
    attacker = await Attacker.dial(broker.address, "127.0.0.1")
    if await attacker.greet(hello_of(name)) is None:
        return None
    return attacker


def test_a_member_that_sends_what_is_no_message_again_and_again_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Before: it was shut out for 0.2 s at first, and taken back each time."""
    caplog.set_level(logging.WARNING, "omen.node")

    async def test() -> None:
        async with (
            Broker(config("ann", "tea")) as ann,
            Broker(config("bob", "tea", join=(ann.address,))) as bob,
        ):
            while not ann.status().bans:
                ann.admission.bans.lift_all()
                eve = await call(ann, "eve")
                assert eve is not None
                eve.send_frame(b"\x00nonsense")
                await eve.read_to_end()
            assert list(ann.status().bans) == [place_of("eve")] and bob.status().bans == {}
            eve = await call(ann, "eve")
            assert eve is None or b"'eve' is banned" in await eve.read_to_end()
            assert 50 < ann.admission.bans.remaining(place_of("eve"), asyncio.get_running_loop().time()) <= 60
            assert "omen_banned_peers 1" in metrics_of(ann) and "omen_peers_banned_total 1" in metrics_of(ann)
            assert 50 < topology_of(ann)["banned"]["eve"] <= 60
            await ann.publish("tea", b"green")
            (message,) = await take(bob, 1)
            assert message.payload == b"green"
        (line,) = [record for record in caplog.records if record.message == "peer_banned"]
        assert line.fields == {"peer": "eve", "offence": "malformed", "for_s": 60}  # type: ignore[attr-defined]

    go(test())


def test_one_that_speaks_for_others_loses_its_connection_with_the_ban() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            eve = await call(ann, "eve")
            assert eve is not None
            other = Ref(place_of("bob"), 1, "127.0.0.1:1")
            for _ in range(11):
                eve.say(Status(Digest(other, 1, 1), (), ()))
            assert b"broke the protocol too often" in await eve.read_to_end()
            assert list(ann.status().bans) == [place_of("eve")]
            assert place_of("bob") not in ann.status().offences

    go(test())


def test_a_node_that_reads_slowly_or_publishes_more_than_others_can_take_has_no_points() -> None:
    async def test() -> None:
        tight = Limits(queue_bytes=40_000, publish_patience_s=0.1, backpressure_timeout_s=0.1, frames_per_s=100.0)
        async with (
            Broker(config("ann", "tea", limits=tight)) as ann,
            Broker(config("bob", "tea", join=(ann.address,), limits=tight)) as bob,
            Broker(replace(config("cid", "tea", join=(ann.address,)), limits=tight)) as cid,
        ):
            brokers = (ann, bob, cid)
            for _ in range(300):
                await asyncio.gather(*(broker.publish("tea", bytes(2_000)) for broker in brokers))
            await until(lambda: all(broker.delivered > 100 for broker in brokers))
            assert sum(broker.admission.counters.throttled_reads for broker in brokers) > 0
            assert not any(broker.status().offences or broker.status().bans for broker in brokers)

    go(test())
