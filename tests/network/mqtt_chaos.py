"""MQTT clients with sessions at a cluster whose nodes are killed again and again: is anything lost, or there twice?

    python -m tests.network.mqtt_chaos --nodes 12 --clients 300 --seconds 120 --kills 3

Each node is a process. Every client has a session, subscribes to a topic of its own, to a topic of its group and to a
wildcard, publishes with QoS 1 and 2, and connects to any other node when its own is gone. Counted: messages that were
acknowledged to their publisher (PUBACK, PUBREC) and did not come to a client subscribed to them (lost); messages with
QoS 2 that came twice to one client (duplicated); connections that did not find their session. `--restart`: at the end
all nodes are killed and started again, and every client must find its session and what was published last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
)

GROUPS = 10
SETTLE_S = 20.0


class Node:
    """One process of the cluster, under the same name and ports whenever it is started."""

    def __init__(self, number: int, folder: Path, ports: list[int]) -> None:
        self.port = ports[2 * number + 1]
        self._config = folder / f"n{number}.toml"
        seeds = [f"127.0.0.1:{ports[2 * other]}" for other in range(min(3, len(ports) // 2)) if other != number]
        self._config.write_text(
            f'name = "n{number}"\nlisten = "127.0.0.1:{ports[2 * number]}"\nmqtt = "127.0.0.1:{self.port}"\n'
            f'join = {json.dumps(seeds)}\nstate = "{folder / "state"}"\n[limits]\njoin_timeout_s = 0\n'
        )
        self._log = (folder / f"n{number}.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "omen.cli", "node", "--config", str(self._config)]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


class Client:
    """A client with a session. `due`: what it must get; `got`: how often it got what."""

    def __init__(self, name: str, patterns: list[str], cluster: Cluster) -> None:
        self.name, self.patterns, self._cluster = name, patterns, cluster
        self.got: Counter[bytes] = Counter()
        self.acknowledged: dict[bytes, tuple[str, int, float]] = {}
        self.sessions_lost = self.connections = 0
        self.is_ready = False
        self.is_online = asyncio.Event()
        self._open: dict[int, tuple[PublishPacket, bool]] = {}
        self._received: set[int] = set()
        self._number = self._serial = 0
        self._writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        while not self._cluster.is_over:
            self.is_online.clear()
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ValueError, EOFError):
                await self._connection()
            if self._writer is not None:
                self._writer.close()
            await asyncio.sleep(self._cluster.draw.uniform(0.1, 0.6))

    async def _connection(self) -> None:
        living = [one for one in self._cluster.nodes if one.process is not None]
        if not living:
            raise ConnectionError("no node is there")
        node = self._cluster.draw.choice(living)
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        self._writer = writer
        packets = self._packets(reader)
        writer.write(mqtt5.ConnectPacket(self.name, clean_start=False, session_expiry_interval=3600).write())
        async with asyncio.timeout(15):
            hello = await anext(packets)
        if not isinstance(hello, ConnAckPacket) or int(hello.reason_code):
            return
        self.connections += 1
        if self.is_ready and not hello.session_present:
            self.sessions_lost += 1
            self._received.clear()
        if not self.is_ready:
            filters = [TopicFilter(pattern, max_qos=QoS(2)) for pattern in self.patterns]
            writer.write(SubscribePacket(1, filters).write())
        else:
            self._resume(writer)
        async for packet in packets:
            self._take(packet, writer)

    def _resume(self, writer: asyncio.StreamWriter) -> None:
        for number, (packet, is_released) in self._open.items():
            again = PublishPacket(packet.topic, packet.payload, qos=packet.qos, packet_id=number, duplicate=True)
            writer.write(PubRelPacket(number).write() if is_released else again.write())
        self.is_online.set()

    async def _packets(self, reader: asyncio.StreamReader) -> Any:
        buffer = b""
        while data := await reader.read(65536):
            buffer += data
            for packet, size in _whole(buffer):
                buffer = buffer[size:]
                yield packet
        raise EOFError

    def _take(self, packet: Any, writer: asyncio.StreamWriter) -> None:
        match packet:
            case SubAckPacket():
                self.is_ready = True
                self.is_online.set()
            case PublishPacket():
                number, qos = packet.packet_id, int(packet.qos)
                if qos != 2 or number not in self._received:
                    self.got[packet.payload] += 1
                if qos == 1:
                    writer.write(PubAckPacket(number).write())
                elif qos == 2:
                    self._received.add(number)
                    writer.write(PubRecPacket(number).write())
            case PubRelPacket():
                self._received.discard(packet.packet_id)
                writer.write(PubCompPacket(packet.packet_id).write())
            case PubAckPacket() | PubRecPacket():
                sent = self._open.get(packet.packet_id)
                if sent is None:
                    return
                message = sent[0]
                self.acknowledged.setdefault(message.payload, (message.topic, int(message.qos), time.time()))
                if isinstance(packet, PubAckPacket):
                    del self._open[packet.packet_id]
                else:
                    self._open[packet.packet_id] = (message, True)
                    writer.write(PubRelPacket(packet.packet_id).write())
            case PubCompPacket():
                self._open.pop(packet.packet_id, None)

    def publish(self, topic: str, qos: int) -> None:
        """Publish, unless there is no connection, or too much is on its way."""
        if not self.is_online.is_set() or len(self._open) > 20 or self._writer is None:
            return
        self._number = self._number % 60_000 + 1
        if self._number in self._open:
            return
        self._serial += 1
        payload = f"{self.name} {self._serial} {qos}".encode()
        packet = PublishPacket(topic, payload, qos=QoS(qos), packet_id=self._number)
        self._open[self._number] = (packet, False)
        self._writer.write(packet.write())


def _whole(buffer: bytes) -> Iterator[tuple[Any, int]]:
    """The packets that are complete, with their sizes."""
    while len(buffer) >= 2:
        length = shift = place = 0
        while True:
            place += 1
            if place >= len(buffer):
                return
            length |= (buffer[place] & 0x7F) << shift
            shift += 7
            if buffer[place] < 0x80:
                break
        size = place + 1 + length
        if len(buffer) < size:
            return
        yield mqtt5.read(buffer[:size])[0], size
        buffer = buffer[size:]


class Cluster:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.draw = random.Random(options.seed)
        self.options = options
        ports = _free_ports(2 * options.nodes)
        self.nodes = [Node(number, folder, ports) for number in range(options.nodes)]
        self.clients = [
            Client(f"c{number}", [f"own/{number}", f"group/{number % GROUPS}", f"wild/{number % GROUPS}/+"], self)
            for number in range(options.clients)
        ]
        self.is_over = False
        self.killed = 0

    async def run(self) -> dict[str, Any]:
        for node in self.nodes:
            node.start()
            await asyncio.sleep(0.3)
        await asyncio.sleep(8)
        tasks = [asyncio.ensure_future(client.run()) for client in self.clients]
        while not all(client.is_ready for client in self.clients):
            await asyncio.sleep(0.5)
        publishing = asyncio.ensure_future(self._publish())
        await asyncio.sleep(5)
        self.counted_from = time.time()
        end = time.time() + self.options.seconds
        while time.time() < end:
            await self._kill_some()
        publishing.cancel()
        if self.options.restart:
            await self._restart_all()
        await asyncio.sleep(SETTLE_S)
        await self._wait_for_all()
        self.is_over = True
        for task in tasks:
            if task.done():
                task.result()  # a client that has ended would count as one that lacks nothing
            task.cancel()
        return self.verdict()

    async def _publish(self) -> None:
        pause = 1 / self.options.rate
        while True:
            client = self.draw.choice(self.clients)
            other = self.draw.randrange(len(self.clients))
            topic = self.draw.choice([f"own/{other}", f"group/{other % GROUPS}", f"wild/{other % GROUPS}/x"])
            client.publish(topic, self.draw.choice((1, 2)))
            await asyncio.sleep(pause)

    async def _kill_some(self) -> None:
        chosen = self.draw.sample(self.nodes, self.draw.randint(1, self.options.kills))
        for node in chosen:
            node.kill()
        self.killed += len(chosen)
        await asyncio.sleep(self.options.down)
        for node in chosen:
            node.start()
        await asyncio.sleep(self.options.pause)

    async def _restart_all(self) -> None:
        await asyncio.sleep(3)
        for node in self.nodes:
            node.kill()
        await asyncio.sleep(2)
        for node in self.nodes:
            node.start()
        await asyncio.sleep(10)

    def _due(self) -> Iterator[tuple[Client, bytes]]:
        by_topic: dict[str, list[Client]] = {}
        for number, client in enumerate(self.clients):
            for topic in (f"own/{number}", f"group/{number % GROUPS}", f"wild/{number % GROUPS}/x"):
                by_topic.setdefault(topic, []).append(client)
        for publisher in self.clients:
            for payload, (topic, _, at) in publisher.acknowledged.items():
                if at >= self.counted_from:
                    for client in by_topic[topic]:
                        yield client, payload

    async def _wait_for_all(self) -> None:
        end = time.time() + 60
        while time.time() < end and any(not client.got[payload] for client, payload in self._due()):
            await asyncio.sleep(2)

    def verdict(self) -> dict[str, Any]:
        due = list(self._due())
        lost = Counter(payload.split()[2].decode() for client, payload in due if not client.got[payload])
        twice = Counter(
            payload.split()[2].decode() for client in self.clients for payload, n in client.got.items() if n > 1
        )
        return {
            "nodes": len(self.nodes),
            "clients": len(self.clients),
            "seconds": self.options.seconds,
            "killed": self.killed,
            "acknowledged": sum(len(client.acknowledged) for client in self.clients),
            "due": len(due),
            "lost_qos_1": lost["1"],
            "lost_qos_2": lost["2"],
            "duplicated_qos_1": twice["1"],
            "duplicated_qos_2": twice["2"],
            "connections": sum(client.connections for client in self.clients),
            "sessions_not_found": sum(client.sessions_lost for client in self.clients),
        }

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rate", type=float, default=30, help="messages per second in all")
    parser.add_argument("--kills", type=int, default=1, help="nodes killed at once, at most")
    parser.add_argument("--down", type=float, default=3, help="seconds until they are started again")
    parser.add_argument("--pause", type=float, default=12, help="seconds until the next are killed")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for settings and logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        cluster = Cluster(options, folder)
        try:
            found = asyncio.run(cluster.run())
        finally:
            cluster.stop()
    print(json.dumps(found))
    return 1 if found["lost_qos_1"] or found["lost_qos_2"] or found["duplicated_qos_2"] else 0


if __name__ == "__main__":
    sys.exit(main())
