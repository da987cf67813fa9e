"""Figs. 4 and 5 of SpiderCast: each line of the pseudo-code, in the paper's numbering, has a test named after it."""

from __future__ import annotations

import pytest

from omen.protocol.events import PeerLost
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectOk,
    Leave,
    Redirect,
)
from omen.protocol.spidercast.task import MaintainTimer
from unit.protocol.spidercast.spiders import ME, Bench, covered, full, ref


def test_fig4_01_02_03_a_connect_is_accepted_below_l_max_and_margin() -> None:
    bench = Bench({1})
    for node in range(11, 19):
        assert bench.kinds(bench.connected_by(node, [1])) == ["ConnectOk"]
    assert len(bench.neighbours()) == 3 + 5
    assert bench.kinds(bench.connected_by(30, [1])) == ["Redirect"]


def test_fig4_04_05_the_target_of_a_covered_node_rises_by_one_up_to_l_max() -> None:
    bench = Bench({1, 2})
    covered(bench)
    for number in range(6):
        bench.connected_by(20 + number, [1])
    assert bench.task.target == 6


def test_fig4_04_it_does_not_where_the_degree_is_a_margin_above_it() -> None:
    bench = Bench({1, 2}, margin=0)
    covered(bench)
    bench.connected_by(20, [1])
    assert (bench.task.degree, bench.task.target) == (4, 3)


def test_fig4_06_07_only_neighbours_below_their_target_and_margin_are_named() -> None:
    bench = Bench({1})
    full(bench, n12=13, n13=14)
    ((to, message),) = bench.connected_by(30, [1])
    assert (to, message) == (30, Redirect(0, ref(12)))


def test_fig4_08_the_one_that_shares_most_with_the_asker_is_named() -> None:
    bench = Bench({1})
    full(bench, n12=1, n15=1, n17=1)
    assert bench.connected_by(30, [1, 2]) == [(30, Redirect(0, ref(15)))]


def test_fig4_08_ties_are_broken_randomly() -> None:
    bench = Bench({1})
    full(bench, n12=1, n17=1)
    assert {bench.connected_by(30, [1])[0][1].other.id for _ in range(40)} == {12, 17}


def test_fig4_09_where_no_node_can_be_named_the_redirect_says_so() -> None:
    bench = Bench({1})
    full(bench)
    assert bench.connected_by(30, [1]) == [(30, Redirect(0, None))]
    assert bench.hear(30, Redirect(0, None)) == []
    assert bench.task.redirected == ()


def test_fig4_10_11_a_redirect_is_remembered() -> None:
    bench = Bench({1})
    bench.hear(5, Redirect(0, ref(7)))
    bench.hear(5, Redirect(0, ref(8)))
    assert set(bench.task.redirected) == {7, 8}


def test_fig4_12_13_14_connect_ok_makes_a_neighbour() -> None:
    bench = Bench({1})
    bench.gets_ok(5, [1], degree=4, target=7)
    neighbour = bench.task.neighbours[5]
    assert (neighbour.degree, neighbour.target, neighbour.interest) == (4, 7, frozenset({1}))


def test_fig4_15_16_and_the_target_of_a_covered_node_rises() -> None:
    bench = Bench({1, 2})
    covered(bench)
    bench.gets_ok(5, [1])
    assert bench.task.target == 4


def test_fig4_17_18_a_connect_ok_too_many_is_answered_with_leave() -> None:
    bench = Bench({1})
    full(bench)
    assert bench.gets_ok(30, [1]) == [(30, Leave(0, 1))]
    assert 30 not in bench.neighbours()


def test_fig4_19_20_leave_removes_the_neighbour() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1])
    bench.hear(11, Leave(0, 1))
    assert bench.neighbours() == set()


def test_fig4_21_22_23_24_25_a_disconnect_is_granted_where_nothing_is_lost() -> None:
    bench = Bench({1})
    covered(bench, 4)
    assert bench.hear(11, Disconnect(0, 1)) == [(11, DisconnectOk(0, 1))]
    assert 11 not in bench.neighbours()


def test_fig4_23_or_where_the_degree_is_above_the_target() -> None:
    bench = Bench({1, 2})
    for node in range(11, 18):
        bench.connected_by(node, [1] if node > 12 else [1, 2])
    bench.loop()
    assert bench.task.degree > bench.task.target
    assert bench.kinds(bench.hear(11, Disconnect(0, 1))) == ["DisconnectOk"]


def test_fig4_23_otherwise_it_is_not_answered() -> None:
    bench = Bench({1})
    covered(bench)
    assert bench.hear(11, Disconnect(0, 1)) == []
    assert 11 in bench.neighbours()


