"""One connection without a socket: the handshake, frames, two queues, slow consumers, limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from omen.net.observe.logs import Log
from omen.net.security.admission import AdmissionControl
from omen.net.security.handshake import Handshake
from omen.net.security.hello import REFUSAL, Hello, Reason, Refused
from omen.net.security.rate_limits import Rates
from omen.net.settings import Limits
from omen.net.transport.connection import LAST, WRITTEN_AT_ONCE, Connection
from omen.protocol.membership.ring import place_of

PUBLICATION, OVERLAY = b"\x01publication", b"\x00overlay"


def hello(name: str) -> Hello:
    return Hello("omen", place_of(name), name, 7, "127.0.0.1:1", 5, 1)


class FakeTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False
        self.reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Owner:
    """Notes what a connection reports."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.admission = AdmissionControl(limits, Log("ann"), "omen", "ann")
        self.frames: list[bytes] = []
        self.events: list[str] = []
        self.refused: list[Reason] = []

    @property
    def hello(self) -> Hello:
        return hello("ann")

    def on_opened(self, connection: Connection) -> None:
        self.events.append("opened")

    def on_greeted(self, connection: Connection) -> None:
        self.events.append("greeted")

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        self.frames += frames

    def on_slow_consumer(self, connection: Connection) -> None:
        self.events.append("slow_consumer")

    def on_drained(self, connection: Connection) -> None:
        self.events.append("drained")

    def on_refused(self, connection: Connection, refusal: Refused) -> None:
        self.refused.append(refusal.reason)

    def on_closed(self, connection: Connection, error: Exception | None) -> None:
        self.events.append("closed")


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def queue(connection: Connection, body: bytes, urgent: bool = False) -> bool:
    return connection.queue((len(body).to_bytes(4, "big"), body), len(body) + 4, urgent)


def connected(test: Callable[[Connection, FakeTransport, Owner], None], **limits: Any) -> None:
    """Run a test with a connection whose handshake has ended."""

    async def go() -> None:
        owner, transport = Owner(Limits(**limits)), FakeTransport()
        connection = Connection(owner)
        connection.connection_made(transport)
        dialler = Handshake(hello("bob"), dialled=True)
        proof, _ = dialler.take(bytearray(transport.written[0]))
        connection.data_received(dialler.opening + proof)
        assert connection.peer is not None and connection.peer.name == "bob"
        transport.written.clear()
        test(connection, transport, owner)
        connection.connection_lost(None)
        assert owner.events[:2] == ["opened", "greeted"] and owner.events[-1] == "closed"

    asyncio.run(go())


def test_frames_are_handed_over_however_the_bytes_are_cut() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        data = framed(PUBLICATION, OVERLAY, PUBLICATION)
        for number in range(len(data)):
            connection.data_received(data[number : number + 1])
        connection.data_received(data)
        assert owner.frames == 2 * [PUBLICATION, OVERLAY, PUBLICATION]

    connected(test)


def test_urgent_frames_go_out_first_and_all_of_a_tick_in_one_write() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        assert queue(connection, PUBLICATION) and queue(connection, OVERLAY, urgent=True)
        connection.flush(0.0)
        connection.flush(0.0)
        assert transport.written == [framed(OVERLAY, PUBLICATION)]

    connected(test)


def test_much_of_a_tick_is_written_in_parts_lest_all_of_it_be_there_twice() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        bodies = [bytes([number]) * 100_000 for number in range(50)]
        for body in bodies:
            assert queue(connection, body)
        connection.flush(0.0)
        assert b"".join(transport.written) == framed(*bodies)
        assert max(len(part) for part in transport.written) < WRITTEN_AT_ONCE + 100_004
        connection.flush(0.0)
        assert len(b"".join(transport.written)) == 50 * 100_004

    connected(test)


def test_a_peer_that_does_not_read_is_a_slow_consumer_until_it_does() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        connection.pause_writing()
        most = 0
        while not connection.is_slow_consumer:
            most = connection.bulk_bytes
            queue(connection, bytes(40))
        assert 350 < most <= 400, "what was on its way when publishers were held back finds room"
        assert owner.events[-1] == "slow_consumer" and connection.bulk_bytes == 0
        assert not queue(connection, PUBLICATION), "publications are left out"
        assert queue(connection, OVERLAY, urgent=True), "messages of the overlay are not"
        assert not connection.recover()
        connection.resume_writing()
        assert connection.recover() and not connection.recover()
        assert queue(connection, PUBLICATION)

    connected(test, queue_bytes=100)


def test_a_peer_for_which_urgent_frames_pile_up_is_given_up() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        connection.pause_writing()
        for _ in range(4):
            queue(connection, bytes(40), urgent=True)
        assert transport.closed

    connected(test, urgent_queue_bytes=100)


def test_a_frame_that_is_too_large_is_refused_before_it_is_kept() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        connection.data_received((1 << 24).to_bytes(4, "big"))
        assert owner.refused == [Reason.FRAME] and transport.closed
        assert transport.written[-1].startswith(REFUSAL)

    connected(test)


def test_a_frame_or_a_reader_that_takes_too_long_is_overdue() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        now = asyncio.get_running_loop().time()
        assert connection.overdue(now + 1000) is None
        connection.data_received(framed(PUBLICATION)[:-1])
        late = connection.overdue(now + 1000)
        assert late is not None and late.reason is Reason.FRAME_TIMEOUT
        connection.data_received(framed(PUBLICATION)[-1:])
        assert connection.overdue(now + 1000) is None
        connection.pause_writing()
        stalled = connection.overdue(now + 1000)
        assert stalled is not None and stalled.reason is Reason.STALLED

    connected(test)


def test_a_peer_above_its_rate_is_read_from_later_and_nothing_is_lost() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        connection.limit_to(Rates(Limits(frames_per_s=2.0)))
        connection.data_received(framed(*[PUBLICATION] * 10))
        assert len(owner.frames) == 10 and not transport.reading
        assert owner.admission.counters.throttled_reads == 1

    connected(test)


def test_a_connection_that_retires_says_so_and_takes_nothing_more() -> None:
    def test(connection: Connection, transport: FakeTransport, owner: Owner) -> None:
        queue(connection, PUBLICATION)
        connection.retire()
        assert transport.written == [framed(PUBLICATION), LAST]
        assert not queue(connection, OVERLAY, urgent=True)
        connection.data_received(framed(OVERLAY) + LAST)
        assert owner.frames == [OVERLAY] and transport.closed

    connected(test)
