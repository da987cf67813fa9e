"""Real MQTT clients at the front doors of a small cluster: aiomqtt (paho) and mosquitto's own."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from tests.network.brokers import QUICK, go, until

from omen.net.broker import Broker
from omen.net.mqtt.listener import FrontDoor
from omen.net.mqtt.opening import open_front_door
from omen.net.mqtt.users import hash_password
from omen.net.running import with_prompt_acknowledgements
from omen.net.security.key_files import make_cluster_keys, security_from
from omen.net.settings import NodeConfig


@asynccontextmanager
async def doors(count: int, **settings: Any) -> AsyncIterator[list[FrontDoor]]:
    """Nodes with a front door each, all of one cluster."""
    brokers: list[Broker] = []
    fronts: list[FrontDoor] = []
    tasks: list[asyncio.Task[None]] = []

    async def consume(front: FrontDoor) -> None:
        async for item in front.broker.messages():
            front.consume(item)

    try:
        for number in range(count):
            join = (brokers[0].address,) if brokers else ()
            config = NodeConfig(name=f"n{number}", join=join, protocol=QUICK, mqtt="127.0.0.1:0", **settings)
            broker = Broker(with_prompt_acknowledgements(config))
            await broker.start()
            brokers.append(broker)
            fronts.append(await open_front_door(broker))
            tasks.append(asyncio.ensure_future(consume(fronts[-1])))
        yield fronts
    finally:
        for front in fronts:
            await front.close()
        for broker in brokers:
            await broker.abandon()
        for task in tasks:
            task.cancel()


def client(front: FrontDoor, name: str, version: int = 5, **more: Any) -> Any:
    host, _, port = front.addresses[0].rpartition(":")
    protocol = aiomqtt.ProtocolVersion.V5 if version == 5 else aiomqtt.ProtocolVersion.V311
    return aiomqtt.Client(host, int(port), identifier=name, protocol=protocol, **more)


async def take(reader: Any, count: int) -> list[tuple[str, bytes, int, bool]]:
    found = []
    async for message in reader.messages:
        found.append((str(message.topic), message.payload, message.qos, bool(message.retain)))
        if len(found) == count:
            return found
    raise AssertionError("the client was disconnected")


def test_clients_of_both_versions_at_different_nodes_talk_with_every_qos() -> None:
    async def talk() -> None:
        async with doors(2) as (one, other), client(one, "ann") as ann, client(other, "bob", version=3) as bob:
            await bob.subscribe([("room/tea", 2), ("room/+/x", 1)])
            for qos in (0, 1, 2):
                await ann.publish("room/tea", f"q{qos}", qos=qos)
            assert await take(bob, 3) == [("room/tea", b"q%d" % qos, qos, False) for qos in (0, 1, 2)]
            await ann.publish("room/a/x", "wild", qos=2)  # a topic nobody had named before
            assert await take(bob, 1) == [("room/a/x", b"wild", 1, False)]
            await bob.publish("room/tea", "not for ann", qos=1)
            assert await take(bob, 1) == [("room/tea", b"not for ann", 1, False)]

    go(talk())


def test_wildcards_find_topics_that_were_there_before_and_those_that_come() -> None:
    async def talk() -> None:
        async with doors(3) as fronts, client(fronts[0], "early") as early, client(fronts[2], "all") as everything:
            await early.publish("old/topic", "before", qos=1)
            await everything.subscribe("#", qos=1)
            await asyncio.sleep(1.0)
            await early.publish("old/topic", "after", qos=1)
            for number in range(5):
                await early.publish(f"new/{number}", "first", qos=1)
            found = await take(everything, 6)
            topics = {topic for topic, _, _, _ in found}
            assert topics == {"old/topic", *(f"new/{number}" for number in range(5))}
            assert ("old/topic", b"before", 1, False) not in found

    go(talk())


def test_retained_messages_are_at_every_node_also_at_one_that_comes_later() -> None:
    async def talk() -> None:
        async with doors(2) as (one, other):
            async with client(one, "ann") as ann, client(other, "bob") as bob:
                await ann.publish("state/lamp", "on", qos=1, retain=True)
                await until(lambda: "state/lamp" in other.door.retained)
                await bob.subscribe("state/#", qos=1)
                assert await take(bob, 1) == [("state/lamp", b"on", 1, True)]
            join = (one.broker.address,)
            async with Broker(NodeConfig(name="late", join=join, protocol=QUICK, mqtt="127.0.0.1:0")) as broker:
                late = await open_front_door(broker)

                async def consume() -> None:
                    async for item in broker.messages():
                        late.consume(item)

                task = asyncio.ensure_future(consume())
                await until(lambda: "state/lamp" in late.door.retained)
                await late.close()
                task.cancel()

    go(talk())


def test_a_session_follows_its_client_to_another_node() -> None:
    async def talk() -> None:
        async with doors(2) as (one, other), client(other, "ann") as ann:
            async with client(one, "bob", version=3, clean_session=False) as bob:
                await bob.subscribe("news", qos=1)
            await ann.publish("news", "while away", qos=1)
            await until(lambda: one.door.sessions["bob"].queued)
            async with client(other, "bob", version=3, clean_session=False) as bob:
                assert await take(bob, 1) == [("news", b"while away", 1, False)]
                await ann.publish("news", "here", qos=1)
                assert await take(bob, 1) == [("news", b"here", 1, False)]
                assert "bob" not in one.door.sessions

    go(talk())


def test_a_session_survives_the_crash_of_its_node() -> None:
    async def talk() -> None:
        async with doors(4) as fronts, client(fronts[3], "ann") as ann:
            await ann.publish("news", "so that both nodes are linked in it")
            async with client(fronts[0], "bob", version=3, clean_session=False) as bob:
                await bob.subscribe([("news", 1), ("more/#", 2)])
            for number in range(3):
                await ann.publish("news", f"before {number}", qos=1)
            await until(lambda: fronts[0].door.sessions["bob"].queued == 3)
            await asyncio.sleep(0.7)
            await fronts[0].broker.abandon()
            await ann.publish("news", "after", qos=1)
            async with client(fronts[1], "bob", version=3, clean_session=False) as bob:
                texts = [payload for _, payload, _, _ in await take(bob, 4)]
                assert texts == [b"before 0", b"before 1", b"before 2", b"after"]
                await ann.publish("more/x", "still subscribed", qos=2)
                assert await take(bob, 1) == [("more/x", b"still subscribed", 2, False)]

    go(talk())


def test_an_acknowledged_message_survives_the_only_node_that_wants_its_topic() -> None:
    async def talk() -> None:
        async with doors(4) as fronts:
            async with client(fronts[0], "bob", version=3, clean_session=False) as bob:
                await bob.subscribe("news", qos=1)
            with suppress(aiomqtt.MqttError):
                async with client(fronts[0], "ann") as ann:
                    await ann.publish("news", "acknowledged", qos=1)
                    await fronts[0].broker.abandon()  # before the session is stored with it
            async with client(fronts[1], "bob", version=3, clean_session=False) as bob:
                assert await take(bob, 1) == [("news", b"acknowledged", 1, False)]

    go(talk())


def test_another_node_queues_for_a_session_whose_node_has_crashed_and_publishes_its_will() -> None:
    async def talk() -> None:
        async with doors(3) as fronts, client(fronts[2], "ann") as ann:
            will = aiomqtt.Will("wills/bob", "gone", 1)
            await ann.subscribe("wills/+", qos=1)
            await ann.publish("news", "so that both nodes are linked in it")
            async with client(fronts[0], "bob", version=3, clean_session=False, will=will) as bob:
                await bob.subscribe("news", qos=1)
                await asyncio.sleep(0.7)
                await fronts[0].broker.abandon()
                with suppress(aiomqtt.MqttError):
                    assert await asyncio.wait_for(take(ann, 1), 30) == [("wills/bob", b"gone", 1, False)]
            await until(lambda: any("bob" in front.door.sessions for front in fronts[1:]))
            await ann.publish("news", "for later", qos=1)
            async with client(fronts[1], "bob", version=3, clean_session=False) as bob:
                assert await take(bob, 1) == [("news", b"for later", 1, False)]

    go(talk())


def test_sessions_queues_and_retained_messages_survive_the_end_of_the_whole_cluster(tmp_path: Any) -> None:
    async def before() -> None:
        async with doors(3, state=str(tmp_path)) as fronts, client(fronts[2], "ann") as ann:
            await ann.publish("news", "so that both nodes are linked in it")
            async with client(fronts[0], "bob", version=3, clean_session=False) as bob:
                await bob.subscribe("news", qos=1)
            await ann.publish("news", "kept", qos=1)
            await ann.publish("state/lamp", "on", qos=1, retain=True)
            await until(lambda: fronts[0].door.sessions["bob"].queued)
            await asyncio.sleep(0.7)
            for front in fronts:  # all at once, without a word
                await front.broker.abandon()

    async def after() -> None:
        async with doors(3, state=str(tmp_path)) as fronts:
            async with client(fronts[1], "bob", version=3, clean_session=False) as bob:
                assert await take(bob, 1) == [("news", b"kept", 1, False)]
            async with client(fronts[2], "new") as new:
                await new.subscribe("state/#", qos=1)
                assert await take(new, 1) == [("state/lamp", b"on", 1, True)]

    go(before())
    go(after())


def test_a_client_at_two_nodes_is_disconnected_from_the_first() -> None:
    async def talk() -> None:
        async with doors(2) as (one, other), client(one, "bob") as first:
            await until(lambda: one.door.sessions)
            async with client(other, "bob"):
                with pytest.raises((aiomqtt.MqttError, AssertionError)):
                    await take(first, 1)
                assert "bob" not in one.door.sessions

    go(talk())


def test_passwords(tmp_path: Any) -> None:
    users = tmp_path / "users"
    users.write_text(f"ann:{hash_password('right')}\n")

    async def talk() -> None:
        async with doors(1, mqtt_users=str(users)) as (front,):
            async with client(front, "a", username="ann", password="right"):
                pass
            for wrong in ({"username": "ann", "password": "wrong"}, {"username": "bob", "password": "right"}, {}):
                with pytest.raises(aiomqtt.MqttError):
                    async with client(front, "a", **wrong):
                        pass

    go(talk())


def test_a_certificate_takes_the_place_of_a_password(tmp_path: Path) -> None:
    make_cluster_keys(tmp_path / "nodes", "omen", ["n0"])
    for folder in ("clients", "strangers"):
        make_cluster_keys(tmp_path / folder, folder, ["sensor"])
    users = tmp_path / "users"
    users.write_text(f"ann:{hash_password('right')}\n")
    settings = {
        "mqtts": "127.0.0.1:0",
        "mqtt_users": str(users),
        "mqtt_authority": str(tmp_path / "clients" / "ca.pem"),
        "security": security_from(tmp_path / "nodes", "n0"),
    }

    def context(folder: str) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(tmp_path / "nodes" / "ca.pem"))
        made.check_hostname = False
        if folder:
            made.load_cert_chain(tmp_path / folder / "sensor.pem", tmp_path / folder / "sensor.key")
        return made

    async def talk() -> None:
        async with doors(1, **settings) as (front,):
            _, _, port = front.addresses[1].rpartition(":")

            def over_tls(folder: str, **more: Any) -> Any:
                return aiomqtt.Client("127.0.0.1", int(port), identifier="c", tls_context=context(folder), **more)

            async with over_tls("clients"):
                assert [one.user for one in front.door.clients.values()] == ["sensor"]
            async with over_tls("", username="ann", password="right"):
                assert [one.user for one in front.door.clients.values()] == ["ann"]
            for folder in ("", "strangers"):
                with pytest.raises(aiomqtt.MqttError):
                    async with over_tls(folder):
                        pass

    go(talk())


def test_a_node_serves_mqtt_by_one_command() -> None:
    async def talk() -> None:
        node = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "omen.cli", "node", "--mqtt", "0", "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert node.stdout is not None
            told = json.loads(await node.stdout.readline())
            host, _, port = told["mqtt"][0].rpartition(":")
            async with aiomqtt.Client(host, int(port), identifier="ann") as ann:
                await ann.subscribe("#", qos=2)
                await ann.publish("a", "hello", qos=2)
                assert await take(ann, 1) == [("a", b"hello", 2, False)]
        finally:
            node.terminate()
            assert await node.wait() == 0

    go(talk())


@pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto-clients is not installed")
@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_the_clients_of_mosquitto(version: str) -> None:
    async def talk() -> None:
        async with doors(2) as (one, other):
            common = ["-V", version, "-q", "2", "-h", "127.0.0.1"]
            reader = await asyncio.create_subprocess_exec(
                "mosquitto_sub", *common, "-p", other.addresses[0].rpartition(":")[2], "-t", "a/#", "-C", "2", "-v",
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            await until(lambda: other.door.wishes.has_wildcards)
            for text in ("hello", "there"):
                writer = await asyncio.create_subprocess_exec(
                    "mosquitto_pub", *common, "-p", one.addresses[0].rpartition(":")[2], "-t", "a/b", "-m", text
                )
                assert await writer.wait() == 0
            out, _ = await reader.communicate()
            assert out.decode().split("\n") == ["a/b hello", "a/b there", ""]

    go(talk())


def test_clients_over_websocket_talk_with_those_over_tcp() -> None:
    async def talk() -> None:
        async with doors(2, mqtt_ws="127.0.0.1:0") as (one, other), client(one, "ann") as ann:
            port = int(other.addresses[1].rpartition(":")[2])
            async with aiomqtt.Client("127.0.0.1", port, identifier="page", transport="websockets") as page:
                await page.subscribe("a/#", qos=1)
                await page.publish("b", bytes(100_000), qos=2)
                await ann.publish("a/b", "over tcp", qos=1)
                assert await take(page, 1) == [("a/b", b"over tcp", 1, False)]

    go(talk())


@pytest.mark.parametrize(("origin", "status"), [("https://evil.example", 403), ("http://localhost:3000", 101)])
def test_pages_of_other_machines_are_not_let_in_without_a_password(origin: str, status: int) -> None:
    async def ask() -> None:
        async with doors(1, mqtt_ws="127.0.0.1:0") as (front,):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(front.addresses[1].rpartition(":")[2]))
            head = "GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            keys = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            more = f"Sec-WebSocket-Protocol: mqtt\r\nOrigin: {origin}\r\n\r\n"
            writer.write((head + keys + more).encode())
            assert int((await reader.readline()).split()[1]) == status
            writer.close()

    go(ask())


def test_a_shared_subscription_spans_nodes() -> None:
    async def collect(worker: Any, got: list[int]) -> int:
        before = len(got)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                async for message in worker.messages:
                    got.append(int(message.payload))
        return len(got) - before

    async def talk(fronts: list[FrontDoor], ann: Any, workers: list[Any]) -> None:
        await ann.publish("jobs/a", "so that all nodes are linked in it")
        for worker in workers:
            await worker.subscribe("$share/workers/jobs/#", qos=1)
        await asyncio.sleep(1.0)
        for number in range(40):
            await ann.publish("jobs/a", str(number), qos=1)
        one: list[int] = []
        two: list[int] = []
        await asyncio.gather(collect(workers[0], one), collect(workers[1], two))
        assert sorted(one + two) == list(range(40)) and min(len(one), len(two)) > 5

    async def run() -> None:
        async with (
            doors(3) as fronts,
            client(fronts[2], "ann") as ann,
            client(fronts[0], "one") as one,
            client(fronts[1], "two") as two,
        ):
            await talk(fronts, ann, [one, two])

    go(run())
