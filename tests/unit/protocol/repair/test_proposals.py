"""Ends of planned links hear of these as fast as they may act on them."""

from __future__ import annotations

from collections import Counter

from omen.protocol.context import NodeContext
from omen.protocol.events import SECOND, NodeId
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import EventId, LinkProposal
from omen.protocol.repair.links import PLANNED_AT_MOST
from omen.protocol.repair.proposals import LINKS_AT_ONCE, PROPOSALS_AT_ONCE, PROPOSALS_PER_S, Proposals
from omen.protocol.repair.shadow_set import Repair
from omen.protocol.validation import FORWARDS_AT_ONCE, FORWARDS_PER_S
from unit.protocol.contexts import make_context, ref, sent

HUB = 9_000


def planned(others: int) -> tuple[NodeContext, Proposals, Repair]:
    """A newcomer that so many others are to be linked to."""
    context = make_context(100, (1,))
    repair = Repair(EventId(HUB, 1, EventKind.JOIN), ref(HUB), {1})
    repair.members = {node: ref(node) for node in range(others)}
    repair.open_links = {(node, HUB): set() for node in range(others)}
    return context, Proposals(context), repair


def told(context: NodeContext) -> Counter[NodeId]:
    return Counter(to for to, message in sent(context.out) if isinstance(message, LinkProposal))


def make_all(repair: Repair) -> int:
    """Both ends have confirmed what is under way."""
    made = sorted(repair.under_way)
    for pair in made:
        del repair.open_links[pair]
    repair.under_way.clear()
    return len(made)


def test_an_end_hears_of_so_many_links_at_a_time_and_only_those_can_be_in_vain() -> None:
    context, proposals, repair = planned(100)
    proposals.send(repair)
    assert told(context)[HUB] == LINKS_AT_ONCE < PLANNED_AT_MOST
    assert not proposals.send_more(repair)
    repair.note_in_vain()
    assert sorted(repair.in_vain) == [(node, HUB) for node in range(LINKS_AT_ONCE)]


def test_the_next_link_is_told_of_as_soon_as_one_has_come_up() -> None:
    context, proposals, repair = planned(100)
    proposals.send(repair)
    told(context)
    del repair.open_links[7, HUB]
    repair.under_way.discard((7, HUB))
    assert proposals.send_more(repair)
    assert told(context) == {HUB: 1, LINKS_AT_ONCE: 1}


def test_an_end_hears_of_no_more_links_than_it_pays_for_and_of_all_in_the_end() -> None:
    context, proposals, repair = planned(1000)
    made = 0
    for second in range(20):
        context.clock.now = second * SECOND
        before = made
        while proposals.send_more(repair):
            made += make_all(repair)
        assert made <= PROPOSALS_AT_ONCE + second * PROPOSALS_PER_S, "the budget of the end"
        assert made == 1000 or made - before >= PROPOSALS_PER_S - 1, "and all of it is used"
    assert made == 1000
    assert told(context)[HUB] == 1000
    assert PROPOSALS_AT_ONCE < FORWARDS_AT_ONCE and PROPOSALS_PER_S < FORWARDS_PER_S


def test_links_of_other_ends_are_not_held_up_by_one_that_has_no_budget_left() -> None:
    context, proposals, repair = planned(1000)
    while proposals.send_more(repair):
        make_all(repair)
    repair.open_links[3, 5] = set()
    assert proposals.send_more(repair)
    assert told(context)[3] == 2, "one to the newcomer, and this one"
