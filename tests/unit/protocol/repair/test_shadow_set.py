"""The state of a repair: the pieces that the shadow set's replies show, and the links that follow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omen.maintain.choosing import choose_links
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, Ref, ShadowReply
from omen.protocol.repair.around import GIVEN_UP
from omen.protocol.repair.shadow_set import Loss, Repair, common_positions, positions, to_bits
from unit.protocol.contexts import ref

LOST = EventId(100, 1, EventKind.LEAVE)


def answer(
    repair: Repair, node: int, topics: set[int], links: dict[int, set[int]], waits: frozenset[int] = frozenset()
) -> None:
    """Let a member say what it and its neighbours have."""
    repair.members[node] = ref(node)
    bits = tuple((other, to_bits(repair.asked, theirs)) for other, theirs in sorted(links.items()))
    mine, unsettled = to_bits(repair.asked, topics), to_bits(repair.asked, waits)
    repair.answers[node] = ShadowReply(repair.event, 1, ref(node), 1, mine, unsettled, len(links), bits, False, False)


def loss(topics: tuple[int, ...], former: set[int]) -> Repair:
    repair = Repair(LOST, None, set(topics))
    repair.add_loss(Loss(LOST, set(topics), {node: ref(node) for node in former}))
    repair.asked = topics
    return repair


def plan(repair: Repair, halo: bool = True) -> list[tuple[int, int]]:
    return repair.plan(choose_links, 3.0, halo)


@given(st.lists(st.integers(0, 50), unique=True), st.sets(st.integers(0, 50)))
def test_bits_name_the_asked_topics_one_has(asked: list[int], topics: set[int]) -> None:
    bits = to_bits(asked, topics)
    assert [asked[position] for position in positions(bits)] == [topic for topic in asked if topic in topics]
    assert common_positions(bits, bits) == positions(bits)


def test_pieces_that_a_loss_broke_off_are_joined() -> None:
    repair = loss((1,), {1, 2})
    answer(repair, 1, {1}, {})
    answer(repair, 2, {1}, {})
    assert plan(repair) == [(1, 2)]


def test_a_link_that_nothing_goes_around_is_planned_again_and_again_and_then_given_up() -> None:
    repair = loss((1,), {1, 2})
    answer(repair, 1, {1}, {})
    answer(repair, 2, {1}, {})
    for _ in range(GIVEN_UP):
        assert plan(repair) == [(1, 2)]
        repair.open_links = {(1, 2): set()}
        repair.under_way = {(1, 2)}
        repair.note_in_vain()
    assert plan(repair) == []


def test_pieces_still_joined_round_the_loss_need_no_link() -> None:
    repair = loss((1,), {1, 2})
    answer(repair, 1, {1}, {9: {1}})
    answer(repair, 2, {1}, {9: {1}})
    assert plan(repair) == []
    assert plan(repair, halo=False) == [(1, 2)], "the literal reading sees links inside the shadow set alone"


def test_a_neighbour_without_the_topic_joins_nothing() -> None:
    repair = loss((1, 2), {1, 2})
    answer(repair, 1, {1}, {9: {2}})
    answer(repair, 2, {1}, {9: {2}})
    assert plan(repair) == [(1, 2)]


def test_links_to_what_is_lost_join_nothing() -> None:
    repair = loss((1,), {1, 2})
    for node in (1, 2):
        answer(repair, node, {1}, {100: {1}})
    assert plan(repair) == [(1, 2)]


def test_a_backup_is_used_only_where_its_piece_holds_a_former_neighbour() -> None:
    repair = loss((1,), {1, 2})
    answer(repair, 1, {1}, {3: {1}, 7: {1}, 8: {1}})
    answer(repair, 2, {1}, {})
    answer(repair, 3, {1}, {1: {1}})
    answer(repair, 4, {1}, {})
    links = plan(repair)
    assert links == [(2, 3)], "the backup on 1's side has fewer links than 1"


def test_a_linked_loss_brings_its_former_neighbours_in() -> None:
    repair = loss((1,), {1, 50})
    repair.add_loss(Loss(EventId(50, 1, EventKind.LEAVE), {1, 2}, {2: ref(2), 100: ref(100)}))
    assert set(repair.members) == repair.former == {1, 2}
    assert repair.topics == {1, 2}


def test_a_node_that_has_begun_anew_is_a_former_neighbour_beside_the_loss_of_its_first_incarnation() -> None:
    """World 70715: it repaired a loss, was linked to its own earlier one, and left itself out."""
    me = Ref(50, 2, "there")
    repair = Repair(LOST, None, {1})
    repair.add_loss(Loss(LOST, {1}, {50: me}))
    repair.add_loss(Loss(EventId(50, 1, EventKind.LEAVE), {1}, {1: ref(1), 100: ref(100)}))
    assert repair.members == {50: me, 1: ref(1)}
    assert repair.former == {1, 50}
    question = repair.question(me, lambda lost: lost.id == 100 or lost.incarnation < me.incarnation)
    assert {(lost.id, lost.incarnation) for lost in question.lost} == {(100, 1), (50, 1)}
    assert question.fading == ()
    repair.asked = (1,)
    answer(repair, 50, {1}, {})
    answer(repair, 1, {1}, {50: {1}})
    assert plan(repair) == [(1, 50)], "the link that 1 names is to the incarnation that has ended"
    answer(repair, 50, {1}, {1: {1}})
    assert plan(repair) == []


def newcomer(node: int, topics: tuple[int, ...]) -> Repair:
    repair = Repair(EventId(node, 1, EventKind.JOIN), ref(node), set(topics))
    repair.asked = topics
    return repair


def test_a_newcomer_is_linked_for_each_topic_and_only_to_itself() -> None:
    repair = newcomer(5, (1, 2))
    answer(repair, 1, {1}, {})
    answer(repair, 2, {2}, {})
    answer(repair, 3, {2}, {})
    assert sorted(plan(repair)) == [(1, 5), (2, 5)]
    assert repair.uncovered() == []


def test_of_two_newcomers_only_the_higher_counts_on_the_lower() -> None:
    higher = newcomer(5, (1,))
    answer(higher, 3, {1}, {}, frozenset({1}))
    assert higher.uncovered() == [1], "a node that is linked already may be found by a walk"
    higher.walks_over = True
    assert higher.uncovered() == []
    assert plan(higher) == [(3, 5)]
    lower = newcomer(3, (1,))
    answer(lower, 5, {1}, {}, frozenset({1}))
    lower.walks_over = True
    assert lower.uncovered() == [1]
    assert lower.is_outrun()
    assert plan(lower) == []


def test_a_newcomer_that_waits_in_another_topic_can_take_one_in() -> None:
    repair = newcomer(3, (1, 2))
    answer(repair, 5, {1, 2}, {}, frozenset({2}))
    assert repair.uncovered() == [2]
    assert repair.is_outrun()
    answer(repair, 6, {2}, {})
    assert repair.uncovered() == []
    assert not repair.is_outrun()


def test_a_link_between_two_nodes_that_were_heard_counts_only_if_both_name_it() -> None:
    repair = loss((1,), {7, 8})
    answer(repair, 7, {1}, {8: {1}})
    answer(repair, 8, {1}, {})
    assert plan(repair) == [(7, 8)]
    answer(repair, 8, {1}, {7: {1}})
    assert plan(repair) == []


def test_a_loss_that_is_linked_to_one_not_known_in_full_is_not_claimed() -> None:
    """World 40032144."""

    def event(node: int) -> EventId:
        return EventId(node, 1, EventKind.LEAVE)

    repair = loss((1,), {1})
    repair.add_loss(Loss(event(50), {1}, {1: ref(1)}))
    repair.add_loss(Loss(event(60), {1}, {2: ref(2), 70: ref(70)}))
    assert repair.claimed() == [LOST, event(50), event(60)]
    repair.losses[70] = Loss(event(70), {1}, known=False)
    assert repair.claimed() == [LOST, event(50)]
    repair.losses[70].neighbours[50] = ref(50)
    assert repair.claimed() == [LOST]
