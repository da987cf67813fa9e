"""Sockets that listen, and connections that come in: admitted by count, then encrypted where certificates are set."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from omen.errors import InvalidInput
from omen.net.names import split_address
from omen.net.security.admission import AdmissionControl
from omen.net.security.alerts import CERTIFICATES_NEEDED, LINGER_S, alert_in, say_last, turning_away
from omen.net.security.credentials import explain
from omen.net.security.hello import Reason, Refused, write_refusal
from omen.net.transport.connection import Connection

AT_ONCE = 128
LINGERING = 64  # connections that are refused and stay until the other end has read why; beyond it they do not stay
FULL_PAUSE_S = 0.5  # no descriptors are left: those that wait outside are taken in later


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


class Acceptor:
    """Takes in the connections that come to a socket, each by a protocol from `connect`, until it is closed.

    Every connection is counted before a byte of it is read. Encryption is set up with the transport, not afterwards: a
    loop may read the first bytes of a transport before `start_tls` is called on it (uvloop does, asyncio does not).
    """

    def __init__(self, listener: socket.socket, admission: AdmissionControl, connect: Callable[[], Connection]) -> None:
        self._listener = listener
        self._admission = admission
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                tcp, name = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(FULL_PAUSE_S, self._listen)
                return
            tcp.setblocking(False)
            self._take(tcp, str(name[0]) if isinstance(name, tuple) else "")

    def _take(self, tcp: socket.socket, address: str) -> None:
        admission, now = self._admission, self._loop.time()
        refusal = admission.turn_away(address, now)
        if refusal is not None:
            admission.note_refusal(refusal, address, None, now)
            with suppress(OSError):
                tcp.send(turning_away(refusal, admission.credentials.contexts is not None))
            tcp.close()
            return
        if len(admission.inbound.half_open) >= admission.limits.half_open:
            self._make_room(now)
        connection = self._connect()
        task = self._loop.create_task(self._open(tcp, connection))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        connection.enter(task.cancel, address)
        admission.inbound.add(connection, address)

    def _make_room(self, now: float) -> None:
        """The oldest half-open connection closes: a crowd that says nothing keeps no node out."""
        oldest = cast(Connection, self._admission.inbound.oldest_half_open())
        refusal = Refused("others wait for their handshake", Reason.CONNECTION_LIMIT)
        self._admission.note_refusal(refusal, oldest.remote, None, now)
        self._admission.inbound.remove(oldest)
        oldest.evict(refusal)

    async def _open(self, tcp: socket.socket, connection: Connection) -> None:
        contexts = self._admission.credentials.contexts
        try:
            if contexts is None:
                await self._loop.connect_accepted_socket(lambda: connection, tcp)
            else:
                await self._encrypt(tcp, connection, contexts.server)
        except (OSError, TimeoutError):
            connection.connection_lost(None)
        except asyncio.CancelledError:
            tcp.close()
            connection.connection_lost(None)
            raise

    async def _encrypt(self, tcp: socket.socket, connection: Connection, context: ssl.SSLContext) -> None:
        """The loop closes a connection whose handshake fails without a word: `still` is there to say why."""
        admission = self._admission
        with tcp.dup() as still:
            try:
                await self._loop.connect_accepted_socket(
                    lambda: connection, tcp, ssl=context, ssl_handshake_timeout=admission.limits.hello_timeout_s
                )
            except (OSError, TimeoutError) as error:
                refusal = explain(error)
                if connection.refusal is None:
                    admission.note_refusal(refusal, connection.remote, None, self._loop.time())
                is_plain = refusal.reason is Reason.NOT_A_NODE
                plainly = write_refusal(CERTIFICATES_NEEDED, Reason.CERTIFICATE) if is_plain else b""
                say_last(still, plainly or alert_in(error))
                connection.connection_lost(None)
                if len(self._opening) <= LINGERING:
                    await asyncio.sleep(LINGER_S)

    def close(self) -> None:
        """Take in nobody any more, and let go of those who have not shown who they are."""
        if self._pause is not None:
            self._pause.cancel()
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()
        for task in list(self._opening):
            task.cancel()
