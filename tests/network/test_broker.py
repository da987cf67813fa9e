"""Brokers in one event loop: joining, publishing, leaving, coming back, refusing, and what is told of trouble."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from omen.errors import InvalidInput
from omen.net.broker import Broker, NotJoined, Stopped
from omen.net.names import split_address
from omen.net.observe.front_door import FrontDoorFacts
from omen.net.observe.http_client import fetch
from omen.net.observe.http_server import answer
from omen.net.recording import replay_recording
from omen.net.security.hello import MAGIC, PREFACE
from omen.net.settings import Limits

from .brokers import PATIENCE_S, config, go, take, until


def test_a_publication_reaches_all_subscribers_in_order_and_no_other_node() -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea")) as ann,
            Broker(config("bob", "tea", "jazz", join=(ann.address,))) as bob,
            Broker(config("cid", "jazz", join=(bob.address,))) as cid,
        ):
            said = [str(number).encode() for number in range(300)]
            for payload in said:
                await ann.publish("tea", payload)
            assert [message.payload for message in await take(bob, 300)] == said
            await bob.publish("jazz", b"blue")
            assert (await take(cid, 1))[0].payload == b"blue"
            assert cid.driver is not None
            assert cid.driver.received["Publication"] == 1
            assert cid.delivered == 1

    go(test())


def test_publish_tells_when_neighbours_hold_it() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann, Broker(config("bob", "tea", join=(ann.address,))) as bob:
            first = await ann.publish("tea", b"green")
            second = await ann.publish("tea", b"black")
            assert (first, second) == (1, 2)
            assert await ann.wait_held("tea", second, PATIENCE_S)
            assert [message.sequence for message in await take(bob, 2)] == [1, 2]
            assert ann.topics == []
            assert not await ann.wait_held("tea", 3, 0.05)

    go(test())


def test_a_late_subscriber_may_ask_for_the_window_or_not() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            for number in range(20):
                await ann.publish("tea", bytes([number]))
            async with (
                Broker(config("bob", join=(ann.address,))) as bob,
                Broker(config("cid", join=(ann.address,))) as cid,
            ):
                await bob.subscribe("tea", replay=True)
                await cid.subscribe("tea")
                assert [message.sequence for message in await take(bob, 20)] == list(range(1, 21))
                await ann.publish("tea", b"fresh")
                assert (await take(cid, 1))[0].payload == b"fresh"

    go(test())


def test_what_is_unsubscribed_is_delivered_no_more() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann, Broker(config("bob", "tea", join=(ann.address,))) as bob:
            await ann.publish("tea", b"one")
            assert len(await take(bob, 1)) == 1
            await bob.unsubscribe("tea")
            await ann.publish("tea", b"two")
            await bob.subscribe("jazz")
            await bob.publish("jazz", b"three")
            assert (await take(bob, 1))[0].payload == b"three"

    go(test())


def test_a_node_that_comes_back_under_its_name_is_taken_in_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            bob = Broker(config("bob", "tea", join=(ann.address,), state=str(tmp_path)))
            await bob.start()
            former = bob.status().ref.incarnation
            await bob.abandon()
            async with Broker(config("bob", "tea", join=(ann.address,), state=str(tmp_path))) as bob:
                assert bob.status().ref.incarnation > former
                await ann.publish("tea", b"again")
                assert (await take(bob, 1))[0].payload == b"again"

    go(test())


def test_a_node_that_comes_back_lacks_nothing_said_since_its_start_returned() -> None:
    async def test() -> None:
        said = 0

        async def say(broker: Broker) -> None:
            nonlocal said
            while True:
                said = await broker.publish("tea", b"now")
                await asyncio.sleep(0.005)

        async with (
            Broker(config("ann", "tea")) as ann,
            Broker(config("bob", "tea", join=(ann.address,))) as bob,
            Broker(config("cid", "tea", join=(ann.address,))) as cid,
        ):
            saying = asyncio.ensure_future(say(cid))
            for _ in range(3):
                await bob.abandon()
                bob = Broker(config("bob", "tea", join=(ann.address,)))
                await bob.start()
                before = said
                first = (await take(bob, 1))[0].sequence
                assert first <= before + 1
            await bob.abandon()
            saying.cancel()

    go(test())


def test_the_last_node_of_a_cluster_is_well() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            bob = Broker(config("bob", "tea", join=(ann.address,)))
            await bob.start()
        assert bob.is_joined
        await until(lambda: not bob.status().membership.ring)
        assert bob.is_joined
        await bob.stop()

    go(test())


def test_nodes_of_different_clusters_refuse_each_other() -> None:
    async def test() -> None:
        async with Broker(config("ann", cluster="one")) as ann:
            with pytest.raises(NotJoined, match="cluster"):
                await Broker(config("bob", cluster="two", join=(ann.address,))).start()
            assert ann.driver is not None
            await until(lambda: ann.admission.refused["cluster"] == 1)

    go(test())


def test_an_older_version_is_refused_with_a_line_before_anything_else_is_read() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann:
            reader, writer = await asyncio.open_connection(*split_address(ann.address))
            writer.write(PREFACE.pack(MAGIC, 0, 4) + b"\xc1\xc1\xc1\xc1")
            answer = await reader.read(-1)
            assert b"OMNO" in answer and b"version 0" in answer
            writer.close()
            reader, writer = await asyncio.open_connection(*split_address(ann.address))
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert b"not from an OMen node" in await reader.read(-1)
            writer.close()

    go(test())


def test_a_node_that_finds_no_member_says_so() -> None:
    async def test() -> None:
        lonely = config("ann", join=("127.0.0.1:1",), limits=Limits(join_timeout_s=0.5))
        with pytest.raises(NotJoined, match=r"no member to join through at 127\.0\.0\.1:1"):
            await Broker(lonely).start()
        with pytest.raises(Stopped):
            await Broker(config("bob")).publish("tea", b"")

    go(test())


def test_too_large_a_publication_and_too_long_a_topic_are_refused() -> None:
    async def test() -> None:
        async with Broker(config("ann")) as ann:
            with pytest.raises(InvalidInput, match="at most 1048576"):
                await ann.publish("tea", bytes((1 << 20) + 1))
            with pytest.raises(InvalidInput, match="of 1048580 bytes"):
                await ann.publish("tea", memoryview(bytes((1 << 20) + 4)).cast("I"))
            with pytest.raises(InvalidInput, match="1 to 255 bytes"):
                await ann.subscribe("t" * 256)

    go(test())


def test_pages_tell_health_topology_and_metrics() -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", http="127.0.0.1:0")) as ann,
            Broker(config("bob", "tea", join=(ann.address,))) as bob,
        ):
            await ann.publish("tea", b"green")
            await take(bob, 1)
            status, text = await fetch(ann.http_address, "/healthz")
            assert (status, json.loads(text)["status"]) == (200, "ok")
            _, text = await fetch(ann.http_address, "/topology")
            topology = json.loads(text)
            assert topology["links"] == ["bob"]
            assert topology["successors"] == ["bob"]
            assert topology["topics"] == [{"topic": "tea", "subscribed": True, "neighbours": 1}]
            holes = {key: topology[key] for key in ("waiting_streams", "missing_publications", "stream_wait_s")}
            assert set(holes.values()) == {0}, "by the names of their metrics"
            _, text = await fetch(ann.http_address, "/metrics")
            assert 'omen_links{state="up"} 1\n' in text
            assert "omen_publications_total 1\n" in text
            assert 'omen_messages_sent_total{kind="Publication"} 1\n' in text
            assert 'omen_repair_duration_seconds_bucket{le="+Inf"}' in text
            assert (await fetch(ann.http_address, "/nothing"))[0] == 404

    go(test())


def test_metrics_go_by_the_conventions_and_are_all_documented() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea", http="127.0.0.1:0")) as ann:
            ann.front_door = FrontDoorFacts
            _, text = await fetch(ann.http_address, "/metrics")
        kinds = dict(re.findall(r"^# TYPE (omen_\S+) (\S+)$", text, re.MULTILINE))
        assert len(kinds) > 50
        for name, kind in kinds.items():
            assert (kind == "counter") == name.endswith("_total"), name
            assert kind != "histogram" or name.endswith("_seconds"), name
            assert name.removesuffix("_total") not in kinds.keys() - {name}, f"{name} would clash in OpenMetrics"
        documented = (Path(__file__).parents[2] / "docs" / "operations.md").read_text().partition("\n## Metrics")[2]
        assert set(re.findall(r"`(omen_\w+)`", documented.partition("\n## ")[0])) == set(kinds)

    go(test())


def test_the_page_is_openmetrics_for_a_scraper_that_asks_for_it() -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", http="127.0.0.1:0")) as ann,
            Broker(config("bob", "tea", http="127.0.0.1:0", join=(ann.address,))) as bob,
        ):
            await ann.publish("tea", b"1")
            await anext(bob.messages())
            _, kind, text = answer(bob, "GET", "/metrics", "application/openmetrics-text; version=1.0.0,*/*;q=0.1")
            assert kind.startswith("application/openmetrics-text")
            families = {family.name: family for family in text_string_to_metric_families(text)}
            samples = {sample.name: sample.value for family in families.values() for sample in family.samples}
            assert samples["omen_delivery_latency_seconds_count"] == 1
            assert 0 < samples["omen_window_bytes"] < samples["omen_window_limit_bytes"]
            assert families["omen_build"].type == "info" and families["process_cpu_seconds"].type == "counter"
            assert 'omen_publish_wait_seconds_bucket{le="0.001"} 1\n' in answer(ann, "GET", "/metrics")[2]

    go(test())


def test_an_answer_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while True:
                    writer.write(bytes(1 << 16))
                    await writer.drain()

        monkeypatch.setattr("omen.net.observe.http_client.LARGEST", 1 << 18)
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            with pytest.raises(ConnectionError, match="more than 262144 bytes"):
                await fetch(f"{host}:{port}", "/topology")

    go(test())


def test_metrics_name_no_topic_and_no_peer_however_many_there_are() -> None:
    async def series(broker: Broker) -> set[str]:
        """All series, those split by kind as one: they appear as the first of each is counted."""
        _, text = await fetch(broker.http_address, "/metrics")
        lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
        values = {value for line in lines for value in re.findall(r'kind="([^"]*)"', line)}
        assert all(re.fullmatch("[A-Za-z_]+", value) for value in values)
        return {re.sub(r'(kind)="[^"]*"', r"\1", line) for line in lines}

    async def test() -> None:
        async with (
            Broker(config("ann", "topic-0", http="127.0.0.1:0")) as ann,
            Broker(config("peer-bob", "topic-0", join=(ann.address,))) as bob,
        ):
            await ann.publish("topic-0", b"x")
            await take(bob, 1)
            before = await series(ann)
            await bob.subscribe(*(f"topic-{number}" for number in range(50)))
            for number in range(50):
                await ann.publish(f"topic-{number}", b"x")
            await take(bob, 50)
            after = await series(ann)
            assert len(before) > 40 and before == after
            assert not [line for line in after if "topic-" in line or "peer-bob" in line]

    go(test())


def test_a_recorded_run_replayed_through_a_fresh_core_gives_the_same_outputs(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", "jazz")) as ann,
            Broker(config("bob", "tea", join=(ann.address,), record=str(tmp_path / "bob"))) as bob,
            Broker(config("cid", "tea", "jazz", join=(bob.address,))) as cid,
        ):
            for number in range(50):
                await ann.publish("tea", bytes(number))
                await bob.publish("jazz", bytes(number))
                await asyncio.sleep(0.01)
            await bob.subscribe("jazz", replay=True)
            await cid.abandon()
            await take(bob, 50)
            await bob.unsubscribe("tea")
            await asyncio.sleep(0.5)

    go(test())
    replayed = replay_recording(tmp_path / "bob")
    assert replayed.differs_at is None
    assert replayed.steps > 100


def test_what_an_application_was_too_slow_for_counts_as_a_gap_and_not_as_delivered() -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea", limits=Limits(inbox_messages=3))) as ann:
            for _ in range(5):
                await ann.publish("tea", b"x")
            assert (ann.delivered, ann.gaps, ann.inbox.overflowed) == (3, 1, 2)

    go(test())
