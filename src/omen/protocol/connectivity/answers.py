"""What a node says of its links to those that look for a way round themselves."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from omen.protocol.connectivity.surroundings import bits_by_topic
from omen.protocol.context import NodeContext
from omen.protocol.events import Topic
from omen.protocol.messages.overlay import NearbyQuery, NearbyReply, Ref
from omen.protocol.repair.links import Links
from omen.protocol.repair.requests import Requests

MADE_AT_MOST = 256


class Said(msgspec.Struct, frozen=True):
    """What answers are made of: the topics of this node, and for each of its links the far end and its topics."""

    settled: frozenset[Topic]
    full: bool
    refs: tuple[Ref, ...]
    topics: tuple[frozenset[Topic], ...]


class Made(msgspec.Struct):
    """The answer for one list of topics. `digest`: 0 until an asker names one."""

    mine: bytes
    links: tuple[tuple[Ref, bytes], ...]
    digest: int = 0


class Answers:
    """Askers ask the same again and again. So answers are kept by the topics asked for, until this node, its links or
    the topics of its neighbours change: to make one takes time in proportion to links times topics.
    """

    def __init__(self, context: NodeContext, links: Links, requests: Requests) -> None:
        self._peer_table = context.peer_table
        self._forbid = context.config.forbid
        self._links = links
        self._requests = requests
        self._said = Said(frozenset(), False, (), ())
        self._made: dict[tuple[Topic, ...], Made] = {}

    def answer(self, query: NearbyQuery) -> NearbyReply:
        said, links, me = self._say(), self._links, self._peer_table.ref
        made = self._made.get(query.topics)
        if made is None:
            made = _make(query.topics, said)
            if len(self._made) >= MADE_AT_MOST:
                del self._made[next(iter(self._made))]
            self._made[query.topics] = made
        reply = NearbyReply(me, query.nonce, made.mine, len(links.links), said.full, made.links, forbid=self._forbid)
        if query.digest:
            made.digest = made.digest or digest_of(reply)
            if query.digest == made.digest:
                return NearbyReply(me, query.nonce, b"", len(links.links), False, (), same=True)
        return reply

    def _say(self) -> Said:
        """What answers are made of now. Where it is not as before, those that were made are void."""
        mine, waiting = self._peer_table.topics_of(self._peer_table.id), self._requests.waiting_for()
        settled = frozenset() if self._requests.departing else mine - waiting if waiting else mine
        refs, topics = self._links.counted_on()
        said = Said(settled, self._links.is_full(), refs, topics)
        if said != self._said:
            self._said = said
            self._made.clear()
        return self._said


def _make(topics: tuple[Topic, ...], said: Said) -> Made:
    """One bit for each topic asked for, of this node and of each link that carries one of them."""
    places, asked, size = bits_by_topic(topics), frozenset(topics), (len(topics) + 7) // 8
    place = places.__getitem__
    links = []
    for ref, theirs in zip(said.refs, said.topics, strict=True):
        carried = theirs & asked
        if carried:
            links.append((ref, sum(map(place, carried)).to_bytes(size, "little")))
    return Made(sum(map(place, said.settled & asked)).to_bytes(size, "little"), tuple(links))


def digest_of(reply: NearbyReply) -> int:
    """Of what decides how pieces hang together, and what may join them."""
    links = tuple((ref.id, ref.incarnation, bits) for ref, bits in reply.links)
    parts = (reply.mine, reply.full, links, reply.forbid) if reply.forbid else (reply.mine, reply.full, links)
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=5).digest(), "big") + 1
