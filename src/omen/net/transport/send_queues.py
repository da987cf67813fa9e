"""What waits to be written: once per tick for all connections, and backpressure where a peer does not keep up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from omen.net.observe.logs import Log
from omen.net.security.admission import AdmissionControl
from omen.net.transport.connection import Connection
from omen.net.transport.peer import Peer, PeerListener
from omen.protocol.events import PLENTY, NodeId


class SendQueues:
    """The queues of all connections of a node. `table`: its peers, as they come and go."""

    def __init__(
        self, table: Mapping[NodeId, Peer], listener: PeerListener, log: Log, admission: AdmissionControl
    ) -> None:
        self._table = table
        self._listener = listener
        self._log = log
        self._admission = admission
        self._loop = asyncio.get_running_loop()
        self._dirty: set[Connection] = set()
        self._flush_is_due = False
        self._drained = asyncio.Event()

    def add(self, connection: Connection) -> None:
        """It has something to send: write it with the next tick."""
        self._dirty.add(connection)
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def drop(self, connection: Connection) -> None:
        """It is no peer's any more."""
        self._dirty.discard(connection)

    def flush(self) -> None:
        """One write for each connection that has something to send."""
        self._flush_is_due = False
        now = self._loop.time()
        dirty, self._dirty = self._dirty, set()
        for connection in dirty:
            connection.flush(now)
            if connection.is_write_paused or connection.eighths:
                self._note_room(connection, now)

    def _note_room(self, connection: Connection, now: float) -> None:
        """Tell how full a queue is, in eighths. A link that has not caught up in time is a slow consumer."""
        limits, peer = self._admission.limits, connection.peer
        queue = limits.queue_bytes
        eighths = min(8, 8 * connection.bulk_bytes // queue) if connection.is_write_paused else 0
        if peer is None or connection.is_slow_consumer or (not eighths and not connection.eighths):
            return
        if not connection.eighths:
            connection.crowded_since = now
        if eighths != connection.eighths:
            connection.eighths = eighths
            self._listener.on_peer_room(peer.node, max(0, queue - connection.bulk_bytes) if eighths else PLENTY)
        if eighths and now - connection.crowded_since > limits.backpressure_timeout_s:
            connection.mark_slow_consumer()

    def congested(self) -> list[Connection]:
        """The connections that hold publishers back: half of their queue is full."""
        mark = self._admission.limits.queue_bytes // 2
        return [
            peer.connection
            for peer in self._table.values()
            if peer.connection is not None and peer.connection.bulk_bytes > mark and peer.connection.is_write_paused
        ]

    async def wait_for_congested(self) -> None:
        """Backpressure: wait until no peer holds publishers back. One that takes too long is a slow consumer."""
        deadline = self._loop.time() + self._admission.limits.publish_patience_s
        while congested := self.congested():
            left = deadline - self._loop.time()
            if left <= 0:
                for connection in congested:
                    connection.mark_slow_consumer()
                return
            self._drained.clear()
            try:
                async with asyncio.timeout(min(left, 0.1)):
                    await self._drained.wait()
            except TimeoutError:
                continue

    def slow_consumers(self) -> list[str]:
        """The peers whose queue was emptied, until they have read what is on its way to them."""
        connected = ((peer, peer.connection) for peer in self._table.values())
        return sorted(peer.name for peer, found in connected if found is not None and found.is_slow_consumer)

    def on_slow_consumer(self, connection: Connection) -> None:
        """Its queue was emptied."""
        if connection.peer is not None:
            self._log.warning("slow_consumer", peer=connection.peer.name)
            self._listener.on_slow_consumer(connection.peer.node)

    def on_drained(self, connection: Connection) -> None:
        """The other end reads again."""
        connection.flush(self._loop.time())
        self._note_room(connection, self._loop.time())
        self._drained.set()
        if connection.recover() and connection.peer is not None:
            self._log.info("slow_consumer_recovered", peer=connection.peer.name)
            self._listener.on_peer_ready(connection.peer.node)

    def on_closed(self, connection: Connection) -> None:
        """Nobody waits for it any more."""
        self._dirty.discard(connection)
        self._drained.set()
