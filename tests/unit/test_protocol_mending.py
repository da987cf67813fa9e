"""Backup rules, the pieces a repair sees, and what is asked of a successor."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.maintain.choosing import choose_links
from omen.protocol.config import Config
from omen.protocol.messages.overlay import EventId, Ref, ShadowReply
from omen.protocol.node import OmenNode
from omen.protocol.repair.backups import RULES, build_backups
from omen.protocol.repair.shadow_set import ASKING, Loss, Repair, common_positions, positions, to_bits

LOST = EventId(100, 1, "leave")


def ref(node: int) -> Ref:
    return Ref(node, 1, "")


def answer(
    mending: Repair, node: int, topics: set[int], links: dict[int, set[int]], waits: frozenset[int] = frozenset()
) -> None:
    """Let a member say what it and its neighbours have."""
    mending.members[node] = ref(node)
    bits = tuple((other, to_bits(mending.asked, theirs)) for other, theirs in sorted(links.items()))
    mine, unsettled = to_bits(mending.asked, topics), to_bits(mending.asked, waits)
    mending.answers[node] = ShadowReply(mending.event, 1, ref(node), 1, mine, unsettled, len(links), bits, False, False)


def loss(topics: tuple[int, ...], former: set[int]) -> Repair:
    mending = Repair(LOST, None, set(topics))
    mending.add_loss(Loss(LOST, set(topics), {node: ref(node) for node in former}))
    mending.asked = topics
    return mending


def plan(mending: Repair, halo: bool = True) -> list[tuple[int, int]]:
    return mending.plan(choose_links, 3.0, halo)


interests = st.dictionaries(st.integers(1, 30), st.frozensets(st.integers(0, 7), min_size=1), max_size=12)


@pytest.mark.parametrize("rule", RULES)
@given(topics=st.frozensets(st.integers(0, 7), min_size=1), candidates=interests, coverage=st.integers(0, 4))
def test_backups_cover_each_topic_as_often_as_asked_or_with_all_there_are(
    rule: str, topics: frozenset[int], candidates: dict[int, frozenset[int]], coverage: int
) -> None:
    backups = build_backups(topics, candidates, {}, coverage, rule, random.Random(1))
    assert len(set(backups)) == len(backups)
    assert all(candidates[node] & topics for node in backups), "individual commitment"
    for topic in topics:
        all_there_are = sum(topic in theirs for theirs in candidates.values())
        assert sum(topic in candidates[node] for node in backups) >= min(coverage, all_there_are)


@pytest.mark.parametrize("rule", ["pd-weight", "greedy-weight"])
def test_rules_by_weight_prefer_who_has_little_to_do(rule: str) -> None:
    candidates = {node: frozenset({1}) for node in (1, 2, 3)}
    assert build_backups({1}, candidates, {1: 9, 2: 1, 3: 5}, 1, rule, random.Random(1)) == [2]


@pytest.mark.parametrize("rule", ["pd-cover", "greedy-cover"])
def test_rules_by_cover_prefer_who_covers_most(rule: str) -> None:
    candidates = {1: frozenset({1}), 2: frozenset({1, 2, 3}), 3: frozenset({2, 3})}
    assert build_backups({1, 2, 3}, candidates, {2: 99}, 1, rule, random.Random(1)) == [2]


@given(st.lists(st.integers(0, 50), unique=True), st.sets(st.integers(0, 50)))
def test_bits_name_the_asked_topics_one_has(asked: list[int], topics: set[int]) -> None:
    bits = to_bits(asked, topics)
    assert [asked[position] for position in positions(bits)] == [topic for topic in asked if topic in topics]
    assert common_positions(bits, bits) == positions(bits)


def test_pieces_that_a_loss_broke_off_are_joined() -> None:
    mending = loss((1,), {1, 2})
    answer(mending, 1, {1}, {})
    answer(mending, 2, {1}, {})
    assert plan(mending) == [(1, 2)]


def test_pieces_still_joined_round_the_loss_need_no_link() -> None:
    mending = loss((1,), {1, 2})
    answer(mending, 1, {1}, {9: {1}})
    answer(mending, 2, {1}, {9: {1}})
    assert plan(mending) == []
    assert plan(mending, halo=False) == [(1, 2)], "the literal reading sees links inside the shadow set alone"


def test_a_neighbour_without_the_topic_joins_nothing() -> None:
    mending = loss((1, 2), {1, 2})
    answer(mending, 1, {1}, {9: {2}})
    answer(mending, 2, {1}, {9: {2}})
    assert plan(mending) == [(1, 2)]


def test_links_to_what_is_lost_join_nothing() -> None:
    mending = loss((1,), {1, 2})
    for node in (1, 2):
        answer(mending, node, {1}, {100: {1}})
    assert plan(mending) == [(1, 2)]


def test_a_backup_is_used_only_where_its_piece_holds_a_former_neighbour() -> None:
    mending = loss((1,), {1, 2})
    answer(mending, 1, {1}, {3: {1}, 7: {1}, 8: {1}})
    answer(mending, 2, {1}, {})
    answer(mending, 3, {1}, {1: {1}})
    answer(mending, 4, {1}, {})
    links = plan(mending)
    assert links == [(2, 3)], "the backup on 1's side has fewer links than 1"


def test_a_linked_loss_brings_its_former_neighbours_in() -> None:
    mending = loss((1,), {1, 50})
    mending.add_loss(Loss(EventId(50, 1, "leave"), {1, 2}, {2: ref(2), 100: ref(100)}))
    assert set(mending.members) == mending.former == {1, 2}
    assert mending.topics == {1, 2}


def newcomer(node: int, topics: tuple[int, ...]) -> Repair:
    mending = Repair(EventId(node, 1, "join"), ref(node), set(topics))
    mending.asked = topics
    return mending


def test_a_newcomer_is_linked_for_each_topic_and_only_to_itself() -> None:
    mending = newcomer(5, (1, 2))
    answer(mending, 1, {1}, {})
    answer(mending, 2, {2}, {})
    answer(mending, 3, {2}, {})
    assert sorted(plan(mending)) == [(1, 5), (2, 5)]
    assert mending.uncovered() == []


def test_of_two_newcomers_only_the_higher_counts_on_the_lower() -> None:
    higher = newcomer(5, (1,))
    answer(higher, 3, {1}, {}, frozenset({1}))
    assert higher.uncovered() == [1], "somebody who is linked already may be found by a walk"
    higher.walked = True
    assert higher.uncovered() == []
    assert plan(higher) == [(3, 5)]
    lower = newcomer(3, (1,))
    answer(lower, 5, {1}, {}, frozenset({1}))
    lower.walked = True
    assert lower.uncovered() == [1]
    assert lower.is_outrun()
    assert plan(lower) == []


def test_a_newcomer_that_waits_in_another_topic_can_take_one_in() -> None:
    mending = newcomer(3, (1, 2))
    answer(mending, 5, {1, 2}, {}, frozenset({2}))
    assert mending.uncovered() == [2]
    assert mending.is_outrun()
    answer(mending, 6, {2}, {})
    assert mending.uncovered() == []
    assert not mending.is_outrun()


def test_a_member_that_answers_in_its_next_life_is_counted_on_in_that_one() -> None:
    """Others refuse the one that has ended, so a link planned for it would be asked for without end."""
    core = OmenNode(Ref(100, 1, ""), (1,), Config(), random.Random(1), choose_links)
    core.start(0)
    lost = EventId(90, 1, "leave")
    mending = Repair(lost, None, {1}, members={7: Ref(7, 1, ""), 8: Ref(8, 1, "")}, former={7, 8}, stage=ASKING)
    mending.losses[90] = Loss(lost, {1})
    mending.asked = (1,)
    core.coordinator.repairer.repair = mending
    bits = to_bits((1,), (1,))
    core.coordinator.repairer.on_answer(ShadowReply(lost, 0, Ref(7, 2, ""), 1, bits, b"\0", 1, (), False, False))
    assert mending.members[7] == Ref(7, 2, "")
    core.coordinator.repairer.on_answer(ShadowReply(lost, 0, Ref(8, 1, ""), 1, bits, b"\0", 1, (), True, False))
    assert mending.members[8] == Ref(8, 1, "")
