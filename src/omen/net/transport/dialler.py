"""Making connections: in turn, so that two ends do not dial each other at once, and with growing, jittered pauses."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Callable

from omen.net.names import split_address
from omen.net.observe.counters import TransportCounters
from omen.net.observe.logs import Log
from omen.net.security.alerts import LINGER_S, alert_in, say_last
from omen.net.security.credentials import explain
from omen.net.security.hello import Hello, Refused
from omen.net.transport.connection import Connection, Owner
from omen.net.transport.peer import Peer
from omen.protocol.events import NodeId

FIRST_RETRY_S, LONGEST_RETRY_S = 0.05, 2.0
YIELD_S = 0.25  # the end with the higher place lets the other dial first, so that one connection is made, not two
SETTLED_DOUBLINGS = 10
REFUSED_RETRY_S = 0.105  # a core takes two refusals for a proof that are 100 ms apart
CROWDED_S, UNPAID_S = 0.1, 4.0

SHOWN = "closed while certificates were shown, without a word"
CLOSED = "closed before a hello came: certificates may be used by one end only"

Failed = Callable[[Peer, Exception], None]


class Dialler:
    """Dials for a node. `failed` hears of every attempt that did not end in a handshake."""

    def __init__(self, owner: Owner, counters: TransportCounters, log: Log, failed: Failed) -> None:
        self._owner = owner
        self._counters = counters
        self._log = log
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._random = random.Random()
        self._under_way = 0
        self.is_closed = False

    def dial_in_turn(self, peer: Peer) -> None:
        """At once where that is this end's part, else when the other has had time to."""
        if self._owner.hello.node < peer.node:
            self.dial(peer)
        else:
            self._dial_after(peer, YIELD_S)

    def put_off(self, peer: Peer) -> None:
        """The peer whose message led to this dial has led to too many: later."""
        self._dial_after(peer, UNPAID_S)

    def dial_again(self, peer: Peer) -> None:
        """After a time that grows with the failures."""
        doublings = min(peer.failures, SETTLED_DOUBLINGS)
        self._dial_after(peer, min(FIRST_RETRY_S * 2**doublings, LONGEST_RETRY_S))

    def dial_after_refusal(self, peer: Peer) -> None:
        """When a second refusal would prove that the process has ended."""
        if not self.is_closed and not peer.is_dialled:
            peer.retry = self._loop.call_later(REFUSED_RETRY_S, self._retry, peer)

    def hurry(self, peer: Peer, asker: NodeId | None) -> bool:
        """Who sends to a peer that has refused need not wait until it is dialled again: by now another process may
        listen there, or the peer be at another address. False: it has refused there a moment ago.
        """
        where, at = peer.refused_at or ("", 0.0)
        now = self._loop.time()
        if where == peer.address and now - at < REFUSED_RETRY_S:
            return False
        if where and (asker is None or self._owner.admission.dials.pay(asker, now)):
            self.stop(peer)
            self.dial(peer)
        return True

    def _dial_after(self, peer: Peer, delay: float) -> None:
        if not self.is_closed and not peer.is_dialled:
            peer.retry = self._loop.call_later(delay * (0.5 + self._random.random()), self._retry, peer)

    def _retry(self, peer: Peer) -> None:
        peer.retry = None
        if peer.connection is None:
            self.dial(peer)

    def dial(self, peer: Peer) -> None:
        if self.is_closed or peer.is_dialled:
            return
        delay = self._owner.admission.redial_delay(peer.node, self._loop.time())
        if delay:
            self._dial_after(peer, 2 * delay)
        elif self._under_way >= self._owner.limits.dials_at_once:
            self._dial_after(peer, CROWDED_S)
        else:
            self._counters.dials += 1
            self._under_way += 1
            peer.dialling = self._loop.create_task(self._try(peer))
            peer.dialling.add_done_callback(self._note_done)

    def _note_done(self, _: asyncio.Task[None]) -> None:
        self._under_way -= 1

    async def _try(self, peer: Peer) -> None:
        error: Exception | None = None
        address = peer.address
        try:
            await self.greet(address, peer.node)
        except (OSError, Refused) as failure:
            error = failure
        except Exception as failure:
            error = failure
            self._log.warning("dial_failed", peer=peer.name, address=peer.address, cause=str(failure))
        peer.dialling = None
        if error is not None and not self.is_closed:
            if peer.address != address:  # another was named meanwhile: what waits may be meant for that one
                self.dial(peer)
            else:
                self._failed(peer, error)

    async def greet(self, address: str, expected: int | None = None) -> Hello:
        """Dial an address, learn which node is there; the connection stays. Raises OSError, TimeoutError or Refused."""
        host, port = split_address(address)
        contexts = self._owner.admission.credentials.contexts
        connection = Connection(self._owner, expected, dialled=True)
        async with asyncio.timeout(self._owner.limits.connect_timeout_s):
            tcp = await self._connect(host, port)
            if contexts is None:
                await self._loop.create_connection(lambda: connection, sock=tcp)
            else:
                await self._encrypt(tcp, connection, contexts.client)
            await connection.settled.wait()
        if connection.refusal is not None:
            raise connection.refusal
        if connection.peer is None:
            if isinstance(connection.error, ssl.SSLError):  # under TLS 1.3 its word comes after the handshake
                refusal = explain(connection.error)
                self._owner.admission.note_refusal(refusal, "", None, self._loop.time())
                raise refusal
            raise ConnectionResetError(SHOWN if contexts is not None else CLOSED)
        return connection.peer

    async def _connect(self, host: str, port: int) -> socket.socket:
        """To the first address of a host that takes it. ConnectionRefusedError: every one has refused.

        Given the name, the loop would make one plain OSError of several refusals, and those of a killed process at
        `localhost` (::1 and 127.0.0.1) were no proof of its death.
        """
        failures: list[OSError] = []
        for family, kind, protocol, _, where in await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            tcp = socket.socket(family, kind, protocol)
            tcp.setblocking(False)
            try:
                await self._loop.sock_connect(tcp, where)
                return tcp
            except OSError as error:
                tcp.close()
                failures.append(error)
            except BaseException:
                tcp.close()
                raise
        failures.sort(key=lambda error: isinstance(error, ConnectionRefusedError))
        raise failures[0]

    async def _encrypt(self, tcp: socket.socket, connection: Connection, context: ssl.SSLContext) -> None:
        """The loop closes a connection whose handshake fails without a word: `still` is there to say why."""
        with tcp.dup() as still:
            try:
                await self._loop.create_connection(lambda: connection, sock=tcp, ssl=context, server_hostname="")
            except ssl.SSLError as error:
                refusal = explain(error)
                self._owner.admission.note_refusal(refusal, "", None, self._loop.time())
                say_last(still, alert_in(error))
                await asyncio.sleep(LINGER_S)
                raise refusal from None
            except ConnectionResetError:
                raise ConnectionResetError(SHOWN) from None

    def close(self) -> None:
        """Dial no peer any more."""
        self.is_closed = True

    def stop(self, peer: Peer) -> None:
        """Try this peer no more."""
        if peer.retry is not None:
            peer.retry.cancel()
            peer.retry = None
        if peer.dialling is not None:
            peer.dialling.cancel()
            peer.dialling = None