def test_fig4_26_a_node_that_stays_covered_lowers_its_target_to_its_degree() -> None:
    bench = Bench({1, 2})
    covered(bench, 5)
    assert bench.task.target == 5
    bench.hear(11, Disconnect(0, 1))
    assert bench.task.target == 4


def test_fig4_27_28_disconnect_ok_removes_the_neighbour() -> None:
    bench = Bench({1})
    covered(bench, 4)
    bench.hear(11, DisconnectOk(0, 1))
    assert 11 not in bench.neighbours()


def test_fig4_29_30_a_suspected_neighbour_is_removed_from_both_tasks() -> None:
    bench = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    bench.connected_by(11, [1])
    bench.connected_by(11, [1], task=1)
    bench.tell(PeerLost(11, 1))
    assert bench.neighbours(0) | bench.neighbours(1) == set()


def test_fig4_29_30_the_loss_of_an_earlier_incarnation_takes_nothing_from_this_one() -> None:
    bench = Bench({1})
    bench.hear(11, Connect(ref(11, 2), 0, 1, 3, (1,)))
    bench.tell(PeerLost(11, 1))
    assert bench.neighbours() == {11}


def test_fig4_31_32_an_accepted_neighbour_is_kept_with_what_it_said() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1, 7], degree=2, target=6)
    neighbour = bench.task.neighbours[11]
    assert (neighbour.degree, neighbour.target, neighbour.interest) == (2, 6, frozenset({1, 7}))


def test_fig4_33_connect_ok_carries_the_new_degree_the_target_before_line_5_and_the_interest() -> None:
    bench = Bench({1, 2})
    covered(bench)
    assert bench.connected_by(14, [1]) == [(14, ConnectOk(ref(ME), 0, 4, 3, (1, 2)))]
    assert bench.task.target == 4


def test_fig4_34_35_36_37_38_losing_a_needed_neighbour_wakes_the_task_at_once() -> None:
    bench = Bench({1})
    covered(bench)
    bench.hear(11, Leave(0, 1))
    assert bench.timers[MaintainTimer(0)] == 0


def test_fig4_37_so_does_a_degree_below_the_target() -> None:
    bench = Bench({1, 2})
    covered(bench, 4)
    bench.hear(11, Leave(0, 1))
    assert len(bench.task.under_covered) == 0
    assert bench.timers[MaintainTimer(0)] == 0


def test_fig5_01_02_neighbours_and_quarantined_are_no_candidates() -> None:
    bench = Bench({1}, {5: {1}, 6: {1}, 7: {1}})
    bench.connected_by(5, [1])
    ((first, _),) = bench.loop()
    ((second, _),) = bench.loop()
    assert {first, second} == {6, 7}
    assert bench.loop() == []
    assert bench.view.asked[-1][2] == {ME, 5, 6, 7}


def test_fig5_01_02_whose_quarantine_is_over_may_be_asked_again() -> None:
    bench = Bench({1}, {6: {1}})
    bench.loop()
    bench.now += bench.config.quarantine
    assert bench.kinds(bench.loop()) == ["Connect"]


@pytest.mark.parametrize("task", [0, 1])
def test_fig5_03_04_05_06_07_12_13_14_15_16_covers_are_counted_among_neighbours_not_candidates(task: int) -> None:
    """As printed (lines 5 and 14), a topic with K candidates would count as covered with no neighbour at all."""
    candidates = {node: {1, 2} for node in range(5, 15)}
    bench = Bench({1, 2}, candidates, SpiderConfig(coverage(3, 3)))
    assert bench.kinds(bench.loop(task)) == ["Connect"]
    for node in (21, 22, 23):
        bench.connected_by(node, [1], task=task)
    bench.loop(task)
    assert bench.view.asked[-1][1] == (2,)


def test_fig5_08_09_the_greedy_rule_takes_who_covers_most() -> None:
    bench = Bench({1, 2, 3}, {5: {1}, 6: {1, 2}, 7: {3, 8, 9, 10}})
    ((to, _),) = bench.loop()
    assert to == 6


def test_fig5_08_no_node_that_covers_nothing() -> None:
    bench = Bench({1, 2}, {5: {8}})
    assert bench.loop() == []


def test_fig5_10_11_a_neighbour_of_the_other_task_is_a_candidate() -> None:
    bench = Bench({1}, {5: {1}}, SpiderConfig(coverage(3, 1)))
    bench.connected_by(5, [1])
    assert [to for to, _ in bench.loop(1)] == [5]


def test_fig5_17_18_19_the_random_rule_takes_anybody_who_covers_something() -> None:
    view = {5: {1}, 6: {1, 2}, 7: {9}}
    found = set()
    for _ in range(6):
        bench = Bench({1, 2}, view, SpiderConfig(coverage(0, 3)))
        found |= {to for _ in range(2) for to, _ in bench.loop(1)}
    assert found == {5, 6}
