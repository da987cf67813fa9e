"""Clients of the three systems, each just enough for a benchmark: OMen's broker, nats-server and mosquitto."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.net_worker import Load, Worker
from omen.net.broker import Broker, Origin
from omen.net.inbox import Message
from omen.net.settings import NodeConfig
from omen.net.transport.connection import READ_BYTES

HOST = "127.0.0.1"


async def serve_omen(config: NodeConfig, origin: Origin, load: Load, commands: int, answers: int) -> None:
    """A node of the overlay."""
    broker = Broker(config, origin)
    await broker.start()

    def facts() -> dict[str, Any]:
        driver = broker.driver
        assert driver is not None
        return {
            "received": driver.received["Publication"],
            "sent": driver.sender.messages["Publication"],
            "duplicates": broker.status().dissemination.duplicates,
            "gaps": broker.gaps,
            "behind": driver.counters.slow_consumers,
            "links": 0,
        }

    worker = Worker(broker, load, facts)

    async def listen() -> None:
        async for item in broker.messages():
            if isinstance(item, Message):
                worker.take(item.payload)

    listening = asyncio.ensure_future(listen())
    await worker.serve(commands, answers)
    listening.cancel()
    await broker.abandon()


class RawClient(asyncio.Protocol):
    """A connection whose writes of one tick go out together and that reads as much at a time, as OMen's."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.worker: Worker | None = None
        self._waiting: list[bytes] = []
        self._resumed = asyncio.Event()
        self._resumed.set()
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transport.max_size = READ_BYTES

    def pause_writing(self) -> None:
        self._resumed.clear()

    def resume_writing(self) -> None:
        self._resumed.set()

    async def write(self, data: bytes) -> None:
        await self._resumed.wait()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(data)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.transport.write(b"".join(waiting))


class NatsClient(RawClient):
    """The text protocol of nats-server."""

    async def begin(self, topics: list[str]) -> None:
        lines = ['CONNECT {"verbose":false,"pedantic":false,"echo":false}\r\n']
        lines += [f"SUB {topic} {number}\r\n" for number, topic in enumerate(topics)]
        self.transport.write("".join(lines).encode())

    async def publish(self, topic: str, payload: bytes) -> None:
        await self.write(b"PUB %s %d\r\n%s\r\n" % (topic.encode(), len(payload), payload))

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data
        position = 0
        while (end := data.find(b"\r\n", position)) >= 0:
            line = data[position:end]
            if line.startswith(b"MSG"):
                size = int(line[line.rindex(b" ") + 1 :])
                stop = end + 2 + size + 2
                if len(data) < stop:
                    break
                if self.worker is not None:
                    self.worker.take(data[end + 2 : stop - 2])
                position = stop
                continue
            if line == b"PING":
                self.transport.write(b"PONG\r\n")
            position = end + 2
        self.buffer = data[position:]


class MqttClient(RawClient):
    """MQTT 3.1.1 at quality of service 0."""

    async def begin(self, topics: list[str]) -> None:
        name = f"bench{id(self):x}{time.monotonic_ns():x}".encode()
        body = _text(b"MQTT") + b"\x04\x02\x00\x00" + _text(name)
        self.transport.write(b"\x10" + _length(len(body)) + body)
        body = b"\x00\x01" + b"".join(_text(topic.encode()) + b"\x00" for topic in topics)
        self.transport.write(b"\x82" + _length(len(body)) + body)

    async def publish(self, topic: str, payload: bytes) -> None:
        body = _text(topic.encode()) + payload
        await self.write(b"\x30" + _length(len(body)) + body)

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data
        position = 0
        while (found := _read_length(data, position + 1)) is not None:
            size, start = found
            if len(data) < start + size:
                break
            if data[position] >> 4 == 3 and self.worker is not None:
                topic = int.from_bytes(data[start : start + 2], "big")
                self.worker.take(data[start + 2 + topic : start + size])
            position = start + size
        self.buffer = data[position:]


def _text(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _length(value: int) -> bytes:
    out = bytearray()
    while True:
        value, digit = value >> 7, value & 127
        out.append(digit | 128 if value else digit)
        if not value:
            return bytes(out)


def _read_length(data: bytes, position: int) -> tuple[int, int] | None:
    value = 0
    for shift in range(4):
        if position >= len(data):
            return None
        value |= (data[position] & 127) << 7 * shift
        position += 1
        if not data[position - 1] & 128:
            return value, position
    return None


async def serve_rival(
    kind: type[NatsClient] | type[MqttClient], port: int, topics: list[str], load: Load, commands: int, answers: int
) -> None:
    """A client of a server."""
    _, client = await asyncio.get_running_loop().create_connection(kind, HOST, port)
    client.worker = worker = Worker(client, load, dict)
    await client.begin(topics)
    await worker.serve(commands, answers)


RIVALS: dict[str, type[NatsClient] | type[MqttClient]] = {"nats-server": NatsClient, "mosquitto": MqttClient}


@contextmanager
def server(name: str) -> Iterator[tuple[int, int] | None]:
    """Run a server; its port and process number, or None where it is not installed."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if program is None:
        yield None
        return
    with socket.socket() as plug:
        plug.bind((HOST, 0))
        port = plug.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        if name == "mosquitto":
            settings = Path(folder) / "settings"
            limits = "max_queued_messages 0\nmax_inflight_messages 0\nmax_queued_bytes 0\n"
            settings.write_text(f"listener {port} {HOST}\nallow_anonymous true\nset_tcp_nodelay true\n{limits}")
            command = [program, "-c", str(settings)]
        else:
            command = [program, "-a", HOST, "-p", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                try:
                    socket.create_connection((HOST, port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()
