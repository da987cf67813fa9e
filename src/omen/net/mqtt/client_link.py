"""One connection of a client: bytes become packets, and a client that publishes too fast is not read from."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, cast

from omen.net.mqtt.codec import Decoder, Malformed
from omen.net.mqtt.outputs import Publish

if TYPE_CHECKING:
    from omen.net.mqtt.listener import FrontDoor

PENDING_MOST, PENDING_LEAST = 256, 64
"""A client with so many publications that wait to be published is not read from, until so few are left."""
WRITE_BUFFER, UNREAD_MOST = 1 << 20, 4 << 20
"""A client with so much to read gets no messages with QoS 0; with so much more it is not read from: all is answered."""
LINGER_S = 5.0
"""A connection that is closed has so long to take what was written before."""
READ_AT_ONCE, READ_MOST, READ_LEAST = 512 << 10, 64 << 10, 4 << 10
"""Bytes that all clients together may have taken at once, by how many of them publish just now; and of one client."""


class ClientLink(asyncio.BufferedProtocol):
    """One connection. It is read from a little at a time where many publish: otherwise one round of the event loop
    would take seconds, and who connects meanwhile would wait for it.
    """

    def __init__(self, front: FrontDoor, number: int, largest: int) -> None:
        self._front = front
        self._decoder = Decoder(largest)
        self.number = number
        self.transport: asyncio.Transport | None = None
        self.pending: deque[Publish] = deque()
        self.worker: asyncio.Task[None] | None = None
        self.buffer: list[bytes] = []
        self._is_paused = self._is_held = False
        self._into = memoryview(b"")

    @property
    def certified(self) -> str:
        """The common name in the client's certificate, verified by TLS; empty: it has none."""
        certificate = self.transport.get_extra_info("peercert") if self.transport is not None else None
        subject = (certificate or {}).get("subject", ())
        return next((value for part in subject for key, value in part if key == "commonName"), "")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none by their type
        self.transport.set_write_buffer_limits(WRITE_BUFFER)
        self._front.on_open(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        size = min(READ_MOST, max(READ_LEAST, READ_AT_ONCE // (1 + self._front.publishing)))
        if len(self._into) < size:
            self._into = memoryview(bytearray(size))
        return self._into[:size]

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._into[:nbytes])
        self._into = memoryview(b"")  # ten thousand connections that are silent keep nothing

    @property
    def kept_bytes(self) -> int:
        """What is kept to read into."""
        return len(self._into)

    def data_received(self, data: bytes | memoryview) -> None:
        """Bytes came, here or in the frames of a WebSocket."""
        try:
            for packet in self._decoder.feed(data):
                self._front.door.receive(self.number, packet, self._decoder.version, time.time())
        except Malformed as error:
            self._front.door.refuse(self.number, error, self._decoder.version, time.time())
        self._front.act()
        self.read_if_room()

    def connection_lost(self, error: Exception | None) -> None:
        self._front.on_lost(self)

    def pause_writing(self) -> None:
        self._front.door.pause(self.number, True, time.time())

    def resume_writing(self) -> None:
        self._front.door.pause(self.number, False, time.time())
        self._front.act()
        self.read_if_room()

    def flush(self) -> None:
        if self.buffer and self.transport is not None:
            self.transport.write(b"".join(self.buffer))
            self.buffer.clear()
            if self._is_paused:
                self.read_if_room()

    def close(self) -> None:
        """Close the connection once what was written has gone out, or has not for long: its client may not read."""
        if self.transport is not None:
            self.flush()
            self.transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)

    def read_if_room(self) -> None:
        """Backpressure for one client: its socket is read when what it published before is under way, when it has read
        what it was answered, and not while what it sent after CONNECT waits for its session.
        """
        if self.transport is None or self.transport.is_closing():
            return
        pending, unread = len(self.pending), self.transport.get_write_buffer_size()
        is_waiting = self._front.door.is_waiting(self.number)
        if not self._is_paused and (pending > PENDING_MOST or unread > UNREAD_MOST or is_waiting):
            self._is_paused = True
            self.transport.pause_reading()
        elif self._is_paused and pending < PENDING_LEAST and unread <= WRITE_BUFFER and not is_waiting:
            self._is_paused = False
            self.transport.resume_reading()
        is_held = self._is_paused and (pending >= PENDING_LEAST or is_waiting)  # not by what it does not read
        if is_held != self._is_held:
            self._is_held = is_held
            self._front.door.hold(self.number, is_held, time.time())
