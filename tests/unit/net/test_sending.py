"""A message that an older revision does not know is not sent to a peer of that revision."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from network.brokers import config, go, until
from omen.net.broker import Broker
from omen.net.sending import SINCE, frame
from omen.net.transport.connection import Connection
from omen.protocol.messages.overlay import STORAGE, NearbyChanged, NearbyQuery, NearbyReply, Ref


def test_searches_for_ways_round_a_node_are_not_sent_to_a_node_of_an_older_revision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queued: list[bytes] = []
    plain = Connection.queue

    def queue(connection: Connection, parts: tuple[bytes, bytes], size: int, urgent: bool) -> bool:
        queued.append(parts[1])
        return plain(connection, parts, size, urgent)

    async def run() -> None:
        async with Broker(config("ann", "tea")) as ann, Broker(config("bob", "tea", join=(ann.address,))):
            assert ann.driver is not None
            await until(lambda: ann.status().neighbours())
            (connection,) = ann.driver.peers.connections()
            assert connection.peer is not None
            monkeypatch.setattr(Connection, "queue", queue)
            for revision, times in ((2, 0), (3, 1)):
                connection.peer = msgspec.structs.replace(connection.peer, revision=revision)
                parts, size, urgent = frame(NearbyChanged(Ref(ann.node, 1, "")))
                ann.driver.peers.send(connection.peer.node, "", parts, size, urgent, None, SINCE[NearbyChanged])
                assert queued.count(parts[1]) == times
            await asyncio.sleep(0)
            monkeypatch.undo()

    go(run())
    assert {kind for kind, since in SINCE.items() if since == 3} == {NearbyQuery, NearbyReply, NearbyChanged}
    assert {kind.__name__ for kind, since in SINCE.items() if since == 4} == set(STORAGE)
