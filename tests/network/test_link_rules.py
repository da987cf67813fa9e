"""Four live nodes with rules: a cap that is kept, a forbidden pair, and a cap that has to be exceeded and is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omen.net.broker import Broker
from omen.net.observe.http_client import fetch
from omen.net.settings import NodeConfig
from omen.protocol.membership.ring import place_of

from .brokers import QUICK, go, take, until


def config(name: str, *join: str, http: str = "", **rules: Any) -> NodeConfig:
    return NodeConfig(name=name, topics=("tea",), join=join, http=http, protocol=replace(QUICK, **rules))


def linked(broker: Broker) -> set[int]:
    return {node for node, link in broker.status().links.items() if link.is_up}


def test_caps_and_bans_hold_while_they_can_and_an_exceeded_cap_is_told() -> None:
    ann_at, bob_at, carl_at, dan_at = map(place_of, ("ann", "bob", "carl", "dan"))

    async def test() -> None:
        async with (
            Broker(config("ann", http="127.0.0.1:0", max_links=1)) as ann,
            Broker(config("bob", ann.address)) as bob,
        ):
            await until(lambda: linked(ann) == {bob_at})
            async with (
                Broker(config("carl", ann.address)) as carl,
                Broker(config("dan", ann.address, forbid=(carl_at,))) as dan,
            ):
                await until(lambda: linked(bob) == {ann_at, carl_at, dan_at})
                assert linked(ann) == {bob_at} and not ann.status().links_above_max
                await dan.publish("tea", b"through bob")
                assert [message.payload for message in await take(carl, 1)] == [b"through bob"]
                await bob.stop()
                await until(lambda: linked(ann) == {carl_at, dan_at})
                assert dan_at not in linked(carl), "carl does not say so: dan does"
                assert "more_links_than_max" in ann.health.warnings()
                _, metrics = await fetch(ann.http_address, "/metrics")
                assert "omen_links_above_max 1\n" in metrics
                assert 'omen_health_warning{warning="more_links_than_max"} 1\n' in metrics

    go(test())
