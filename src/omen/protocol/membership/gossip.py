"""The gossip exchange (omen Alg. 3): digests first, then only what the other lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import NodeId, Randomness
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import PeerTable, is_newer
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Descriptor, DescriptorRequest, Descriptors, Digest, DigestOffer, Ref, Status
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views

FAMILIAR_AT_MOST = 2048
LONGEST_REST = 8
LINKS_BEHIND = 4  # of a backup only the number of links matters, as its weight: a few may be missed


class Gossip:
    """Swaps what it knows with peers from ring and view; `ring_changed`: somebody nearer on the circle came up.

    `rest` is how many intervals of T_wait pass until the next exchange. Alg. 3 has one in each; here a node whose views
    are all ready, and around which nothing has changed, doubles the time up to `LONGEST_REST` intervals, and goes back
    to one as soon as a view needs others. Whoever is asked answers at once all the same.
    """

    def __init__(
        self,
        peer_table: PeerTable,
        ring: Ring,
        views: Views,
        links: Links,
        peer_sampling: PeerSampling,
        config: Config,
        randomness: Randomness,
        out: Outbox,
    ) -> None:
        self._peer_table = peer_table
        self._ring = ring
        self._views = views
        self._links = links
        self._peer_sampling = peer_sampling
        self._config = config
        self._random = randomness
        self._out = out
        self.ring_changed = False
        self.rest = 1
        self.on_reborn: Callable[[Ref], None] = _ignore
        self.on_myself: Callable[[Digest], None] = _ignore
        self._familiar: set[Digest] = set()
        self._familiar_at: tuple[int, int, bool] | None = None
        self._kept_at: tuple[int, int, int, int] | None = None
        self._near: frozenset[NodeId] = frozenset()
        self._partners: list[NodeId] = []
        self._digests: tuple[Digest, ...] = ()

    def exchange(self) -> None:
        """Once a round: shuffle, swap digests with a peer from ring or view, forget who is of no use."""
        self._views.next_round()
        self._views.select_view()
        self._peer_sampling.shuffle()
        partner = self._choose_partner()
        if partner is not None:
            self.offer(partner)
        self.fetch_predecessors()
        self._look_around()
        if not self._config.global_view:
            self._peer_table.retain({*self._near, *self._links.links})
        self.rest = min(2 * self.rest, LONGEST_REST) if self._views.are_ready() else 1

    def offer(self, to: Ref) -> None:
        """Open an exchange."""
        self._out.send(to, DigestOffer(self._buffer(), (), reply=False))

    def meet(self, ref: Ref) -> None:
        """Somebody on the circle was named."""
        member = self._ring.members.get(ref.id)
        if member is not None and member.incarnation < ref.incarnation:
            self.on_reborn(member)
        if self._ring.consider(ref):
            self.ring_changed = True

    def _look_around(self) -> None:
        """Everybody of the view and on the ring, and their digests: anew only where something has changed."""
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

    def _choose_partner(self) -> Ref | None:
        self._look_around()
        ring, view = self._ring.members, self._partners
        if view and (not ring or self._random.randrange(2)):
            return self._peer_table.known[view[self._random.randrange(len(view))]].digest.ref
        if ring:
            return ring[sorted(ring)[self._random.randrange(len(ring))]]
        sample = sorted(self._peer_sampling.view)  # whoever has lost everybody near looks for others among the rest
        return self._peer_sampling.view[sample[self._random.randrange(len(sample))]][0] if sample else None

    def _buffer(self) -> tuple[Digest, ...]:
        """Self, view and random sample (Alg. 3 line 3), each as a digest."""
        self._look_around()
        near = self._near
        strangers = [Digest(ref, 0, 0) for node, (ref, _) in self._peer_sampling.view.items() if node not in near]
        return (self._peer_table.me.digest, *self._digests, *strangers)

    def on_offer(self, sender: NodeId, message: DigestOffer) -> None:
        want = self._look_through(message.digests)
        reply_to = message.digests[0].ref if message.digests else None
        if reply_to is None or reply_to.id != sender:
            return
        if not message.reply:
            self._out.send(reply_to, DigestOffer(self._buffer(), tuple(want), reply=True))
        elif want:
            self._out.send(reply_to, DescriptorRequest(self._peer_table.ref, tuple(want)))
        self._give(reply_to, message.want)

    def _look_through(self, digests: Iterable[Digest]) -> list[NodeId]:
        """Meet whoever stands near; whose descriptors to ask for.

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
                self.on_myself(digest)
                continue
            if ring.reaches(node):
                self.meet(ref)
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

    def on_want(self, message: DescriptorRequest) -> None:
        self._give(message.asker, message.ids)

    def _give(self, to: Ref, ids: Iterable[NodeId]) -> None:
        found = [descriptor for node in dict.fromkeys(ids) if (descriptor := self._peer_table.get(node)) is not None]
        if found:
            self._out.send(to, Descriptors(tuple(found)))

    def learn(self, descriptors: Iterable[Descriptor]) -> None:
        news = []
        for descriptor in descriptors:
            self._look_for_former_life(descriptor.digest.ref)
            if self._peer_table.learn(descriptor):
                news.append(descriptor.digest.ref.id)
            self._views.remember_seen(descriptor.digest)
            self.meet(descriptor.digest.ref)
        if news:
            self._views.note_news(news)
            self._views.select_view()

    def _look_for_former_life(self, ref: Ref) -> None:
        """A node that is back has been gone: its loss is a loss even if nobody saw it."""
        known = self._peer_table.known.get(ref.id)
        if known is not None and known.digest.ref.incarnation < ref.incarnation:
            self.on_reborn(known.digest.ref)
        link = self._links.links.get(ref.id)
        if link is not None and link.ref.incarnation < ref.incarnation:
            self.on_reborn(link.ref)

    def fetch_predecessors(self) -> None:
        for node in self._ring.get_preds():
            if node not in self._peer_table.known:
                self._out.send(self._ring.members[node], DescriptorRequest(self._peer_table.ref, (node,)))

    def on_status(self, sender: NodeId, message: Status) -> None:
        digest = message.digest
        known = self._peer_table.known.get(digest.ref.id)
        same_topics = known is not None and (known.digest.ref, known.digest.topics_version) == (
            digest.ref,
            digest.topics_version,
        )
        if known is not None and same_topics:
            self.learn((Descriptor(digest, known.topics, message.neighbours),))
        elif self._peer_table.lacks(digest):
            self._out.send(digest.ref, DescriptorRequest(self._peer_table.ref, (digest.ref.id,)))
        link = self._links.links.get(sender)
        if link is not None:
            link.successors = message.successors
        for ref in message.neighbours:
            if ref.id == self._peer_table.id and ref.incarnation > self._peer_table.ref.incarnation:
                self.on_myself(Digest(ref, 0, 0))  # somebody made it believe in a life that has not begun


def _is_worth_asking(one: Digest, other: Digest) -> bool:
    """Whether a digest tells of another life, other topics, or several changes of links."""
    if one.ref.incarnation != other.ref.incarnation:
        return one.ref.incarnation > other.ref.incarnation
    return one.topics_version > other.topics_version or one.links_version >= other.links_version + LINKS_BEHIND


def _ignore(_: object) -> None:
    """Nobody has to know."""
