"""One TCP connection: a handshake, then frames; what goes out is gathered and written once per tick."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from omen.net.security.credentials import expires_at
from omen.net.security.hello import Hello, Reason, Refused, read_refusal, write_refusal
from omen.net.settings import Limits

if TYPE_CHECKING:
    from omen.net.security.admission import AdmissionControl
    from omen.net.security.handshake import Handshake
    from omen.net.security.rate_limits import Rates

PREFIX = 4
read_length = struct.Struct(">I").unpack_from
READ_BYTES = 1 << 16  # at a time: what asyncio would take, four times that, is mapped and unmapped for each read
OTHER = 0  # the first byte of a frame with one of the overlay's own messages
MESSAGES_PER_TURN = 50
WRITTEN_AT_ONCE = 1 << 18
OVERFLOW = 4
"""A queue may hold so many times `queue_bytes` until its publications are dropped: publishers are held back long before
that, but what was on its way to this node when they heard of it, in the buffers of both ends, must find room."""
LAST = bytes(PREFIX)  # a frame without content: the sender writes nothing more on this connection


class Owner(Protocol):
    """What a connection reports to."""

    limits: Limits
    admission: AdmissionControl

    @property
    def hello(self) -> Hello: ...

    def on_opened(self, connection: Connection) -> None: ...

    def on_greeted(self, connection: Connection) -> None: ...

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None: ...

    def on_slow_consumer(self, connection: Connection) -> None: ...

    def on_drained(self, connection: Connection) -> None: ...

    def on_refused(self, connection: Connection, refusal: Refused) -> None: ...

    def on_closed(self, connection: Connection, error: Exception | None) -> None: ...


class Connection(asyncio.Protocol):
    """`expected`: the node that was dialled, None: any. `peer`: its hello, once the handshake has ended. `settled`: it
    has ended, or will not.

    Two queues wait for the next tick: `_urgent` (the overlay's own messages, heartbeats) goes out ahead of `_bulk`
    (publications and what belongs to them). A bulk queue that grows beyond its limit because the other end does not
    read is emptied, and the peer is a slow consumer: the owner hears of it when the peer reads again, and anti-entropy
    finds what it missed. Reading never stops for other peers; one that sends more than its rate is read from later.
    """

    def __init__(self, owner: Owner, expected: int | None = None, dialled: bool = False) -> None:
        self._owner = owner
        self.expected = expected
        self.dialled = dialled
        self.peer: Hello | None = None
        self.refusal: Refused | None = None
        self.settled = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self.remote = ""
        self._rates: Rates | None = None
        self.key_version = 0
        self.valid_until = float("inf")
        self.write_paused_since: float | None = None
        self.frame_begun_at: float | None = None
        self.error: Exception | None = None
        self.is_closed = False
        self.is_write_paused = False
        self.is_slow_consumer = False
        self.eighths = 0
        self.crowded_since = 0.0
        self.is_retired = False
        self.lost_frames = False
        self.peer_is_done = False
        self.last_used = 0.0
        self.last_heard = 0.0
        self._buffer = bytearray()
        self._urgent: list[bytes] = []
        self._bulk: list[bytes] = []
        self.urgent_bytes = 0
        self.bulk_bytes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._handshake: Handshake | None = None
        self._give_up: Callable[[], object] | None = None

    def enter(self, give_up: Callable[[], object], address: str) -> None:
        """It has come in from there, and may have to be encrypted first: `give_up` ends that."""
        self._give_up, self.remote = give_up, address

    def limit_to(self, rates: Rates) -> None:
        """The rate limits that the peer is under."""
        self._rates = rates

    def touch(self, now: float) -> None:
        """Something came in: it is not idle, and the other end is alive."""
        self.last_used = self.last_heard = now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self._owner.limits.write_buffer_bytes)
        tcp = transport.get_extra_info("socket")
        if tcp is not None and tcp.family in (socket.AF_INET, socket.AF_INET6):
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(transport, "max_size"):
            transport.max_size = READ_BYTES
        encryption = transport.get_extra_info("ssl_object")
        certificate = encryption.getpeercert() if encryption is not None else None
        if certificate:
            self.valid_until = expires_at(certificate)
        admission = self._owner.admission
        self.key_version = admission.credentials.version
        self._handshake = admission.begin(self._owner.hello, self.dialled, self.expected, certificate)
        self.transport.write(self._handshake.opening)
        loop = asyncio.get_running_loop()
        self.last_used = self.last_heard = loop.time()
        self._patience = loop.call_later(self._owner.limits.hello_timeout_s, self._lose_patience)
        self._owner.on_opened(self)
        if self._buffer:
            self._greet(b"")

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            self._greet(data)
            return
        if self.refusal is not None:
            return
        if self._buffer:
            self._buffer += data
            length = int.from_bytes(self._buffer[:PREFIX], "big")  # of what may be shorter than that
            if len(self._buffer) < PREFIX + min(length, self._owner.limits.frame_bytes):
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        self._split(data)

    def _greet(self, data: bytes) -> None:
        """The handshake. What comes before the encryption has ended its own is kept until then."""
        self._buffer += data
        if self._handshake is None or self.refusal is not None:
            return
        try:
            answer, hello = self._handshake.take(self._buffer)
        except Refused as refusal:
            self.refuse(refusal)
            return
        if answer and self.transport is not None:
            self.transport.write(answer)
        if hello is None:
            return
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._handshake = None
        self.peer = hello
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._owner.on_greeted(self)
        self.settled.set()
        if rest and not self.is_closed and self.refusal is None:
            self._split(rest)

    def _split(self, data: bytes) -> None:
        """All frames of what has come in are handed over at once, but only some of the overlay's own messages.

        They cost the most; the rest of them waits until others have had their turn.
        """
        frames: list[bytes] = []
        position, size, largest = 0, len(data), self._owner.limits.frame_bytes
        messages = 0
        while position + PREFIX <= size and messages < MESSAGES_PER_TURN:
            start = position + PREFIX
            (length,) = read_length(data, position)
            if length > largest:
                excess = Refused(f"a frame of {length} bytes: at most {largest} are taken", Reason.FRAME)
                self.refuse(read_refusal(data[position:]) or excess)
                return
            end = start + length
            if end > size:
                break
            if length:
                frames.append(data[start:end])
                if data[start] == OTHER:
                    messages += 1
            else:
                self.peer_is_done = True
            position = end
        if position == size:
            self.frame_begun_at = None
        else:
            self._buffer += data[position:] if position else data
            if self.frame_begun_at is None or position:
                self.frame_begun_at = asyncio.get_running_loop().time()
        if frames:
            self._charge(len(frames), messages)
            self._owner.on_frames(self, frames)
        if self.peer_is_done and not self.is_closed:
            self.retire()
            self.close()

    def _charge(self, frames: int, messages: int) -> None:
        """A peer that sends more than its rate has to wait, however long the burst: nothing of it is lost."""
        if self._rates is None or self.transport is None:
            return
        loop = asyncio.get_running_loop()
        wait = self._rates.charge(frames, messages, loop.time())
        if wait:
            self._owner.admission.counters.throttled_reads += 1
        if (wait or messages >= MESSAGES_PER_TURN) and self._resume is None and not self.transport.is_closing():
            self.transport.pause_reading()
            self._resume = loop.call_later(wait, self._read_on)

    def _read_on(self) -> None:
        """What has come in already first; it may be enough for this turn again."""
        self._resume = None
        if self.transport is None or self.is_closed or self.transport.is_closing():
            return
        self.transport.resume_reading()
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._split(data)

    def overdue(self, now: float) -> Refused | None:
        """Why this connection should not go on, looked at now and then: a frame or a reader that takes too long."""
        limits = self._owner.limits
        is_waiting = self._resume is not None
        if self.frame_begun_at is not None and not is_waiting and now - self.frame_begun_at > limits.frame_timeout_s:
            return Refused(f"a frame was not complete within {limits.frame_timeout_s:g} s", Reason.FRAME_TIMEOUT)
        if self.write_paused_since is not None and now - self.write_paused_since > limits.stall_timeout_s:
            return Refused(f"nothing was read for {limits.stall_timeout_s:g} s", Reason.STALLED)
        return None

    def queue(self, parts: tuple[bytes, bytes], size: int, urgent: bool) -> bool:
        """Keep a frame (its length and its body) for the next tick; whether it was taken."""
        if self.is_retired or self.is_closed:
            return False
        limits = self._owner.limits
        if urgent:
            self._urgent += parts
            self.urgent_bytes += size
            if self.urgent_bytes > limits.urgent_queue_bytes:
                self.abort()
            return True
        if self.is_slow_consumer:
            return False
        self._bulk += parts
        self.bulk_bytes += size
        if self.bulk_bytes > OVERFLOW * limits.queue_bytes and self.is_write_paused:
            self.mark_slow_consumer()
        return True

    def mark_slow_consumer(self) -> None:
        """The other end does not read: anti-entropy finds what it missed, once it does."""
        self.is_slow_consumer = True
        self.eighths = 0
        self._bulk.clear()
        self.bulk_bytes = 0
        self._owner.on_slow_consumer(self)

    def recover(self) -> bool:
        """Whether a slow consumer reads again; from now on it is none."""
        has_recovered = self.is_slow_consumer and not self.is_write_paused
        if has_recovered:
            self.is_slow_consumer = False
        return has_recovered

    def flush(self, now: float) -> None:
        """Write what was gathered, in one piece; where that is much, in parts, lest all of it be there twice."""
        transport = self.transport
        if self.is_write_paused or self.is_closed or transport is None or transport.is_closing():
            return
        pieces = self._urgent + self._bulk if self._urgent else self._bulk
        if not pieces:
            return
        size = self.urgent_bytes + self.bulk_bytes
        self._urgent, self._bulk = [], []
        self.urgent_bytes = self.bulk_bytes = 0
        self.last_used = now
        if size <= WRITTEN_AT_ONCE:
            transport.write(b"".join(pieces))
        else:
            _write_in_parts(transport, pieces)

    def pause_writing(self) -> None:
        self.is_write_paused = True
        self.write_paused_since = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        self.write_paused_since = None
        if not self.is_closed:
            self._owner.on_drained(self)

    def retire(self) -> None:
        """Nothing more is written here; the other end is told, and may finish what it has under way."""
        if self.is_retired or self.is_closed or self.transport is None:
            return
        self.flush(self.last_used)
        self.lost_frames = self.is_write_paused or self.is_slow_consumer
        self.is_retired = True
        if not self.transport.is_closing():
            self.transport.write(LAST)
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(self._owner.limits.hello_timeout_s, self.close)

    def refuse(self, refusal: Refused) -> None:
        """Say why, and close."""
        if self.transport is not None and not self.is_closed:
            if not refusal.by_peer:
                self.transport.write(write_refusal(str(refusal), refusal.reason))
            self.refusal = refusal.with_traceback(None)  # it would keep this connection and its buffers alive
            self.settled.set()
            self._owner.on_refused(self, refusal)
            self.close()

    def close(self) -> None:
        """The other end has as long to take what was written as it had for its hello."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
            if self._patience is not None:
                self._patience.cancel()
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(self._owner.limits.hello_timeout_s, self.abort)

    def evict(self, refusal: Refused) -> None:
        """Close at once, to make room."""
        self.refusal = refusal
        self.abort()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self._give_up is not None:
            self._give_up()

    def _lose_patience(self) -> None:
        self.refuse(Refused("no hello in time", Reason.HELLO_TIMEOUT))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.error = error
        self.settled.set()
        for timer in (self._patience, self._resume):
            if timer is not None:
                timer.cancel()
        self._buffer.clear()
        self._urgent.clear()
        self._bulk.clear()
        self._owner.on_closed(self, error)


def _write_in_parts(transport: asyncio.WriteTransport, pieces: list[bytes]) -> None:
    part: list[bytes] = []
    size = 0
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= WRITTEN_AT_ONCE:
            transport.write(b"".join(part))
            part, size = [], 0
    if part:
        transport.write(b"".join(part))
