"""SpiderCast's kernels and counts against the figures read literally."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.neighbours import Neighbours
from omen.sim.membership import Membership
from reference.spidercast import best_candidates, calc_k_uncovered, random_candidates

TOPICS = range(8)
INTERESTS = st.lists(st.frozensets(st.sampled_from(TOPICS), max_size=5), min_size=1, max_size=14)


def enrolled(interests: Iterable[frozenset[int]], share: float = 1.0, seed: int = 0) -> Membership:
    membership = Membership(seed, share)
    for node, topics in enumerate(interests):
        membership.put(Ref(node, 1, ""), sorted(topics))
    return membership


def chosen(membership: Membership, rule: str, uncovered: Iterable[int], excluded: Iterable[int], me: int) -> set[int]:
    """Everybody whom some word brings up."""
    view = membership.view_of(me)
    found = {view.choose(rule, sorted(uncovered), list(excluded), word) for word in range(40)}  # type: ignore[arg-type]
    assert found == {None} or None not in found
    return {ref.id for ref in found if ref is not None}


@settings(max_examples=150, deadline=None)
@given(INTERESTS, st.frozensets(st.sampled_from(TOPICS)), st.frozensets(st.integers(0, 13)), st.integers(0, 13))
def test_both_rules_draw_among_exactly_those_of_the_figure(
    interests: list[frozenset[int]], uncovered: frozenset[int], excluded: frozenset[int], me: int
) -> None:
    membership = enrolled(interests)
    view = dict(enumerate(interests))
    barred = excluded | {me}
    assert chosen(membership, "greedy", uncovered, excluded, me) == best_candidates(view, barred, uncovered)
    assert chosen(membership, "similar", uncovered, excluded, me) == best_candidates(view, barred, uncovered)
    assert chosen(membership, "random", uncovered, excluded, me) == random_candidates(view, barred, uncovered)
    assert chosen(membership, "anybody", (), excluded, me) == view.keys() - barred


@settings(max_examples=60, deadline=None)
@given(
    INTERESTS, st.lists(st.tuples(st.integers(0, 13), st.frozensets(st.sampled_from(TOPICS), max_size=5)), max_size=20)
)
def test_the_membership_table_follows_who_comes_goes_and_changes(
    interests: list[frozenset[int]], changes: list[tuple[int, frozenset[int]]]
) -> None:
    membership = enrolled(interests)
    view = dict(enumerate(interests))
    for node, topics in changes:
        version = membership.version
        if node in view and len(topics) == 0:
            membership.drop(node)
            del view[node]
        else:
            membership.put(Ref(node, 1, ""), sorted(topics))
            view[node] = topics
        assert membership.version > version
    for rule, expected in (("greedy", best_candidates), ("random", random_candidates)):
        assert chosen(membership, rule, TOPICS, (), 99) == expected(view, (), TOPICS)


@settings(max_examples=40, deadline=None)
@given(INTERESTS, st.integers(0, 2**32))
def test_a_partial_view_is_always_the_same_part_and_the_best_of_it_is_chosen(
    interests: list[frozenset[int]], seed: int
) -> None:
    membership = enrolled(interests, 0.5, seed)
    seen = chosen(membership, "anybody", (), (), 99)
    view = {node: interests[node] for node in seen}
    assert chosen(membership, "greedy", TOPICS, (), 99) == best_candidates(view, (), TOPICS)
    assert chosen(membership, "random", TOPICS, (), 99) == random_candidates(view, (), TOPICS)


def test_a_view_of_a_twentieth_holds_about_a_twentieth() -> None:
    membership = enrolled([frozenset({0})] * 2000, 0.05)
    view = membership.view_of(0)
    barred: list[int] = []
    while (found := view.choose("anybody", (), barred, 7)) is not None:
        barred.append(found.id)
    assert 70 <= len(barred) <= 130


def test_ties_are_broken_evenly() -> None:
    membership = enrolled([frozenset({1, 2})] * 5)
    words, draws = Random(1), np.zeros(5, int)
    for _ in range(2000):
        found = membership.view_of(0).choose("greedy", (1, 2), (), words.randrange(2**64))
        assert found is not None
        draws[found.id] += 1
    assert draws[0] == 0
    assert draws[1:].min() > 400


@settings(max_examples=150, deadline=None)
@given(
    st.frozensets(st.sampled_from(TOPICS)),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 6), st.none() | st.frozensets(st.sampled_from(TOPICS))), max_size=25),
)
def test_counted_coverage_is_that_of_figure_3(
    wanted: frozenset[int], times: int, changes: list[tuple[int, frozenset[int] | None]]
) -> None:
    neighbours = Neighbours(wanted, times)
    plain: dict[int, frozenset[int]] = {}
    for node, interest in changes:
        if interest is None:
            neighbours.remove(node)
            plain.pop(node, None)
        else:
            neighbours.add(Ref(node, 1, ""), 0, 0, interest, (0, 0, 0))
            plain[node] = interest
        assert neighbours.under_covered == calc_k_uncovered(wanted, plain, times)
        for other in plain:
            without = {name: topics for name, topics in plain.items() if name != other}
            assert neighbours.under_covered_without(other) == calc_k_uncovered(wanted, without, times)
    half = sorted(wanted)[: len(wanted) // 2]
    neighbours.want(half, times + 1)
    assert neighbours.under_covered == calc_k_uncovered(half, plain, times + 1)
