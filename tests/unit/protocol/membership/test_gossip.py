"""Gossip by itself: what is asked for, what is passed over, and when a node rests."""

from __future__ import annotations

from omen.protocol.events import SECOND
from omen.protocol.membership.doubts import ASKED_AT_MOST
from omen.protocol.membership.gossip import LINKS_BEHIND, LONGEST_REST, Gossip
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.membership.ring import Ring
from omen.protocol.messages.overlay import (
    Descriptor,
    DescriptorRequest,
    Descriptors,
    Digest,
    DigestOffer,
    Message,
    encode,
)
from omen.protocol.repair.links import Links
from omen.protocol.repair.views import Views
from unit.protocol.contexts import describe, make_context, ref
from unit.protocol.contexts import sent as sent_to

ME, PREDECESSOR = 1000, 900


class Part:
    """A node's gossip and what it works on. It follows one predecessor, which wants topics 1 and 2."""

    def __init__(self, coverage: int = 1, ready_rounds: int = 3) -> None:
        context = make_context(ME, (7,), resilience=1, coverage=coverage, ready_rounds=ready_rounds)
        self.peer_table, self.out, self.clock = context.peer_table, context.out, context.clock
        self.ring, self.views, self.links = Ring(context), Views(context), Links(context)
        self.gossip = Gossip(context, self.ring, self.views, self.links, PeerSampling(context))
        for node in (700, 800, PREDECESSOR, 1100, 1200, 1300):  # L and the spares, on both sides: the ring is full
            self.learn(describe(node, (1, 2) if node == PREDECESSOR else ()))
        self.views.follow([PREDECESSOR], [])
        self.views.select_view()
        self.sent()

    def sent(self) -> list[Message]:
        return [message for _, message in sent_to(self.out)]

    def learn(self, *descriptors: Descriptor) -> None:
        """These come in; nothing about this node or about later incarnations is found in them."""
        assert not list(self.gossip.learn(descriptors))

    def hear(self, *digests: Digest) -> tuple[int, ...]:
        """An offer that answers one of ours; which descriptors are asked for then."""
        offer = DigestOffer((self.peer_table.known[1100].digest, *digests), (), reply=True)
        assert not list(self.gossip.on_offer(1100, offer))
        return tuple(node for message in self.sent() if isinstance(message, DescriptorRequest) for node in message.ids)


def test_a_node_that_may_cover_what_is_lacking_is_asked_for_until_its_topics_were_seen() -> None:
    part = Part()
    digest = Digest(ref(5_000_000), 1, 1)
    assert part.hear(digest) == part.hear(digest) == (5_000_000,), "the answer may have been lost"
    part.learn(describe(5_000_000, (3,)))
    part.peer_table.retain(part.ring.members)
    assert part.hear(digest) == ()
    assert part.hear(Digest(ref(5_000_000), 2, 1)) == (5_000_000,), "other topics"
    assert part.hear(Digest(ref(5_000_000, 2), 1, 1)) == (5_000_000,), "another incarnation"


def test_a_node_named_without_versions_is_looked_at_once_per_incarnation() -> None:
    part = Part()
    assert part.hear(Digest(ref(5_000_000), 0, 0)) == (5_000_000,)
    part.learn(describe(5_000_000, (3,)))
    part.peer_table.retain(part.ring.members)
    assert part.hear(Digest(ref(5_000_000), 0, 0)) == ()
    assert part.hear(Digest(ref(5_000_000, 2), 0, 0)) == (5_000_000,)


def test_what_was_of_no_use_is_looked_at_again_when_ring_or_links_have_changed() -> None:
    part = Part()
    part.learn(describe(5_000_000, (1, 2)))
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
    part.learn(describe(backup, (1, 2)))
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
    part.learn(describe(1200, versions=(1, 2)))
    assert part.hear(Digest(ref(1200), 1, 2)) == part.hear(Digest(ref(1200), 1, 1)) == ()


def test_an_offer_holds_what_is_known_when_it_is_made() -> None:
    part = Part()

    def offered() -> dict[int, tuple[int, int]]:
        part.gossip.offer(ref(1100))
        (offer,) = part.sent()
        assert isinstance(offer, DigestOffer)
        return {digest.ref.id: (digest.topics_version, digest.links_version) for digest in offer.digests}

    assert set(offered()) == {ME, 700, 800, PREDECESSOR, 1100, 1200, 1300}
    part.learn(describe(1200, versions=(1, 5)))
    assert offered()[1200] == (1, 5)
    part.learn(describe(5_000_000, (1, 2)))
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
    part.learn(describe(5_000_000, (1, 2)))
    assert part.views.shadows[PREDECESSOR].quiet == 0
    assert not part.views.is_ready(PREDECESSOR)
    for _ in range(3):
        part.gossip.exchange()
    assert part.views.is_ready(PREDECESSOR)
    assert part.views.is_unsettled()
    part.learn(describe(6_000_000, (1,)))
    assert part.views.is_ready(PREDECESSOR)
    assert 6_000_000 in part.views.shadows[PREDECESSOR].backups


