"""How much is read from a client at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mqtt5 import ConnectPacket, PublishPacket

from omen.net.mqtt.client_link import READ_LEAST, READ_MOST, ClientLink


def make_link(publishing: int) -> tuple[ClientLink, list[Any]]:
    got: list[Any] = []
    door = SimpleNamespace(receive=lambda number, packet, version, now: got.append(packet))
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
