"""How much is read from a client at once."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from mqtt5 import ConnectPacket, PublishPacket

from omen.net.mqtt import client_link
from omen.net.mqtt.client_link import PENDING_MOST, READ_LEAST, READ_MOST, UNREAD_MOST, WRITE_BUFFER, ClientLink


def make_link(publishing: int) -> tuple[ClientLink, list[Any]]:
    got: list[Any] = []
    door = SimpleNamespace(
        receive=lambda number, packet, version, now: got.append(packet),
        is_waiting=lambda number: False,
        pause=lambda *_: None,
        hold=lambda number, is_held, now: got.append(is_held),
    )
    front: Any = SimpleNamespace(publishing=publishing, door=door, act=lambda: None)
    return ClientLink(front, 1, 1 << 20), got


@pytest.mark.parametrize(("publishing", "size"), [(0, READ_MOST), (7, READ_MOST), (99, 5242), (1000, READ_LEAST)])
def test_where_many_clients_publish_each_is_read_from_a_little_at_a_time(publishing: int, size: int) -> None:
    assert len(make_link(publishing)[0].get_buffer(-1)) == size


def test_packets_come_whole_from_pieces_and_a_silent_client_keeps_no_buffer() -> None:
    link, got = make_link(3)
    sent = (
        ConnectPacket("me").write() + PublishPacket("a", bytes(100_000)).write() + PublishPacket("a", b"next").write()
    )
    while sent:
        room = link.get_buffer(-1)
        part, sent = sent[: len(room)], sent[len(room) :]
        room[: len(part)] = part
        link.buffer_updated(len(part))
    assert [len(packet.payload) for packet in got[1:]] == [100_000, 4]
    assert link.kept_bytes == 0


class Socket:
    """A transport with `unread` bytes that its client has not taken."""

    def __init__(self) -> None:
        self.unread, self.is_read = 0, True

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


def test_a_client_that_does_not_read_its_answers_is_not_read_from_until_it_does() -> None:
    """Each of its packets would be answered, and the answers kept."""
    link, _ = make_link(0)
    link.transport = taken = Socket()  # type: ignore[assignment]
    for unread, is_read in ((UNREAD_MOST, True), (UNREAD_MOST + 1, False), (WRITE_BUFFER + 1, False), (100, True)):
        taken.unread = unread
        link.read_if_room()
        assert taken.is_read == is_read


def test_what_comes_before_connack_is_not_read_on_and_on() -> None:
    link, _ = make_link(0)
    link.transport = taken = Socket()  # type: ignore[assignment]
    link._front.door.is_waiting = lambda number: True  # type: ignore[method-assign]
    link.data_received(ConnectPacket("me").write())
    assert not taken.is_read
    link._front.door.is_waiting = lambda number: False  # type: ignore[method-assign]
    link.read_if_room()
    assert taken.is_read


def test_a_connection_that_is_closed_does_not_wait_for_ever_for_a_client_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_link, "LINGER_S", 0.05)

    async def close() -> None:
        link, _ = make_link(0)
        opened, lost = asyncio.Event(), asyncio.Event()
        link._front.on_open = lambda _: opened.set()  # type: ignore[method-assign]
        link._front.on_lost = lambda _: lost.set()  # type: ignore[method-assign]
        server = await asyncio.get_running_loop().create_server(lambda: link, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            await opened.wait()
            link.buffer.append(bytes(32 << 20))
            link.close()
            await asyncio.wait_for(lost.wait(), 5)
        server.close()

    asyncio.run(close())


def test_a_client_that_is_not_read_from_since_its_publications_wait_is_not_silent() -> None:
    link, told = make_link(0)
    link.transport = taken = Socket()  # type: ignore[assignment]
    link.pending.extend([None] * (PENDING_MOST + 1))  # type: ignore[list-item]
    link.read_if_room()
    assert told == [True] and not taken.is_read
    link.pending.clear()
    taken.unread = WRITE_BUFFER + 1
    link.read_if_room()
    assert told == [True, False] and not taken.is_read, "now it is not read from since it does not read"
