"""What nodes say of their links, as limits of a plan."""

from __future__ import annotations

from omen.kernels.engine import NO_LIMIT, LinkLimits
from omen.protocol.messages.base import EventKind, LinkRules
from omen.protocol.messages.overlay import EventId, ShadowReply
from omen.protocol.repair.link_rules import are_apart, limits_of
from omen.protocol.repair.shadow_set import Loss, Repair, to_bits
from unit.protocol.contexts import ref

LOST = EventId(100, 1, EventKind.LEAVE)


def no_engine(*_: object) -> list[tuple[int, int]]:
    raise AssertionError("the plain engine knows no rules")


def test_there_are_no_limits_where_nothing_is_said_or_all_stand_in_one_zone() -> None:
    assert limits_of([1, 2], {}, {}, 2.0) is None
    assert limits_of([1, 2], {1: LinkRules(zone="n"), 2: LinkRules(zone="n")}, {}, 2.0) is None
    assert limits_of([1, 2], {1: LinkRules(forbid=(77,))}, {}, 2.0) is None


def test_caps_bans_and_zones_become_limits() -> None:
    rules = {10: LinkRules(3, "n", (30, 77)), 20: LinkRules(2), 30: LinkRules(zone="s")}
    assert limits_of([10, 20, 30], rules, {10: 1, 20: 4}, 2.0) == LinkLimits(
        [2, -2, NO_LIMIT], ["n", "", "s"], frozenset({(0, 2)}), 2.0
    )


def test_one_of_two_is_enough_to_forbid_a_link() -> None:
    assert are_apart(1, LinkRules(forbid=(2,)), 2, None)
    assert are_apart(1, None, 2, LinkRules(forbid=(1,)))
    assert not are_apart(1, LinkRules(forbid=(3,)), 2, LinkRules(4))


def answer(node: int, topics: tuple[int, ...], degree: int, rules: LinkRules | None, *links: int) -> ShadowReply:
    bits = to_bits((1,), topics)
    named = tuple((other, bits) for other in links)
    return ShadowReply(LOST, 1, ref(node), 1, bits, b"\0", degree, named, True, False, rules=rules)


def loss(*answers: ShadowReply) -> Repair:
    repair = Repair(LOST, None, {1})
    repair.add_loss(Loss(LOST, {1}, {one.me.id: one.me for one in answers}))
    repair.asked = (1,)
    repair.answers = {one.me.id: one for one in answers}
    return repair


def test_a_link_to_a_node_that_leaves_makes_room() -> None:
    capped = LinkRules(2)
    repair = loss(answer(1, (1,), 2, capped, 100, 8), answer(2, (1,), 2, capped, 9, 10), answer(3, (1,), 1, None))
    assert repair.plan(no_engine, 3.0, True, 2.0) == [(1, 3), (2, 3)], "node 2 alone is full, and has to be exceeded"


def test_who_stands_around_and_has_room_comes_in_before_a_cap_is_exceeded() -> None:
    repair = loss(answer(1, (1,), 1, LinkRules(1), 8), answer(2, (1,), 0, None))
    assert repair.plan(no_engine, 3.0, True, 2.0) == [(1, 2)]
    repair.outer = {8: answer(8, (1,), 1, None, 1)}
    assert repair.plan(no_engine, 3.0, True, 2.0) == [(2, 8)]
    assert repair.members[8] == ref(8)


def test_a_forbidden_pair_is_led_around_and_one_that_never_comes_about_too() -> None:
    barred = LinkRules(forbid=(2,))
    repair = loss(answer(1, (1,), 0, barred), answer(2, (1,), 0, None), answer(3, (1,), 0, None))
    assert repair.plan(no_engine, 3.0, True, 2.0) == [(1, 3), (2, 3)]
    repair.open_links = {(1, 3): set()}
    for _ in range(2):
        repair.note_in_vain()
    assert (1, 3) in repair.plan(no_engine, 3.0, True, 2.0), "there is no other way"
    assert (1, 2) not in repair.plan(no_engine, 3.0, True, 2.0)


def test_a_newcomer_finds_nobody_in_those_that_forbid_it() -> None:
    repair = Repair(EventId(5, 1, EventKind.JOIN), ref(5), {1})
    repair.asked = (1,)
    repair.members = {1: ref(1)}
    repair.answers = {1: answer(1, (1,), 0, LinkRules(forbid=(5,)))}
    assert repair.uncovered() == [1]
    repair.members[2], repair.answers[2] = ref(2), answer(2, (1,), 0, None)
    assert repair.uncovered() == []
    assert repair.plan(no_engine, 3.0, True, 2.0) == [(2, 5)]
    repair.centre_rules = LinkRules(forbid=(2,))
    assert repair.uncovered() == [1]
