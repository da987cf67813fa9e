"""Clients of MQTT 5 for runs in which nodes come and go: they connect elsewhere when their node is gone, and note what
came of every message.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    DisconnectPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    Will,
)

SESSION_S = 3600
GONE = (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError, EOFError)
Ports = Callable[[], list[int]]
"""Where nodes listen that have not been killed."""


class Client:
    """A client with a session. `got`: how often it got what; `acknowledged`: what its node has promised, by payload:
    the topic, the QoS and when. `history`: what became of each payload here, for who wants to know why.
    """

    def __init__(self, name: str, patterns: list[str], ports: Ports, draw: random.Random) -> None:
        self.name, self.patterns, self._ports, self._draw = name, patterns, ports, draw
        self.got: Counter[bytes] = Counter()
        self.acknowledged: dict[bytes, tuple[str, int, float]] = {}
        self.history: dict[bytes, list[str]] = {}
        self.sessions_lost = self.connections = 0
        self.is_ready = False
        self.is_online = asyncio.Event()
        self._open: dict[int, tuple[PublishPacket, bool]] = {}
        self._received: set[int] = set()
        self._number = self._serial = 0
        self._writer: asyncio.StreamWriter | None = None
        self._port = 0

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self.is_online.clear()
            with suppress(*GONE):
                await self._connection()
            if self._writer is not None:
                self._writer.close()
            await asyncio.sleep(self._draw.uniform(0.1, 0.6))

    async def _connect(self, packet: ConnectPacket) -> tuple[Any, ConnAckPacket | None]:
        ports = self._ports()
        if not ports:
            raise ConnectionError("no node is there")
        self._port = self._draw.choice(ports)
        async with asyncio.timeout(5):
            reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        packets = _packets(reader)
        self._writer.write(packet.write())
        async with asyncio.timeout(15):
            hello = await anext(packets)
        is_accepted = isinstance(hello, ConnAckPacket) and not int(hello.reason_code)
        self.connections += is_accepted
        return packets, hello if is_accepted else None

    async def _connection(self) -> None:
        asked = ConnectPacket(self.name, clean_start=False, session_expiry_interval=SESSION_S)
        packets, hello = await self._connect(asked)
        writer = self._writer
        if hello is None or writer is None:
            return
        if self.is_ready and not hello.session_present:
            self.sessions_lost += 1
            self._note(b"session", "not found")
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
            again = PublishPacket(
                packet.topic,
                packet.payload,
                qos=packet.qos,
                retain=packet.retain,
                packet_id=number,
                duplicate=True,
            )
            self._note(packet.payload, f"{'released' if is_released else 'sent'} again as {number}")
            writer.write(PubRelPacket(number).write() if is_released else again.write())
        self.is_online.set()

    def _note(self, payload: bytes, what: str) -> None:
        self.history.setdefault(payload, []).append(f"{time.time():.3f} {self.name} at {self._port}: {what}")

    def _take(self, packet: Any, writer: asyncio.StreamWriter) -> None:
        match packet:
            case SubAckPacket():
                self.is_ready = True
                self.is_online.set()
            case PublishPacket():
                self._on_publish(packet, writer)
            case PubRelPacket():
                self._received.discard(packet.packet_id)
                writer.write(PubCompPacket(packet.packet_id).write())
            case PubAckPacket() | PubRecPacket():
                sent = self._open.get(packet.packet_id)
                if sent is None:
                    return
                message = sent[0]
                self.acknowledged.setdefault(message.payload, (message.topic, int(message.qos), time.time()))
                self._note(message.payload, f"acknowledged {packet.packet_id}")
                if isinstance(packet, PubAckPacket):
                    del self._open[packet.packet_id]
                else:
                    self._open[packet.packet_id] = (message, True)
                    writer.write(PubRelPacket(packet.packet_id).write())
            case PubCompPacket():
                self._open.pop(packet.packet_id, None)

    def _on_publish(self, packet: PublishPacket, writer: asyncio.StreamWriter) -> None:
        number, qos = packet.packet_id, int(packet.qos)
        is_new = qos != 2 or number not in self._received
        self.got[packet.payload] += is_new
        self._note(packet.payload, f"got {'' if is_new else 'and knew '}{number}, duplicate {packet.duplicate}")
        if qos == 1 and number is not None:
            writer.write(PubAckPacket(number).write())
        elif qos == 2 and number is not None:
            self._received.add(number)
            writer.write(PubRecPacket(number).write())

    def publish(self, topic: str, qos: int, retain: bool = False) -> None:
        """Publish, unless there is no connection, or too much is on its way."""
        if not self.is_online.is_set() or len(self._open) > 20 or self._writer is None:
            return
        self._number = self._number % 60_000 + 1
        if self._number in self._open:
            return
        self._serial += 1
        payload = f"{self.name} {self._serial} {qos}".encode()
        packet = PublishPacket(topic, payload, qos=QoS(qos), packet_id=self._number, retain=retain)
        self._open[self._number] = (packet, False)
        self._note(payload, f"sent as {self._number} on {topic}")
        self._writer.write(packet.write())


class Mortal(Client):
    """A client with a will, a new one for each connection. `acknowledged`: wills of connections that were lost;
    `forbidden`: those of connections that ended with a goodbye.
    """

    def __init__(self, name: str, topic: str, ports: Ports, draw: random.Random) -> None:
        super().__init__(name, [], ports, draw)
        self.forbidden: set[bytes] = set()
        self._topic = topic

    async def _connection(self) -> None:
        self._serial += 1
        qos = self._draw.choice((1, 2))
        payload = f"{self.name} {self._serial} {qos}".encode()
        will = Will(self._topic, payload=payload, qos=QoS(qos))
        asked = ConnectPacket(self.name, clean_start=False, session_expiry_interval=SESSION_S, will=will)
        packets, hello = await self._connect(asked)
        if hello is None or self._writer is None:
            return
        self._note(payload, "has this will")
        self.is_ready = True
        says_goodbye = False
        try:
            async with asyncio.timeout(self._draw.uniform(2, 15)):
                async for _ in packets:
                    pass
        except TimeoutError:
            says_goodbye = self._draw.random() < 0.5
            if says_goodbye:
                self._writer.write(DisconnectPacket().write())
                with suppress(*GONE):
                    await self._writer.drain()
        finally:
            self._writer.close()
            self._note(payload, "said goodbye" if says_goodbye else "is lost")
            if says_goodbye:
                self.forbidden.add(payload)
            else:
                self.acknowledged[payload] = (self._topic, qos, time.time())


async def retained_at(port: int, pattern: str, seconds: float = 2.0) -> dict[str, bytes]:
    """The retained messages that a node has for a client that has just come."""
    found: dict[str, bytes] = {}
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError):  # it is being started
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            await asyncio.sleep(0.5)
    writer.write(ConnectPacket("", clean_start=True).write())
    writer.write(SubscribePacket(1, [TopicFilter(pattern, max_qos=QoS(0))]).write())
    with suppress(TimeoutError, EOFError):
        async with asyncio.timeout(seconds):
            async for packet in _packets(reader):
                if isinstance(packet, PublishPacket) and packet.retain:
                    found[packet.topic] = packet.payload
    writer.close()
    return found


async def _packets(reader: asyncio.StreamReader) -> Any:
    buffer = b""
    while data := await reader.read(65536):
        buffer += data
        for packet, size in _whole(buffer):
            buffer = buffer[size:]
            yield packet
    raise EOFError


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
