"""Health as a running node tells it: alive, ready, leaving, stalled, and warnings that change neither."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from omen.net.broker import Broker
from omen.net.flow import Stalled
from omen.net.observe.http_client import fetch

from .brokers import config, go, until


async def ask(broker: Broker, path: str) -> tuple[int, dict[str, Any]]:
    status, text = await fetch(broker.http_address, path)
    return status, json.loads(text)


def test_a_node_is_alive_and_ready_with_warnings_until_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", http="127.0.0.1:0")) as ann,
            Broker(config("bob", "tea", join=(ann.address,))),
        ):
            assert await ask(ann, "/livez") == (200, {"status": "ok", "name": "ann"})
            await until(lambda: not ann.health.warnings())
            assert await ask(ann, "/readyz") == (200, {"status": "ok", "name": "ann", "warnings": []})
            for _ in range(100):
                ann.health.size.note(20.0, 5.0)
            for _ in range(100):
                ann.health.look(5.0)
            status, found = await ask(ann, "/readyz")
            assert (status, found["status"], found["warnings"]) == (200, "ok", ["cluster_smaller"])
            _, metrics = await fetch(ann.http_address, "/metrics")
            assert 'omen_health_warning{warning="cluster_smaller"} 1\n' in metrics
            assert 'omen_health_warning{warning="backup_sets_not_ready"} 0\n' in metrics
            assert "omen_node_ready 1\n" in metrics
            waits = [Stalled("tea", "bob", 1, 3, 9.0)]
            monkeypatch.setattr(Broker, "stalled", property(lambda _: waits))
            assert (await ask(ann, "/readyz"))[0] == 200
            waits[0] = Stalled("tea", "bob", 1, 3, 10.5)
            for path in ("/readyz", "/healthz"):
                status, found = await ask(ann, path)
                assert (status, found["status"]) == (503, "stalled")
            assert (await ask(ann, "/livez"))[0] == 200
            await ann.drain()
            status, found = await ask(ann, "/readyz")
            assert (status, found["status"]) == (503, "leaving")

    go(test())


def test_a_node_that_has_not_joined_is_alive_and_not_ready() -> None:
    async def test() -> None:
        bob = Broker(config("bob", "tea", http="127.0.0.1:0", join=("127.0.0.1:9",)))
        starting = asyncio.ensure_future(bob.start())
        await until(lambda: bob.http_address)
        assert (await ask(bob, "/livez"))[0] == 200
        assert (await ask(bob, "/readyz"))[0] == 503
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    go(test())


def test_a_seed_that_does_not_answer_is_a_warning_and_no_more() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            more = {"join": (ann.address, "127.0.0.1:9"), "http": "127.0.0.1:0"}
            async with Broker(config("bob", "tea", **more)) as bob:
                await until(lambda: bob.health.warnings() == ["seeds_unreachable"])
                assert bob.unreachable_seeds == ["127.0.0.1:9"]
                status, found = await ask(bob, "/readyz")
                assert (status, found["warnings"]) == (200, ["seeds_unreachable"])

    go(test())
