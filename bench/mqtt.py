"""The front door next to Mosquitto and the MQTT listener of nats-server, on one core each, in one run.

    python -m bench.mqtt [--seconds 3] [--idle 10000] [--only omen|mosquitto|nats] [--out FILE]

Clients are this process, on the other core: MQTT 3.1.1, packets of one size, so that nothing has to be parsed to count
them. Throughput is what arrived; latency is that of one message after the other, 200 per second. The other
two are measured where they are installed (Debian: mosquitto, nats-server).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

TOPIC = b"bench/one"
WINDOW = 100
"""QoS 1: messages of a publisher that are not acknowledged yet, at most."""
CASES = [(1, 1), (1, 100), (100, 1)]
KINDS = ("omen", "mosquitto", "nats")
MANY = 1000
"""Subscriptions of one client, each to a topic of its own."""


def framed(first: int, body: bytes) -> bytes:
    length, size = bytearray(), len(body)
    while True:
        size, low = size >> 7, size & 0x7F
        length.append(low | (0x80 if size else 0))
        if not size:
            return bytes((first,)) + bytes(length) + body


def text(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def connect(name: bytes) -> bytes:
    return framed(0x10, text(b"MQTT") + b"\x04\x02\x00\x00" + text(name))


def subscribe(qos: int) -> bytes:
    return framed(0x82, b"\0\1" + text(TOPIC) + bytes((qos,)))


def publish(qos: int, payload: bytes, number: int = 0) -> bytes:
    return framed(0x30 | qos << 1, text(TOPIC) + (number.to_bytes(2, "big") if qos else b"") + payload)


class Client(asyncio.Protocol):
    """A connection that counts bytes. `each`: the size of what comes."""

    def __init__(self) -> None:
        self.received = 0
        self.each = 0
        self.qos = 0
        self.acknowledges = False
        self._rest = b""
        self._news = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.transport: asyncio.Transport = None  # type: ignore[assignment]

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self._news.set()
        if self.acknowledges and self.each:
            self._acknowledge(data)

    def _acknowledge(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) // self.each
        answers = bytearray()
        start = 0
        for _ in range(whole):
            place = start + self.offset
            answers += b"\x40\x02" + data[place : place + 2]
            start += self.each
        self._rest = data[start:]
        if answers:
            self.transport.write(bytes(answers))

    @property
    def offset(self) -> int:
        """Where the packet identifier stands in a PUBLISH."""
        return (2 if self.each < 130 else 3) + 2 + len(TOPIC)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def write(self, data: bytes) -> None:
        self.transport.write(data)
        await self._may_write.wait()

    async def wait_for(self, size: int) -> None:
        while self.received < size:
            self._news.clear()
            await self._news.wait()


async def join(port: int, name: str, qos: int | None = None) -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
    client.transport.write(connect(name.encode()))
    await client.wait_for(4)
    if qos is not None:
        client.transport.write(subscribe(qos))
        await client.wait_for(9)
    client.received = 0
    return client


async def throughput(port: int, shape: tuple[int, int], qos: int, size: int, seconds: float) -> float:
    """Messages that arrived per second."""
    publishers, subscribers = shape
    readers = [await join(port, f"s{number}", qos) for number in range(subscribers)]
    writers = [await join(port, f"p{number}") for number in range(publishers)]
    each = len(publish(qos, bytes(size)))
    for reader in readers:
        reader.each, reader.acknowledges = each, qos > 0
    if qos == 0:
        await asyncio.gather(*(one.write(publish(0, bytes(size))) for one in writers))
    await asyncio.sleep(1.0)
    end = time.perf_counter() + seconds

    async def pump(writer: Client) -> None:
        batch = max(1, 20_000 // each)
        sent = 0
        plain = publish(0, bytes(size)) * batch
        while time.perf_counter() < end:
            if qos == 0:
                await writer.write(plain)
                await asyncio.sleep(0)
                continue
            room = WINDOW - (sent - writer.received // 4)
            if room <= 0:
                await writer.wait_for(4 * (sent - WINDOW + 1))
                continue
            packets = b"".join(publish(1, bytes(size), 1 + (sent + step) % 60_000) for step in range(room))
            sent += room
            await writer.write(packets)

    before, begun = sum(reader.received for reader in readers), time.perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds + 2):
            await asyncio.gather(*map(pump, writers))
    took = time.perf_counter() - begun
    rate = (sum(reader.received for reader in readers) - before) / each / took
    await _wait_until_quiet(readers)
    for one in (*readers, *writers):
        one.transport.abort()
    await asyncio.sleep(0.5)
    return rate


async def _wait_until_quiet(readers: list[Client]) -> None:
    """Until what was sent has come, 20 s at most: otherwise it would come to the readers of the next case."""
    before = -1
    for _ in range(40):
        received = sum(reader.received for reader in readers)
        if received == before:
            return
        before = received
        await asyncio.sleep(0.5)


async def latency(port: int, qos: int, size: int, count: int = 400) -> tuple[float, float]:
    """The median and the 99th percentile in milliseconds, from one client to another, one message after the other."""
    reader, writer = await join(port, "reader", qos), await join(port, "writer")
    reader.each = len(publish(qos, bytes(size)))
    reader.acknowledges = qos > 0
    times = []
    for number in range(count + 20):
        want = reader.received + reader.each
        begun = time.perf_counter()
        writer.transport.write(publish(qos, bytes(size), 1 + number))
        await reader.wait_for(want)
        times.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(0.005)
    reader.transport.abort()
    writer.transport.abort()
    cuts = statistics.quantiles(times[20:], n=100)
    return statistics.median(times[20:]), cuts[98]


async def subscriptions(port: int) -> float:
    """Seconds until many subscriptions of one client, in packets of 50, are acknowledged."""
    client = await join(port, "many")
    packets = []
    for first in range(0, MANY, 50):
        names = [b"many/%d" % number for number in range(first, first + 50)]
        body = (1 + first).to_bytes(2, "big") + b"".join(len(name).to_bytes(2, "big") + name + b"\0" for name in names)
        packets.append(framed(0x82, body))
    begun = time.perf_counter()
    client.transport.write(b"".join(packets))
    await client.wait_for(len(packets) * 54)
    took = time.perf_counter() - begun
    client.transport.abort()
    await asyncio.sleep(0.5)
    return took


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


async def idle(port: int, pid: int, count: int) -> dict[str, float]:
    """Memory of a server with so many connections that do nothing."""
    before = resident(pid)
    clients = []
    for start in range(0, count, 200):
        clients += await asyncio.gather(*(join(port, f"i{start + number}") for number in range(200)))
    await asyncio.sleep(3)
    after = resident(pid)
    for client in clients:
        client.transport.abort()
    await asyncio.sleep(2)
    return {
        "connections": count,
        "before_mb": before / 1e6,
        "after_mb": after / 1e6,
        "per_connection_kb": (after - before) / count / 1e3,
    }


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def program_of(kind: str) -> str | None:
    """Where a server is installed; None: it is not."""
    if kind == "omen":
        return sys.executable
    name = {"mosquitto": "mosquitto", "nats": "nats-server"}[kind]
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def command_for(kind: str, port: int, folder: Path) -> list[str]:
    program = program_of(kind)
    assert program is not None
    if kind == "omen":
        return [program, "-m", "omen.cli", "node", "--mqtt", str(port), "--json"]
    settings = folder / "settings.conf"
    if kind == "nats":
        settings.write_text(
            f'server_name: bench\nhost: "127.0.0.1"\nport: {free_port()}\nmax_payload: 1048576\n'
            f'jetstream {{ store_dir: "{folder}" }}\nmqtt {{ host: "127.0.0.1", port: {port} }}\n'
        )
    else:
        lines = (
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "max_queued_messages 100000",
            "set_tcp_nodelay true",
        )
        settings.write_text("".join(f"{line}\n" for line in lines))
    return [program, "-c", str(settings)]


@asynccontextmanager
async def server(kind: str) -> AsyncIterator[tuple[int, int]]:
    """A server on the first core: its port and process."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = command_for(kind, port, Path(folder))
        process = subprocess.Popen(
            ["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            for _ in range(200):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(20)


async def measure(kind: str, seconds: float, idlers: int) -> dict[str, Any]:
    found: dict[str, Any] = {"throughput": {}, "latency": {}}
    async with server(kind) as (port, _):
        for shape in CASES:
            for qos in (0, 1):
                for size in (100, 10_000):
                    name = f"{shape[0]} to {shape[1]}, QoS {qos}, {size} B"
                    found["throughput"][name] = round(await throughput(port, shape, qos, size, seconds))
                    print(f"{kind:10} {name:28} {found['throughput'][name]:>9,} per second", flush=True)
        found["subscriptions_s"] = round(await subscriptions(port), 3)
        print(f"{kind:10} {MANY} subscriptions of one client: {found['subscriptions_s']} s", flush=True)
        for qos in (0, 1):
            median, high = await latency(port, qos, 100)
            found["latency"][f"QoS {qos}"] = {"median_ms": round(median, 2), "p99_ms": round(high, 2)}
            print(f"{kind:10} latency, QoS {qos}: median {median:.2f} ms, p99 {high:.2f} ms", flush=True)
    if idlers:
        async with server(kind) as (port, pid):
            found["idle"] = await idle(port, pid, idlers)
            print(f"{kind:10} idle {found['idle']}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    kinds = [kind for kind in ([options.only] if options.only else KINDS) if program_of(kind) is not None]
    found = {kind: asyncio.run(measure(kind, options.seconds, options.idle)) for kind in kinds}
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
