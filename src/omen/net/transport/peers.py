"""All peers of a node: wanted connections kept, others made on demand, broken ones made again, idle ones closed."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict

import msgspec

from omen.net.observe.counters import TransportCounters
from omen.net.observe.logs import Log
from omen.net.security.admission import AdmissionControl
from omen.net.security.hello import Hello, Reason, Refused, gives_way
from omen.net.security.rate_limits import REMEMBERED
from omen.net.transport.call_back import CallBacks
from omen.net.transport.connection import Connection
from omen.net.transport.dialler import Dialler
from omen.net.transport.peer import FrameParts, Peer, PeerListener, place_label
from omen.net.transport.send_queues import SendQueues
from omen.protocol.events import NodeId

TRIES_BEFORE_LOSS = 3
SWEEP_S = 5.0
ESTABLISHED_S = 1.0  # a connection that was up for so long is dialled again at once when it breaks
ALIVE_S = 3.0  # a peer that was heard of within this is alive; a member says something each second
SLOWEST_ACCEPTED = 10  # an idle connection that the other end dialled is that end's to close, within reason


class Peers:
    """All connections of a node, by the place of the node at the other end."""

    def __init__(self, hello: Hello, listener: PeerListener, log: Log, admission: AdmissionControl) -> None:
        self.limits = admission.limits
        self.admission = admission
        self._hello = hello
        self.table: dict[NodeId, Peer] = {}
        self.counters = TransportCounters()
        self._names: OrderedDict[NodeId, str] = OrderedDict()
        self._unreachable: set[NodeId] = set()
        self._listener = listener
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self.queues = SendQueues(self.table, listener, log, admission)
        self._call_backs = CallBacks(admission)
        self._dialler = Dialler(self, self.counters, log, self._on_failed)
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    @property
    def hello(self) -> Hello:
        """How this node introduces itself: its core may have rejoined."""
        own, incarnation = self._hello, self._listener.incarnation
        if incarnation is None:
            incarnation = own.incarnation
        joining = own.joining and not self._listener.is_member
        if (incarnation, joining) != (own.incarnation, own.joining):
            self._hello = msgspec.structs.replace(own, incarnation=incarnation, joining=joining)
        return self._hello

    def accept(self) -> Connection:
        """For an acceptor: the protocol of a connection that comes in."""
        return Connection(self)

    def send(
        self,
        node: NodeId,
        address: str,
        parts: FrameParts,
        size: int,
        urgent: bool,
        asker: NodeId | None = None,
        since: int = 0,
    ) -> None:
        """Have a frame sent with the next tick; dial first where there is no connection. `asker`: the peer whose
        message led to it, and who pays for the dial. `since`: the revision that knows it; to a peer of an older one it
        is not sent.
        """
        peer = self.table.get(node)
        if peer is None:
            if not address:
                self.counters.dropped_unreachable += 1
                return
            if not self._may_dial(asker):
                self.counters.dropped_unpaid += 1
                return
            peer = self.table[node] = Peer(node, address)
        connection = peer.connection
        if connection is not None:
            if since and _is_older(connection, since):
                return
            if connection.queue(parts, size, urgent):
                self.queues.add(connection)
            elif not urgent:
                self.counters.dropped_slow_consumer += 1
            return
        if address:
            peer.address = address
        self._hold(peer, parts, size, urgent, since)
        self._dialler.dial(peer)
        if peer.retry is not None and not self._dialler.hurry(peer, asker):
            self._loop.call_soon(self._listener.on_peer_unreached, node, peer.address)

    def _may_dial(self, asker: NodeId | None) -> bool:
        """Whether there is room for one more connection that only carries what is to be said, and its asker pays."""
        most = self.limits.outgoing + len(self.admission.inbound)
        if sum(not peer.is_wanted for peer in self.table.values()) >= most:
            return False
        return asker is None or self.admission.dials.pay(asker, self._loop.time())

    def _hold(self, peer: Peer, parts: FrameParts, size: int, urgent: bool, since: int) -> None:
        if peer.waiting_bytes + size > self.limits.queue_bytes:
            peer.is_broken = True
            self.counters.dropped_queue_full += 1
            return
        peer.waiting.append((parts, size, urgent, since))
        peer.waiting_bytes += size

    def want(self, node: NodeId, address: str, asker: NodeId | None = None) -> None:
        """The core wants this connection from now on. `asker`: whose message led to it, and pays, or has it put off."""
        peer = self.table.get(node)
        if peer is None:
            peer = self.table[node] = Peer(node)
        if address:
            peer.address = address
        if not peer.is_wanted:
            peer.is_wanted, peer.is_reported = True, False
            peer.missed_since = self._loop.time()
        if peer.connection is None and not peer.is_dialled:
            if asker is None or self.admission.dials.pay(asker, self._loop.time()):
                self._dialler.dial_in_turn(peer)
            else:
                self._dialler.put_off(peer)

    def release(self, node: NodeId) -> None:
        """The core wants it no more; it closes when it has been idle for a while."""
        peer = self.table.get(node)
        if peer is not None:
            peer.is_wanted = False
            self._tidy(peer)

    async def greet(self, address: str) -> Hello:
        """Dial an address, learn which node is there; the connection stays. Raises OSError, TimeoutError or Refused."""
        return await self._dialler.greet(address)

    def connections(self) -> list[Connection]:
        return [peer.connection for peer in self.table.values() if peer.connection is not None]

    def is_connected(self, node: NodeId) -> bool:
        """Whether there is a connection to a node, and the core wants it."""
        peer = self.table.get(node)
        return peer is not None and peer.connection is not None and peer.is_wanted

    def name_of(self, node: NodeId) -> str:
        """The name of a peer, once it has shown that it may go by it; else empty."""
        peer = self.table.get(node)
        return peer.name if peer is not None else ""

    def label_of(self, node: NodeId) -> str:
        """A node as logs and pages show it: by its name where it was ever a peer here, else by its place."""
        return self._names.get(node) or place_label(node)

    def is_unreachable(self, node: NodeId) -> bool:
        """Whether the last wanted connection to a node could not be made again."""
        return node in self._unreachable

    def revision_of(self, node: NodeId) -> int:
        """The revision of the protocol a connected peer speaks; 0: not known."""
        peer = self.table.get(node)
        connection = peer.connection if peer is not None else None
        return connection.peer.revision if connection is not None and connection.peer is not None else 0

    def on_opened(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._dialler.is_closed:
            connection.abort()

    def on_greeted(self, connection: Connection) -> None:
        """Its handshake has ended."""
        hello = connection.peer
        assert hello is not None
        try:
            connection.limit_to(self.admission.admit(connection, hello, self._loop.time()))
        except Refused as refusal:
            connection.refuse(refusal)
            return
        if hello.node == self._hello.node:
            self._listener.on_name_met(hello)
            connection.refuse(_name_taken(hello if gives_way(self.hello, hello) else self.hello, "a node"))
            return
        self._remember_name(hello)
        peer = self.table.setdefault(hello.node, Peer(hello.node))
        former = peer.incarnation
        if former is not None and hello.session != peer.session:
            if not self._makes_way(peer, former, connection, hello):
                return
            self._listener.on_peer_refused(hello.node, hello.incarnation)
            self.table[hello.node] = peer
        peer.incarnation = max(hello.incarnation, former or 0)
        peer.session, peer.name, peer.address = hello.session, hello.name, hello.address
        peer.direct_address = hello.address if hello.is_direct else ""
        if not connection.dialled:
            self._call_backs.consider(connection, hello, self.hello.address)
        present = peer.connection
        if present is not None and not self._replaces(connection, present):
            connection.retire()
        else:
            if present is not None:
                self._detach(peer).retire()
                peer.is_broken |= present.lost_frames or present.dialled == connection.dialled
            self._attach(peer, connection)

    def _makes_way(self, peer: Peer, former: int, connection: Connection, hello: Hello) -> bool:
        """Whether another process may go by the name of a peer: its next incarnation, unless the former is alive."""
        present = peer.connection
        known = present.peer if present is not None else None
        if present is not None and known is not None and self._loop.time() - present.last_heard < ALIVE_S:
            if gives_way(hello, msgspec.structs.replace(known, joining=False)):  # it was, when it said so
                connection.refuse(_name_taken(known, "a node that is alive"))
                self._listener.on_name_claimed(hello.node, hello)
                return False
            self._detach(peer).refuse(_name_taken(hello, "a node that is alive"))
            return True
        if hello.incarnation <= former:
            explanation = f"another {hello.name!r} is known here, in a later incarnation"
            connection.refuse(Refused(explanation, Reason.FORMER_INCARNATION))
            return False
        if present is not None:
            self._detach(peer).abort()
        return True

    def _remember_name(self, hello: Hello) -> None:
        self._names[hello.node] = hello.name
        self._names.move_to_end(hello.node)
        if len(self._names) > REMEMBERED:
            self._names.popitem(last=False)

    def _replaces(self, fresh: Connection, present: Connection) -> bool:
        """Both ends dialled at once: the one that the lower place dialled stays. A second try by one end stays too."""
        assert fresh.peer is not None
        if fresh.dialled == present.dialled:
            return True
        return fresh.dialled == (self.hello.node < fresh.peer.node)

    def _attach(self, peer: Peer, connection: Connection) -> None:
        peer.connection = connection
        peer.up_since, peer.refused_at = self._loop.time(), None
        peer.failures = 0
        peer.is_reported = False
        self._unreachable.discard(peer.node)
        if peer.retry is not None:
            peer.retry.cancel()
            peer.retry = None
        waiting, peer.waiting, peer.waiting_bytes = peer.waiting, [], 0
        for parts, size, urgent, since in waiting:
            if not _is_older(connection, since):
                connection.queue(parts, size, urgent)
        self.queues.add(connection)
        if peer.is_broken:
            peer.is_broken = False
            self.counters.reconnects += 1
            self._listener.on_peer_ready(peer.node)

    def _detach(self, peer: Peer) -> Connection:
        connection = peer.connection
        assert connection is not None
        peer.connection = None
        self.queues.drop(connection)
        return connection

    def on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        assert connection.peer is not None
        connection.touch(self._loop.time())
        self._listener.on_peer_frames(connection.peer.node, frames, connection)

    def on_slow_consumer(self, connection: Connection) -> None:
        self.queues.on_slow_consumer(connection)

    def on_drained(self, connection: Connection) -> None:
        self.queues.on_drained(connection)

    def on_refused(self, connection: Connection, refusal: Refused) -> None:
        """Counted, and banned where it was an offence. That a name is taken is believed after the handshake alone."""
        self.admission.note_refusal(refusal, connection.remote, connection.peer, self._loop.time())
        if refusal.by_peer and connection.peer is not None:
            self._listener.on_refused_by_peer(refusal)

    def on_closed(self, connection: Connection, error: Exception | None) -> None:
        self._open.discard(connection)
        self.queues.on_closed(connection)
        self.admission.inbound.remove(connection)
        peer = self.table.get(connection.peer.node) if connection.peer is not None else None
        if peer is None or peer.connection is not connection or self._dialler.is_closed:
            return
        peer.connection = None
        peer.missed_since = self._loop.time()
        if not connection.is_retired or connection.lost_frames:
            peer.is_broken = True
            self.counters.connections_broken += 1
        if not peer.is_wanted:
            self._tidy(peer)
        elif peer.missed_since - peer.up_since >= ESTABLISHED_S:
            self._listener.on_peer_broken(peer.node)
            self._dialler.dial(peer)
        else:
            self._dialler.dial_in_turn(peer)

    def _on_failed(self, peer: Peer, error: Exception) -> None:
        """The peer could not be reached."""
        if peer.connection is not None or self.table.get(peer.node) is not peer:
            return
        peer.failures += 1
        self.counters.dial_failures += 1
        self.counters.dropped_unreachable += len(peer.waiting)
        if not peer.is_wanted:
            del self.table[peer.node]
            if isinstance(error, ConnectionRefusedError):
                self._listener.on_peer_unreached(peer.node, peer.address)
            return
        if any(not urgent for _, _, urgent, _ in peer.waiting):
            peer.is_broken = True
        peer.waiting, peer.waiting_bytes = [], 0
        if self._note_refusal(peer, error):
            return
        missed_s = self._loop.time() - peer.missed_since
        if not peer.is_reported and peer.failures >= TRIES_BEFORE_LOSS and missed_s >= self.limits.lost_after_s:
            peer.is_reported = True
            if len(self._unreachable) >= REMEMBERED:
                self._unreachable.clear()
            self._unreachable.add(peer.node)
            self._log.info("peer_unreachable", peer=self.label_of(peer.node), cause=str(error))
            self._listener.on_peer_lost(peer.node, peer.incarnation)
        if missed_s >= self.limits.give_up_after_s:
            self.release(peer.node)
        if peer.is_wanted:
            self._dialler.dial_again(peer)

    def _note_refusal(self, peer: Peer, error: Exception) -> bool:
        """Tell when nobody listens where the peer itself did (a full backlog, a host that is down, a process without
        descriptors: none of them refuses), or where others say that it is; whether all is done then.
        """
        peer.refused_at = (peer.address, self._loop.time()) if isinstance(error, ConnectionRefusedError) else None
        if peer.refused_at is None:
            return False
        if peer.address != peer.direct_address or peer.failures > TRIES_BEFORE_LOSS:
            self._listener.on_peer_unreached(peer.node, peer.address)
            return self.table.get(peer.node) is not peer
        self._listener.on_peer_refused(peer.node, None)
        if peer.is_wanted and self.table.get(peer.node) is peer and peer.failures < TRIES_BEFORE_LOSS:
            self._dialler.dial_after_refusal(peer)
            return True
        return not peer.is_wanted

    def expel(self, node: NodeId, seconds: float) -> None:
        """The core has banned a peer: it is told, and no connection is made or taken until that ends."""
        self.admission.bans.ban_for(node, self._loop.time(), seconds)
        peer = self.table.get(node)
        if peer is not None:
            peer.is_wanted = False
            if peer.connection is None:
                self._drop(peer)
            else:
                explanation = f"{peer.name!r} is banned for {seconds:.0f} s: it broke the protocol too often"
                peer.connection.refuse(Refused(explanation, Reason.BANNED))

    def forget(self, node: NodeId) -> None:
        """The core has lost it: no connection to it is kept or tried any more."""
        peer = self.table.get(node)
        if peer is not None:
            peer.is_wanted = False
            if peer.connection is None:
                self._drop(peer)

    def release_all(self) -> None:
        """The core has rejoined: it says anew which connections it wants."""
        for peer in list(self.table.values()):
            self.release(peer.node)

    def _tidy(self, peer: Peer) -> None:
        if not peer.is_wanted and peer.connection is None and not peer.waiting:
            self._drop(peer)

    def _drop(self, peer: Peer) -> None:
        self._dialler.stop(peer)
        if self.table.get(peer.node) is peer:
            del self.table[peer.node]

    def _sweep(self) -> None:
        """Close connections that are not needed, overdue, or made by a certificate that has expired."""
        now = self._loop.time()
        for open_ in list(self._open):
            refusal = open_.overdue(now)
            if refusal is not None:
                open_.refuse(refusal)
                open_.abort()
            elif time.time() > open_.valid_until:
                open_.refuse(Refused("the certificate shown has expired by now", Reason.CERTIFICATE))
        for peer in list(self.table.values()):
            connection = peer.connection
            if connection is None or peer.is_wanted:
                continue
            patience = self.limits.idle_s * (1 if connection.dialled else SLOWEST_ACCEPTED)
            if now - connection.last_used > patience:
                connection.retire()
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def renew_limits(self) -> None:
        """Other limits are in force: every peer is under them."""
        self.limits = self.admission.limits
        for peer in self.table.values():
            if peer.connection is not None:
                peer.connection.limit_to(self.admission.rates_of(peer.node))

    async def renew(self, over_s: float = 2.0) -> None:
        """Other keys are in force: every connection made by former ones is made again, one after the other."""
        version = self.admission.credentials.version
        former = [connection for connection in self._open if connection.key_version < version]
        for connection in former:
            if self._dialler.is_closed:
                return
            connection.close()
            await asyncio.sleep(over_s / len(former))

    async def close(self, patience_s: float = 1.0) -> None:
        """Write out what is waiting, then close everything."""
        self.queues.flush()
        self._dialler.close()
        self._sweeper.cancel()
        self._call_backs.close()
        for peer in self.table.values():
            self._dialler.stop(peer)
        for connection in list(self._open):
            connection.close()
        deadline = self._loop.time() + patience_s
        try:
            while self._open and self._loop.time() < deadline:
                await asyncio.sleep(0.01)
        finally:  # cancelled: no more patience, but nothing stays open
            for connection in list(self._open):
                connection.abort()
            self.table.clear()


def _is_older(connection: Connection, revision: int) -> bool:
    return connection.peer is not None and connection.peer.revision < revision


def _name_taken(holder: Hello, who: str) -> Refused:
    where = f"{who} at {holder.address}, since incarnation {holder.incarnation}"
    return Refused(f"the name {holder.name!r} is taken by {where}", Reason.NAME_TAKEN)
