"""Where connections come in: turned away or let through by count, then encrypted where certificates are set."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from omen.net.connection import Connection
from omen.net.credentials import explain
from omen.net.guard import Guard
from omen.net.hello import Refused


class Entry(asyncio.Protocol):
    """A connection that has come in and of which nothing has been read. `connection` takes over from it."""

    def __init__(self, guard: Guard, connection: Connection) -> None:
        self._guard = guard
        self._connection = connection
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast(asyncio.Transport, transport)
        guard, connection = self._guard, self._connection
        peer_name = raw.get_extra_info("peername")
        address = str(peer_name[0]) if isinstance(peer_name, tuple) else ""
        now = asyncio.get_running_loop().time()
        refusal = guard.turn_away(address, now)
        if refusal is not None:
            guard.note_refusal(refusal, address, None, now)
            raw.abort()
            return
        if len(guard.census.half_open) >= guard.limits.half_open:
            self._make_room(now)
        connection.enter(raw, address)
        guard.census.enter(connection, address)
        contexts = guard.credentials.contexts
        if contexts is None:
            raw.set_protocol(connection)
            connection.connection_made(raw)
            return
        raw.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._encrypt(raw, contexts.server))

    def _make_room(self, now: float) -> None:
        """Whoever has been silent longest goes: a crowd that says nothing keeps nobody out."""
        oldest = cast(Connection, self._guard.census.oldest_half_open())
        oldest.refusal = Refused("others wait to say who they are", "crowded")
        self._guard.note_refusal(oldest.refusal, oldest.remote, None, now)
        self._guard.census.leave(oldest)
        oldest.abort()

    async def _encrypt(self, raw: asyncio.Transport, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        guard, connection = self._guard, self._connection
        try:
            encrypted = await loop.start_tls(
                raw, connection, context, server_side=True, ssl_handshake_timeout=guard.limits.hello_timeout_s
            )
        except (OSError, TimeoutError) as error:
            if connection.refusal is None:
                guard.note_refusal(explain(error), connection.remote, None, loop.time())
            raw.abort()
            connection.connection_lost(None)
            return
        if encrypted is None or connection.is_closed:
            connection.connection_lost(None)
            return
        connection.connection_made(encrypted)

    def connection_lost(self, error: Exception | None) -> None:
        """Before it was encrypted: the task that was to do it hears of it too."""