def test_a_peer_that_asks_gets_the_descriptors_there_are() -> None:
    part = Part()
    part.gossip.on_descriptor_request(1100, DescriptorRequest(ref(1100), (PREDECESSOR, 4, ME)))
    (details,) = part.sent()
    assert isinstance(details, Descriptors)
    assert [descriptor.digest.ref.id for descriptor in details.descriptors] == [PREDECESSOR, ME]


def test_descriptors_go_in_parts_that_fit_into_a_frame() -> None:
    """Before: all in one message, 9 MB for 50 nodes of 20,000 topics, which the receiver refuses again and again."""
    part = Part()
    nodes = range(2000, 2050)
    for node in nodes:
        part.learn(describe(node, range(1 << 62, (1 << 62) + 20_000)))
    part.gossip.on_descriptor_request(1100, DescriptorRequest(ref(1100), tuple(nodes)))
    messages = part.sent()
    assert max(len(encode(message)) for message in messages) < 1 << 20
    given = [
        one.digest.ref.id for message in messages if isinstance(message, Descriptors) for one in message.descriptors
    ]
    assert given == list(nodes)


def test_a_peer_is_given_so_many_topics_in_a_time() -> None:
    part = Part()
    part.learn(describe(2000, range(1 << 62, (1 << 62) + 50_000)))
    for _ in range(1_000):
        part.gossip.on_descriptor_request(1100, DescriptorRequest(ref(1100), (2000,)))
    assert 1 < len(part.sent()) < 50


BACKUP = 5_000_000


class Doubting(Part):
    """A node whose view holds a backup, which nothing but gossip speaks to. Rounds are a second apart."""

    def __init__(self) -> None:
        super().__init__()
        self.learn(describe(BACKUP, (1, 2)))
        assert self.views.shadows[PREDECESSOR].backups == [BACKUP]

    def told(self, *ended: int) -> None:
        offer = DigestOffer((self.peer_table.known[1100].digest,), (), True, ended)
        assert not list(self.gossip.on_offer(1100, offer))
        self.sent()

    def round(self, answers: bool = False) -> list[int]:
        """Whom it turns to."""
        self.clock.now += SECOND
        self.gossip.exchange()
        partners = [to for to, message in sent_to(self.out) if isinstance(message, DigestOffer)]
        if answers and BACKUP in partners:
            offer = DigestOffer((self.peer_table.known[BACKUP].digest,), (), True)
            assert not list(self.gossip.on_offer(BACKUP, offer))
        return partners


def test_a_backup_that_does_not_answer_is_forgotten_after_three_exchanges() -> None:
    part = Doubting()
    asked = 0
    while BACKUP in part.peer_table.known:
        asked += part.round().count(BACKUP)
    assert asked == ASKED_AT_MOST
    assert part.views.shadows[PREDECESSOR].backups == []


def test_a_backup_that_answers_is_kept_whatever_others_say() -> None:
    part = Doubting()
    for _ in range(50):
        part.told(BACKUP)
        part.round(answers=True)
    assert part.views.shadows[PREDECESSOR].backups == [BACKUP]


def test_the_word_that_a_backup_has_ended_brings_it_to_its_turn_in_every_other_exchange() -> None:
    part = Doubting()
    part.told(BACKUP, 1100, 77)
    rounds = [part.round() for _ in range(6)]
    assert [BACKUP in partners for partners in rounds[::2]] == [True, True, True]
    assert part.round(), "the last one has had its time to answer"
    assert BACKUP not in part.peer_table.known
    assert 1100 in part.ring.members, "watched by the failure detector, and left to it"


def test_who_names_a_node_that_has_ended_is_told_so() -> None:
    part = Doubting()
    part.peer_table.declare_failed(BACKUP, 1, part.clock.now)
    digests = (part.peer_table.known[1100].digest, Digest(ref(BACKUP), 1, 1), Digest(ref(1200), 1, 1))
    assert not list(part.gossip.on_offer(1100, DigestOffer(digests, (), reply=False)))
    (answer,) = (message for message in part.sent() if isinstance(message, DigestOffer))
    assert answer.ended == (BACKUP,)
    anew = (digests[0], Digest(ref(BACKUP, 2), 1, 1))
    assert not list(part.gossip.on_offer(1100, DigestOffer(anew, (), reply=False)))
    assert [message.ended for message in part.sent() if isinstance(message, DigestOffer)] == [()]


def test_a_backup_that_was_forgotten_is_taken_again_when_its_time_is_over() -> None:
    part = Doubting()
    while BACKUP in part.peer_table.known:
        part.round()
    digest = Digest(ref(BACKUP), 1, 1)
    assert part.hear(digest) == (), "another's word does not bring it back at once"
    part.clock.now += 61 * SECOND
    assert part.hear(digest) == (BACKUP,), "nor is it passed over for ever"
    part.learn(describe(BACKUP, (1, 2)))
    assert part.views.shadows[PREDECESSOR].backups == [BACKUP]


def test_what_others_say_has_ended_does_not_keep_a_node_from_its_rest() -> None:
    """One message of 600 bytes made a node swap digests every half second for a minute."""
    part = Doubting()
    for _ in range(8):
        part.told(BACKUP)
        part.round(answers=True)
    assert part.gossip.rest == LONGEST_REST
