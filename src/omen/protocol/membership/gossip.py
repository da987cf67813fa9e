"""The gossip exchange (omen Alg. 3): digests first, then only what the other lacks."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import msgspec

from omen.protocol.budgets import SenderBudget
from omen.protocol.context import NodeContext
from omen.protocol.events import Handlers, NodeId, Timer
from omen.protocol.membership.doubts import Doubts
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import is_newer
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Descriptor, DescriptorRequest, Descriptors, Digest, DigestOffer, Ref, Status
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views

FAMILIAR_AT_MOST = 2048
LONGEST_REST = 8
PART_AT_MOST = 1 << 16
"""Topics and neighbours in one message of several descriptors: some 600 KB."""
GIVEN_PER_S, GIVEN_AT_ONCE = 1 << 17, 1 << 21
"""The same, to one peer: what a newcomer asks for among 50 nodes of 20,000 topics each at once, then 1.2 MB/s."""
LINKS_BEHIND = 4  # of a backup only the number of links matters, as its weight: a few may be missed


class RoundTimer(Timer, frozen=True):
    """The next gossip exchange is due (omen Alg. 3)."""


class PeerRejoined(msgspec.Struct, frozen=True):
    """A later incarnation of a peer is there, so this former one has ended."""

    former: Ref


class OwnDigestSeen(msgspec.Struct, frozen=True):
    """Others hold this digest of the node itself, and it may be newer than the node's own."""

    digest: Digest


Finding = PeerRejoined | OwnDigestSeen
Findings = Iterator[Finding]
"""What an exchange brings to light, for the node to act on at once: the rest of the exchange builds on it."""


