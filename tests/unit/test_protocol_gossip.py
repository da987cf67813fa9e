"""Gossip by itself: what is asked for, what is passed over, and when a node rests."""

from __future__ import annotations

import random

from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import Send
from omen.protocol.membership.gossip import LINKS_BEHIND, LONGEST_REST, Gossip
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import Descriptor, DescriptorRequest, Descriptors, Digest, DigestOffer, Message, Ref
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views

ME, PREDECESSOR = 1000, 900


def ref(node: int, life: int = 1) -> Ref:
    return Ref(node, life, "")


def describe(node: int, topics: tuple[int, ...] = (), life: int = 1, versions: tuple[int, int] = (1, 1)) -> Descriptor:
    return Descriptor(Digest(ref(node, life), *versions), topics, ())


class Part:
    """A node's gossip and what it works on. It follows one predecessor, which wants topics 1 and 2."""

    def __init__(self, coverage: int = 1, ready_rounds: int = 3) -> None:
        config = Config(resilience=1, coverage=coverage, ready_rounds=ready_rounds)
        draw = random.Random(1)
        self.peer_table = PeerTable(describe(ME, (7,)), 100)
        self.out = Outbox(ME)
        self.ring = Ring(self.peer_table, config)
        self.views = Views(self.peer_table, config, draw)
        self.links = Links(self.peer_table, config, self.out)
        sampling = PeerSampling(self.peer_table, config, draw, self.out)
        self.gossip = Gossip(self.peer_table, self.ring, self.views, self.links, sampling, config, draw, self.out)
        for node in (700, 800, PREDECESSOR, 1100, 1200, 1300):  # L and the spares, on both sides: the ring is full
            self.gossip.learn((describe(node, (1, 2) if node == PREDECESSOR else ()),))
        self.views.follow([PREDECESSOR], [])
        self.views.select_view()
        self.sent()

    def sent(self) -> list[Message]:
        return [output.message for output in self.out.take() if isinstance(output, Send)]

    def hear(self, *digests: Digest) -> tuple[int, ...]:
        """An offer that answers one of ours; who is asked for then."""
        self.gossip.on_offer(1100, DigestOffer((self.peer_table.known[1100].digest, *digests), (), reply=True))
        return tuple(node for message in self.sent() if isinstance(message, DescriptorRequest) for node in message.ids)


def test_whoever_may_cover_what_is_lacking_is_asked_for_until_its_topics_were_seen() -> None:
    part = Part()
    digest = Digest(ref(5_000_000), 1, 1)
    assert part.hear(digest) == part.hear(digest) == (5_000_000,), "the answer may have been lost"
    part.gossip.learn((describe(5_000_000, (3,)),))
    part.peer_table.retain(part.ring.members)
    assert part.hear(digest) == ()
    assert part.hear(Digest(ref(5_000_000), 2, 1)) == (5_000_000,), "other topics"
    assert part.hear(Digest(ref(5_000_000, 2), 1, 1)) == (5_000_000,), "another life"


def test_a_node_named_without_versions_is_looked_at_once_a_life() -> None:
    part = Part()
    assert part.hear(Digest(ref(5_000_000), 0, 0)) == (5_000_000,)
    part.gossip.learn((describe(5_000_000, (3,)),))
    part.peer_table.retain(part.ring.members)
    assert part.hear(Digest(ref(5_000_000), 0, 0)) == ()
    assert part.hear(Digest(ref(5_000_000, 2), 0, 0)) == (5_000_000,)


def test_what_was_of_no_use_is_looked_at_again_when_ring_or_links_have_changed() -> None:
    part = Part()
    part.gossip.learn((describe(5_000_000, (1, 2)),))
    assert not part.views.is_unsettled()
    far, near = Digest(ref(6_000_000), 1, 1), Digest(ref(600), 1, 1)
    assert part.hear(far, near) == part.hear(far, near) == ()
    part.links.plan(ref(6_000_000))
    assert part.hear(far, near) == (6_000_000,), "a neighbour now"
    part.ring.drop(700)
    assert 600 in part.hear(far, near), "on the ring now"
    assert 600 in part.ring.members


def test_of_a_backup_a_few_changes_of_links_may_be_missed() -> None:
    part = Part()
    backup = 5_000_000
    part.gossip.learn((describe(backup, (1, 2)),))
    assert part.hear(Digest(ref(backup), 1, LINKS_BEHIND)) == ()
    assert part.hear(Digest(ref(backup), 1, LINKS_BEHIND + 1)) == (backup,)
    assert part.hear(Digest(ref(backup), 2, 1)) == (backup,)
    assert part.hear(Digest(ref(backup, 2), 1, 1)) == (backup,)
    part.links.plan(ref(backup))
    assert part.hear(Digest(ref(backup), 1, 2)) == (backup,), "a neighbour"


def test_newer_descriptors_on_the_ring_are_always_asked_for() -> None:
    part = Part()
    assert part.hear(Digest(ref(1200), 1, 1)) == ()
    assert part.hear(Digest(ref(1200), 1, 2)) == (1200,)
    part.gossip.learn((describe(1200, versions=(1, 2)),))
    assert part.hear(Digest(ref(1200), 1, 2)) == part.hear(Digest(ref(1200), 1, 1)) == ()


def test_an_offer_holds_what_is_known_when_it_is_made() -> None:
    part = Part()

    def offered() -> dict[int, tuple[int, int]]:
        part.gossip.offer(ref(1100))
        (offer,) = part.sent()
        assert isinstance(offer, DigestOffer)
        return {digest.ref.id: (digest.topics_version, digest.links_version) for digest in offer.digests}

    assert set(offered()) == {ME, 700, 800, PREDECESSOR, 1100, 1200, 1300}
    part.gossip.learn((describe(1200, versions=(1, 5)),))
    assert offered()[1200] == (1, 5)
    part.gossip.learn((describe(5_000_000, (1, 2)),))
    assert 5_000_000 in offered(), "a backup now"
    part.ring.drop(1300)
    assert 1300 not in offered()


def test_a_node_rests_longer_and_longer_while_its_views_are_ready_and_no_longer_when_one_is_not() -> None:
    part = Part(ready_rounds=3)
    rests = []
    for _ in range(8):
        part.gossip.exchange()
        rests.append(part.gossip.rest)
    assert rests == [1, 1, 2, 4, 8, 8, 8, 8]
    assert max(rests) == LONGEST_REST
    part.views.follow([800], [])
    part.gossip.exchange()
    assert part.gossip.rest == 1


def test_a_view_that_is_ready_stays_so_while_it_gets_better_and_one_that_is_not_waits_on() -> None:
    part = Part(coverage=2, ready_rounds=3)
    part.views.next_round()
    part.gossip.learn((describe(5_000_000, (1, 2)),))
    assert part.views.shadows[PREDECESSOR].quiet == 0
    assert not part.views.is_ready(PREDECESSOR)
    for _ in range(3):
        part.gossip.exchange()
    assert part.views.is_ready(PREDECESSOR)
    assert part.views.is_unsettled()
    part.gossip.learn((describe(6_000_000, (1,)),))
    assert part.views.is_ready(PREDECESSOR)
    assert 6_000_000 in part.views.shadows[PREDECESSOR].backups


def test_whoever_asks_gets_the_descriptors_there_are() -> None:
    part = Part()
    part.gossip.on_want(DescriptorRequest(ref(1100), (PREDECESSOR, 4, ME)))
    (details,) = part.sent()
    assert isinstance(details, Descriptors)
    assert [descriptor.digest.ref.id for descriptor in details.descriptors] == [PREDECESSOR, ME]
