"""Sockets that listen, and connections that come in: admitted by count, then encrypted where certificates are set."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import cast

from omen.errors import InvalidInput
from omen.net.names import split_address
from omen.net.security.admission import AdmissionControl
from omen.net.security.credentials import explain
from omen.net.security.hello import Reason, Refused
from omen.net.transport.connection import Connection


def listen_on(address: str) -> socket.socket:
    """A socket that takes connections at an address from now on."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot listen at {address}: {reason}") from error
    listener.setblocking(False)
    return listener


class InboundConnection(asyncio.Protocol):
    """A connection that has come in and of which nothing has been read. `connection` takes over from it."""

    def __init__(self, admission: AdmissionControl, connection: Connection) -> None:
        self._admission = admission
        self._connection = connection
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast(asyncio.Transport, transport)
        admission, connection = self._admission, self._connection
        peer_name = raw.get_extra_info("peername")
        address = str(peer_name[0]) if isinstance(peer_name, tuple) else ""
        now = asyncio.get_running_loop().time()
        refusal = admission.turn_away(address, now)
        if refusal is not None:
            admission.note_refusal(refusal, address, None, now)
            raw.abort()
            return
        if len(admission.inbound.half_open) >= admission.limits.half_open:
            self._make_room(now)
        connection.enter(raw, address)
        admission.inbound.add(connection, address)
        contexts = admission.credentials.contexts
        if contexts is None:
            raw.set_protocol(connection)
            connection.connection_made(raw)
            return
        raw.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._encrypt(raw, contexts.server))

    def _make_room(self, now: float) -> None:
        """The oldest half-open connection closes: a crowd that says nothing keeps no node out."""
        oldest = cast(Connection, self._admission.inbound.oldest_half_open())
        refusal = Refused("others wait for their handshake", Reason.CONNECTION_LIMIT)
        self._admission.note_refusal(refusal, oldest.remote, None, now)
        self._admission.inbound.remove(oldest)
        oldest.evict(refusal)

    async def _encrypt(self, raw: asyncio.Transport, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        admission, connection = self._admission, self._connection
        try:
            encrypted = await loop.start_tls(
                raw, connection, context, server_side=True, ssl_handshake_timeout=admission.limits.hello_timeout_s
            )
        except (OSError, TimeoutError) as error:
            if connection.refusal is None:
                admission.note_refusal(explain(error), connection.remote, None, loop.time())
            raw.abort()
            connection.connection_lost(None)
            return
        if encrypted is None or connection.is_closed:
            connection.connection_lost(None)
            return
        connection.connection_made(encrypted)

    def connection_lost(self, error: Exception | None) -> None:
        """Before it was encrypted: the task that was to do it hears of it too."""