class Gossip:
    """Swaps what it knows with peers from ring and view.

    `rest` is how many intervals of T_wait pass until the next exchange. Alg. 3 has one in each; here a node whose views
    are all ready, and around which nothing has changed, doubles the time up to `LONGEST_REST` intervals, and goes back
    to one as soon as a view needs others. A node that is asked answers at once all the same.
    """

    def __init__(
        self, context: NodeContext, ring: Ring, views: Views, links: Links, peer_sampling: PeerSampling
    ) -> None:
        self._peer_table = context.peer_table
        self._config = context.config
        self._random = context.random
        self._out = context.out
        self._ring = ring
        self._views = views
        self._links = links
        self._peer_sampling = peer_sampling
        self._clock = context.clock
        self._given = SenderBudget(GIVEN_PER_S, GIVEN_AT_ONCE)
        self._doubts = Doubts(context.config.answer_timeout * context.config.attempts, context.config.tombstone_life)
        self._doubts_turn = True
        self.rest = 1
        self._familiar: set[Digest] = set()
        self._familiar_at: tuple[int, int, bool] | None = None
        self._kept_at: tuple[int, int, int, int] | None = None
        self._near: frozenset[NodeId] = frozenset()
        self._partners: list[NodeId] = []
        self._digests: tuple[Digest, ...] = ()

    def handlers(self) -> Handlers:
        """Offers, descriptors and states bring findings: the node takes those in."""
        return {DescriptorRequest: self.on_descriptor_request}

    def exchange(self) -> None:
        """Once per round: shuffle, swap digests with a peer from ring or view, forget peers of no use."""
        self._forget_silent()
        self._views.next_round()
        self._views.select_view()
        self._peer_sampling.shuffle()
        partner = self._doubted_partner() or self._choose_partner()
        self._doubts_turn = not self._doubts_turn
        if partner is not None:
            self.offer(partner)
            if not self._is_watched(partner.id):
                self._doubts.note_asked(partner.id, self._clock.now)
        self.fetch_predecessors()
        self._look_around()
        if not self._config.global_view:
            self._peer_table.retain({*self._near, *self._links.links})
        settled = self._views.are_ready() and not self._doubts.are_pressing(self._clock.now)
        self.rest = min(2 * self.rest, LONGEST_REST) if settled else 1

    def hurry(self) -> None:
        """The next exchange comes in the next interval."""
        self.rest = 1

    def offer(self, to: Ref) -> None:
        """Open an exchange."""
        self._out.send(to, DigestOffer(self._buffer(), (), reply=False))

    def meet(self, ref: Ref) -> Findings:
        """A node was named: take it in where it stands near on the ring."""
        member = self._ring.members.get(ref.id)
        if member is not None and member.incarnation < ref.incarnation:
            yield PeerRejoined(member)
        self._ring.consider(ref)

    def introduce(self, met: Iterable[Ref]) -> bool:
        """Take in the nodes met while this one joined, and greet those near on the ring; whether there are any."""
        for ref in met:
            self._ring.consider(ref)
            self._peer_sampling.add(ref)
        self._ring.mark_changed()
        for member in sorted(self._ring.members):
            self.offer(self._ring.members[member])
        return bool(self._ring.members)

    def peers(self) -> Iterable[Ref]:
        """Everyone on the ring and in the sample."""
        known = [*self._ring.members.values(), *(ref for ref, _ in self._peer_sampling.view.values())]
        return {ref.id: ref for ref in known}.values()

    def _look_around(self) -> None:
        """All of the view and the ring, and their digests: anew only where something has changed."""
        stamp = (self._peer_table.version, self._views.version, self._ring.version, self._links.version)
        if stamp == self._kept_at and not self._config.global_view:
            return
        self._kept_at = stamp
        known, members = self._peer_table.known, self._ring.members
        view = self._views.get_view()
        self._near = frozenset((*view, *members))
        self._partners = sorted(node for node in view if node in known)
        self._digests = (
            *(known[node].digest for node in sorted(self._near) if node in known),
            *(Digest(members[node], 0, 0) for node in sorted(members) if node not in known),
        )

    def _is_watched(self, node: NodeId) -> bool:
        """Whether its end would be noticed without gossip."""
        return node in self._ring.members or node in self._links.links

    def _has_ended(self, ref: Ref) -> bool:
        """Whether it was declared failed, or this node has asked it in vain."""
        return self._peer_table.is_declared_failed(ref) or self._doubts.is_silent(ref, self._clock.now)

    def _forget_silent(self) -> None:
        """Backups that do not answer are none; if they are there after all, others name them again."""
        self._doubts.retain(lambda node: node in self._peer_table.known and not self._is_watched(node))
        for node in self._doubts.take_silent(self._clock.now):
            self._doubts.note_silent(self._peer_table.known[node].digest.ref, self._clock.now)
            self._peer_table.forget(node)
            self._peer_sampling.drop(node)
            self._views.note_loss(node)
            self._familiar_at = None  # what it was when others named it before is of no matter

    def _doubted_partner(self) -> Ref | None:
        """In every other exchange, whatever others say has ended."""
        node = self._doubts.next(self._clock.now) if self._doubts_turn else None
        return self._peer_table.known[node].digest.ref if node is not None else None

    def _choose_partner(self) -> Ref | None:
        self._look_around()
        ring, view = self._ring.members, self._partners
        if view and (not ring or self._random.randrange(2)):
            return self._peer_table.known[view[self._random.randrange(len(view))]].digest.ref
        if ring:
            return ring[sorted(ring)[self._random.randrange(len(ring))]]
        sample = sorted(self._peer_sampling.view)  # a node that has lost all peers near it turns to the sample
        return self._peer_sampling.view[sample[self._random.randrange(len(sample))]][0] if sample else None

    def _buffer(self) -> tuple[Digest, ...]:
        """Self, view and random sample (Alg. 3 line 3), each as a digest."""
        self._look_around()
        near = self._near
        strangers = [Digest(ref, 0, 0) for node, (ref, _) in self._peer_sampling.view.items() if node not in near]
        return (self._peer_table.me.digest, *self._digests, *strangers)

    def on_offer(self, sender: NodeId, message: DigestOffer) -> Findings:
        self._doubts.hear(sender)
        for node in message.ended if message.reply else ():
            if node in self._peer_table.known and not self._is_watched(node):
                self._doubts.add(node)
        want = yield from self._look_through(message.digests)
        if not self._peer_table.has_room_for(sender):
            want = [node for node in want if node == sender]
        reply_to = message.digests[0].ref if message.digests else None
        if reply_to is None or reply_to.id != sender:
            return
        if not message.reply:
            refs = (digest.ref for digest in message.digests)
            ended = tuple(ref.id for ref in refs if self._has_ended(ref))
            self._out.send(reply_to, DigestOffer(self._buffer(), tuple(want), True, ended))
        elif want:
            self._out.send(reply_to, DescriptorRequest(self._peer_table.ref, tuple(want)))
        self._give(reply_to, message.want)

    def _look_through(self, digests: Iterable[Digest]) -> Generator[Finding, None, list[NodeId]]:
        """Meet the nodes that stand near; whose descriptors to ask for.

        A digest that was of no use is passed over when it comes again, until ring, links or curiosity have changed.
        """
        curious = self._views.is_unsettled()
        stamp = (self._ring.version, self._links.version, curious)
        if stamp != self._familiar_at or len(self._familiar) > FAMILIAR_AT_MOST:
            self._familiar, self._familiar_at = set(), stamp
        familiar, ring, known, me = self._familiar, self._ring, self._peer_table.known, self._peer_table.id
        want: list[NodeId] = []
        for digest in [digest for digest in digests if digest not in familiar]:
            ref = digest.ref
            node = ref.id
            if node == me:
                yield OwnDigestSeen(digest)
                continue
            member = ring.members.get(node)
            if (member is None or member.incarnation < ref.incarnation) and ring.reaches(node):
                yield from self.meet(ref)
            if self._doubts.is_silent(ref, self._clock.now) and not self._is_watched(node):
                continue
            have = known.get(node)
            useful = node in ring.members or node in self._links.links
            if have is not None:
                behind = is_newer(digest, have.digest) if useful else _is_worth_asking(digest, have.digest)
                wanted = behind and not self._peer_table.is_declared_failed(ref)
            else:
                wanted = (useful or (curious and self._views.is_unseen(digest))) and self._peer_table.lacks(digest)
            if wanted:
                want.append(node)
            else:
                familiar.add(digest)
        return want

    def on_descriptor_request(self, _: NodeId, message: DescriptorRequest) -> None:
        self._give(message.asker, message.ids)

    def _give(self, to: Ref, ids: Iterable[NodeId]) -> None:
        """In parts that fit into a frame, however many topics nodes have; a peer is given so many topics in a time."""
        part: list[Descriptor] = []
        size = 0
        for node in dict.fromkeys(ids):
            descriptor = self._peer_table.get(node)
            if descriptor is None:
                continue
            weight = len(descriptor.topics) + len(descriptor.neighbours) + 1
            if not self._given.take(to.id, self._clock.now, weight):
                break  # it asks again in a later round
            if part and size + weight > PART_AT_MOST:
                self._out.send(to, Descriptors(tuple(part)))
                part, size = [], 0
            part.append(descriptor)
            size += weight
        if part:
            self._out.send(to, Descriptors(tuple(part)))

    def learn(self, descriptors: Iterable[Descriptor], sender: NodeId | None = None) -> Findings:
        """Take in what is newer. `sender`: the peer that brings it, None where that is of no matter."""
        news = []
        for descriptor in descriptors:
            ref = descriptor.digest.ref
            yield from self._superseded(ref)
            by_itself = sender == ref.id or sender is None
            if not by_itself and not self._is_watched(ref.id) and self._doubts.is_silent(ref, self._clock.now):
                continue
            if self._peer_table.learn(descriptor, None if by_itself else sender):
                news.append(ref.id)
            self._views.remember_seen(descriptor.digest)
            if self._ring.reaches(ref.id):
                yield from self.meet(ref)
        if news:
            self._views.note_news(news)
            self._views.select_view()

    def _superseded(self, ref: Ref) -> Findings:
        """The former incarnations known here of a node that is back: their loss is a loss even if no node saw it."""
        known = self._peer_table.known.get(ref.id)
        if known is not None and known.digest.ref.incarnation < ref.incarnation:
            yield PeerRejoined(known.digest.ref)
        link = self._links.links.get(ref.id)
        if link is not None and link.ref.incarnation < ref.incarnation:
            yield PeerRejoined(link.ref)

    def fetch_predecessors(self) -> None:
        for node in self._ring.get_preds():
            if node not in self._peer_table.known:
                self._out.send(self._ring.members[node], DescriptorRequest(self._peer_table.ref, (node,)))

    def on_status(self, sender: NodeId, message: Status) -> Findings:
        digest = message.digest
        known = self._peer_table.known.get(digest.ref.id)
        same_topics = known is not None and (known.digest.ref, known.digest.topics_version) == (
            digest.ref,
            digest.topics_version,
        )
        if known is not None and same_topics:
            yield from self.learn((Descriptor(digest, known.topics, message.neighbours, known.rules),))
        elif self._peer_table.lacks(digest):
            self._out.send(digest.ref, DescriptorRequest(self._peer_table.ref, (digest.ref.id,)))
        link = self._links.links.get(sender)
        if link is not None:
            link.successors = message.successors
        for ref in message.neighbours:
            if ref.id == self._peer_table.id and ref.incarnation > self._peer_table.ref.incarnation:
                yield OwnDigestSeen(Digest(ref, 0, 0))  # it believes in an incarnation that has not begun


def _is_worth_asking(one: Digest, other: Digest) -> bool:
    """Whether a digest tells of another incarnation, other topics, or several changes of links."""
    if one.ref.incarnation != other.ref.incarnation:
        return one.ref.incarnation > other.ref.incarnation
    return one.topics_version > other.topics_version or one.links_version >= other.links_version + LINKS_BEHIND
