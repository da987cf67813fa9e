"""What a node knows of its peers: only what is newer is learnt, and nothing of incarnations that have ended."""

from __future__ import annotations

from unit.protocol.contexts import describe, make_context

ME = 1000


def test_only_newer_descriptors_replace_what_is_known() -> None:
    known = make_context(ME, (1, 2)).peer_table
    assert known.learn(describe(5, (1,), versions=(2, 2)))
    assert not known.learn(describe(5, (9,), versions=(1, 2)))
    assert known.topics_of(5) == {1}
    assert known.learn(describe(5, (9,), versions=(3, 2)))
    assert known.learn(describe(5, (4,), incarnation=2))


def test_an_incarnation_declared_failed_is_refused_and_the_next_is_not() -> None:
    known = make_context(ME, (1, 2)).peer_table
    known.learn(describe(5, (1,)))
    known.declare_failed(5, 1, now=0)
    assert 5 not in known.known
    assert not known.learn(describe(5, (1,), versions=(9, 9)))
    assert known.learn(describe(5, (1,), incarnation=2))


def test_peers_of_no_use_are_forgotten() -> None:
    known = make_context(ME, (1, 2)).peer_table
    for node in range(10):
        known.learn(describe(node))
    known.retain([3, 4])
    assert sorted(known.known) == sorted(known.topic_sets) == [3, 4]
