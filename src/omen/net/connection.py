"""One TCP connection: hello first, then frames; what goes out is gathered and written once a tick."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

from omen.net.hello import Hello, Refused, check_hello, read_hello, write_hello, write_refusal
from omen.net.settings import Limits

PREFIX = 4
LAST = bytes(PREFIX)  # a frame without content: the sender writes nothing more on this connection


class Owner(Protocol):
    """Who a connection reports to."""

    limits: Limits

    @property
    def hello(self) -> Hello: ...

    def on_opened(self, connection: Connection) -> None: ...

    def on_greeted(self, connection: Connection) -> None: ...

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None: ...

    def on_fell_behind(self, connection: Connection) -> None: ...

    def on_drained(self, connection: Connection) -> None: ...

    def on_refused(self, connection: Connection, refusal: Refused) -> None: ...

    def on_closed(self, connection: Connection, error: Exception | None) -> None: ...


class Connection(asyncio.Protocol):
    """`expected`: who was dialled, None: anybody. `peer`: who it is, once it said so. `settled`: it has, or will not.

    Two queues wait for the next tick: `_urgent` (the overlay's own messages, heartbeats) goes out ahead of `_bulk`
    (publications and what belongs to them). A queue that grows beyond its limit because the other end does not read is
    emptied and the connection counts as behind: the owner hears of it when the other end reads again, and the windows
    are compared. Reading never stops.
    """

    def __init__(self, owner: Owner, expected: int | None = None, dialled: bool = False) -> None:
        self._owner = owner
        self.expected = expected
        self.dialled = dialled
        self.peer: Hello | None = None
        self.refusal: Refused | None = None
        self.settled = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self.is_paused = False
        self.is_behind = False
        self.is_retired = False
        self.lost_frames = False
        self.other_is_done = False
        self.last_used = 0.0
        self.bytes_in = 0
        self.bytes_out = 0
        self._buffer = bytearray()
        self._urgent: list[bytes] = []
        self._bulk: list[bytes] = []
        self.urgent_bytes = 0
        self.bulk_bytes = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self._owner.limits.write_buffer_bytes)
        plug = transport.get_extra_info("socket")
        if plug is not None and plug.family in (socket.AF_INET, socket.AF_INET6):
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transport.write(write_hello(self._owner.hello))
        loop = asyncio.get_running_loop()
        self.last_used = loop.time()
        self._patience = loop.call_later(self._owner.limits.hello_timeout_s, self._lose_patience)
        self._owner.on_opened(self)

    def data_received(self, data: bytes) -> None:
        self.bytes_in += len(data)
        if self.peer is None:
            self._greet(data)
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < PREFIX + int.from_bytes(self._buffer[:PREFIX], "big"):
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        self._split(data)

    def _greet(self, data: bytes) -> None:
        self._buffer += data
        try:
            greeting = read_hello(self._buffer)
            if greeting is None:
                return
            check_hello(greeting.hello, self._owner.hello)
            if self.expected is not None and greeting.hello.node != self.expected:
                raise Refused(f"another node, {greeting.hello.name!r}, answers at this address", "other")
        except Refused as refusal:
            self.refuse(refusal)
            return
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self.peer = greeting.hello
        rest = bytes(self._buffer[greeting.size :])
        self._buffer.clear()
        self._owner.on_greeted(self)
        self.settled.set()
        if rest and not self.is_closed:
            self._split(rest)

    def _split(self, data: bytes) -> None:
        """All frames of what has come in are handed over at once."""
        frames: list[bytes] = []
        position, size, largest = 0, len(data), self._owner.limits.frame_bytes
        while size - position >= PREFIX:
            start = position + PREFIX
            length = int.from_bytes(data[position:start], "big")
            if length > largest:
                self.refuse(Refused(f"a frame of {length} bytes: at most {largest} are taken", "frame"))
                return
            if start + length > size:
                break
            if length:
                frames.append(data[start : start + length])
            else:
                self.other_is_done = True
            position = start + length
        if position < size:
            self._buffer += data[position:] if position else data
        if frames:
            self._owner.on_frames(self, frames)
        if self.other_is_done and not self.is_closed:
            self.retire()
            self.close()

    def queue(self, parts: tuple[bytes, bytes], size: int, urgent: bool) -> bool:
        """Keep a frame (its prefix and itself) for the next tick; whether it was taken."""
        if self.is_retired or self.is_closed:
            return False
        limits = self._owner.limits
        if urgent:
            self._urgent += parts
            self.urgent_bytes += size
            if self.urgent_bytes > limits.urgent_queue_bytes:
                self.abort()
            return True
        if self.is_behind:
            return False
        self._bulk += parts
        self.bulk_bytes += size
        if self.bulk_bytes > limits.queue_bytes and self.is_paused:
            self.fall_behind()
        return True

    def fall_behind(self) -> None:
        """The other end does not read: what it lacks is found out by comparing windows, once it does."""
        self.is_behind = True
        self._bulk.clear()
        self.bulk_bytes = 0
        self._owner.on_fell_behind(self)

    def flush(self, now: float) -> None:
        """Write what was gathered, in one piece."""
        transport = self.transport
        if self.is_paused or self.is_closed or transport is None or transport.is_closing():
            return
        pieces = self._urgent + self._bulk if self._urgent else self._bulk
        if not pieces:
            return
        data = b"".join(pieces)
        self._urgent.clear()
        self._bulk.clear()
        self.urgent_bytes = self.bulk_bytes = 0
        self.last_used = now
        self.bytes_out += len(data)
        transport.write(data)

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if not self.is_closed:
            self._owner.on_drained(self)

    def retire(self) -> None:
        """Nothing more is written here; the other end is told, and may finish what it has under way."""
        if self.is_retired or self.is_closed or self.transport is None:
            return
        self.flush(self.last_used)
        self.lost_frames = self.is_paused or self.is_behind
        self.is_retired = True
        if not self.transport.is_closing():
            self.transport.write(LAST)
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(self._owner.limits.hello_timeout_s, self.close)

    def refuse(self, refusal: Refused) -> None:
        """Say why, and close."""
        if self.transport is not None and not self.is_closed:
            if not refusal.by_peer:
                self.transport.write(write_refusal(str(refusal)))
            self.refusal = refusal
            self.settled.set()
            self._owner.on_refused(self, refusal)
            self.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _lose_patience(self) -> None:
        self.refuse(Refused("no hello in time", "silent"))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        self.settled.set()
        if self._patience is not None:
            self._patience.cancel()
        self._urgent.clear()
        self._bulk.clear()
        self._owner.on_closed(self, error)
