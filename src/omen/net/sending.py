"""How messages go out: encoded once, to the peers that may have them, in a form that each of them knows."""

from __future__ import annotations

from collections import Counter

from omen.net.security.access import Access
from omen.net.security.hello import FIELDS_REVISION, NEARBY_REVISION, RECORDS_REVISION, WATCHING_REVISION
from omen.net.transport.peer import FrameParts
from omen.net.transport.peers import Peers
from omen.protocol.events import NodeId
from omen.protocol.messages import wire
from omen.protocol.messages.base import Message
from omen.protocol.messages.overlay import NearbyChanged, NearbyQuery, NearbyReply
from omen.protocol.messages.publications import FIELDS, Announce, Publication, without_fields
from omen.protocol.messages.records import RecordAck, RecordOffer, RecordPut, RecordQuery, RecordReply, RecordWant

WATCHING = "Watching"
SINCE: dict[type, int] = {
    **dict.fromkeys((NearbyQuery, NearbyReply, NearbyChanged), NEARBY_REVISION),
    **dict.fromkeys((RecordPut, RecordAck, RecordQuery, RecordReply, RecordOffer, RecordWant), RECORDS_REVISION),
}
"""Messages that nodes of an older revision do not know."""


def frame(message: Message) -> tuple[FrameParts, int, bool]:
    """A message as it goes out: length and bytes (made once however many peers it goes to), whether it is urgent."""
    body = wire.encode(message)
    return (len(body).to_bytes(4, "big"), body), len(body) + 4, body[0] == wire.OTHER


class Sender:
    """`messages`, `bytes`: what was sent, by kind of message."""

    def __init__(self, peers: Peers, access: Access) -> None:
        self._peers = peers
        self._access = access
        self.messages: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def send(self, to: NodeId, address: str, message: Message, asker: NodeId | None = None) -> None:
        """To one peer. `asker`: the peer whose message led to it, and who pays where it has to be dialled."""
        if type(message) is Publication and not self._access.gives(self._peers.name_of(to), message):
            return
        if type(message) is Publication and message.frame[0] >= FIELDS:
            self._send_fields((to,), message)
            return
        if type(message) is Announce and self._access.rules:
            visible = self._access.visible_to(self._peers.name_of(to), message)
            if visible is None:
                return
            message = visible
        parts, size, urgent = frame(message)
        self._count(message, size, 1)
        self._peers.send(to, address, parts, size, urgent, asker, SINCE.get(type(message), 0))

    def send_watching(self, to: NodeId, body: bytes) -> None:
        """What is gathered for a live page: over a connection that is there, to a peer that knows it."""
        self.messages[WATCHING] += 1
        self.bytes[WATCHING] += len(body) + 4
        self._peers.send(to, "", (len(body).to_bytes(4, "big"), body), len(body) + 4, False, None, WATCHING_REVISION)

    def multicast(self, to: tuple[NodeId, ...], message: Message) -> None:
        """To several peers that there are connections to."""
        if type(message) is Publication:
            self._multicast_publication(to, message)
            return
        parts, size, urgent = frame(message)
        self._count(message, size, len(to))
        for node in to:
            self._peers.send(node, "", parts, size, urgent)

    def _multicast_publication(self, to: tuple[NodeId, ...], publication: Publication) -> None:
        """Written for speed: of what nodes send, nearly all is this."""
        if self._access.rules:
            to = tuple(node for node in to if self._access.gives(self._peers.name_of(node), publication))
        body = publication.frame
        if body[0] >= FIELDS:
            self._send_fields(to, publication)
            return
        length = len(body)
        parts = (length.to_bytes(4, "big"), body)
        send = self._peers.send
        for node in to:
            send(node, "", parts, length + 4, False)
        self.messages["Publication"] += len(to)
        self.bytes["Publication"] += (length + 4) * len(to)

    def _send_fields(self, to: tuple[NodeId, ...], publication: Publication) -> None:
        """A peer of an older revision does not know fields: it gets the payload alone."""
        whole = publication.frame
        for node in to:
            body = whole if self._peers.revision_of(node) >= FIELDS_REVISION else without_fields(whole)
            self._count(publication, len(body) + 4, 1)
            self._peers.send(node, "", (len(body).to_bytes(4, "big"), body), len(body) + 4, False)

    def _count(self, message: Message, size: int, copies: int) -> None:
        kind = type(message).__name__
        self.messages[kind] += copies
        self.bytes[kind] += size * copies
