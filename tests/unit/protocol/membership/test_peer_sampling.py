"""Peer sampling: a small view that behaves like a uniform draw."""

from __future__ import annotations

from omen.protocol.context import Outbox
from omen.protocol.membership.peer_sampling import PeerSampling
from omen.protocol.messages.overlay import Shuffle, ShuffleReply
from unit.protocol.contexts import make_context, ref, sent

ME = 1000


def make_sampling(size: int = 4) -> tuple[PeerSampling, Outbox]:
    context = make_context(ME, sample_size=size, shuffle_size=3)
    return PeerSampling(context), context.out


def test_the_view_never_outgrows_its_size() -> None:
    sampling, _ = make_sampling()
    for node in range(20):
        sampling.add(ref(node))
    sampling.on_reply(30, ShuffleReply(tuple((ref(node), 0) for node in range(30, 40))))
    assert len(sampling.view) == 4


def test_a_shuffle_goes_to_the_one_not_heard_of_for_longest() -> None:
    sampling, out = make_sampling()
    for node in (1, 2, 3):
        sampling.add(ref(node))
    sampling.view[2] = (ref(2), 9)
    sampling.shuffle()
    ((to, message),) = sent(out)
    assert to == 2
    assert isinstance(message, Shuffle)
    assert message.entries[0] == (ref(ME), 0)
    assert 2 not in sampling.view


def test_given_away_entries_make_room_for_those_received() -> None:
    sampling, out = make_sampling(size=3)
    for node in (1, 2, 3):
        sampling.add(ref(node))
    sampling.on_shuffle(9, Shuffle(((ref(9), 0), (ref(8), 1))))
    ((to, reply),) = sent(out)
    assert to == 9
    assert isinstance(reply, ShuffleReply)
    assert {8, 9} <= set(sampling.view)
    assert len(sampling.view) == 3


def test_many_shuffles_spread_knowledge_evenly() -> None:
    """A ring of samples, each node knowing only the next three, becomes a near uniform draw."""
    count, size = 40, 8
    nodes: dict[int, tuple[PeerSampling, Outbox]] = {}
    for node in range(count):
        context = make_context(node, seed=node, sample_size=size, shuffle_size=4)
        nodes[node] = (PeerSampling(context), context.out)
        for step in (1, 2, 3):
            nodes[node][0].add(ref((node + step) % count))
    for _ in range(60):
        for node in range(count):
            sampling, out = nodes[node]
            sampling.shuffle()
            for to, message in sent(out):
                assert isinstance(message, Shuffle)
                nodes[to][0].on_shuffle(node, message)
                for back, reply in sent(nodes[to][1]):
                    assert isinstance(reply, ShuffleReply)
                    nodes[back][0].on_reply(to, reply)
    known = [sum(node in sampling.view for sampling, _ in nodes.values()) for node in range(count)]
    assert min(known) >= 2
    assert max(known) <= 4 * size
