"""Each line of the pseudo-code of SpiderCast's Figs. 2 to 5, in the paper's own numbering, has a test named after it.

Lines are numbered as the paper's text refers to them: a line that is continued has one number.
"""

from __future__ import annotations

import re

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
from unit.spiders import ME, Bench, ref

LINES = {2: 30, 3: 22, 4: 38, 5: 19}
ONLY_HEADS = {(3, 21)}  # "else"


def covered(bench: Bench, times: int = 3) -> None:
    """Give it neighbours 11, 12, ... that cover everything, none of them covered itself."""
    for node in range(11, 11 + times):
        bench.connected_by(node, bench.node.me.interest, degree=1, target=9)
    bench.loop()


def test_every_line_of_every_figure_has_a_test() -> None:
    named: set[tuple[int, int]] = set()
    for name in globals():
        if found := re.match(r"test_fig(\d)_((?:\d\d_)+)", name):
            named |= {(int(found[1]), int(line)) for line in found[2].split("_") if line}
    assert named | ONLY_HEADS == {(figure, line) for figure, last in LINES.items() for line in range(1, last + 1)}


def test_fig2_01_02_an_iteration_without_need_opens_no_gap_and_sends_nothing() -> None:
    bench = Bench({1})
    covered(bench)
    assert bench.loop() == []


def test_fig2_03_the_loop_does_not_run_with_k_0() -> None:
    bench = Bench({1}, {2: {1}}, SpiderConfig(coverage(0, 0)))
    assert bench.node.start(0) == []
    assert bench.loop() == []


def test_fig2_04_l_max_is_k_times_the_interest() -> None:
    assert Bench({1, 2, 3, 4}).task.neighbours.most == 12


def test_fig2_05_under_covered_is_counted_from_the_neighbours_of_now() -> None:
    bench = Bench({1, 2}, {2: {1}})
    assert bench.task.neighbours.under_covered == 2
    covered(bench)
    assert bench.task.neighbours.under_covered == 0


def test_fig2_06_07_the_target_is_l_max_while_a_topic_is_under_covered() -> None:
    bench = Bench({1, 2}, {2: {1}})
    covered(bench)
    assert bench.task.target == 3
    bench.hear(11, Leave(0, 1))
    bench.loop()
    assert bench.task.target == 6


def test_fig2_08_09_no_connect_without_a_gap() -> None:
    bench = Bench({1, 2}, {30: {1, 2}})
    for node in range(11, 17):
        bench.connected_by(node, [1])  # six neighbours, L^max is six, and topic 2 is uncovered
    assert bench.loop() == []


def test_fig2_10_a_node_with_a_gap_connects() -> None:
    bench = Bench({1}, {5: {1}})
    assert bench.kinds(bench.loop()) == ["Connect"]


def test_fig2_11_12_a_covered_node_disconnects() -> None:
    bench = Bench({1})
    covered(bench)
    bench.connected_by(14, [1], degree=9, target=9)
    assert bench.kinds(bench.loop()) == ["Disconnect"]


def test_fig2_11_12_so_does_an_under_covered_one_above_l_max() -> None:
    bench = Bench({1, 2})
    for node in range(11, 18):
        bench.connected_by(node, [1], degree=9, target=9)
    assert bench.task.neighbours.under_covered > 0
    assert bench.kinds(bench.loop()) == ["Disconnect"]


def test_fig2_13_it_sleeps_for_connect_timeout() -> None:
    bench = Bench({1}, {5: {1}})
    bench.loop()
    assert bench.timers["maintain", 0] == bench.config.connect_timeout


def test_fig2_13_a_loop_that_found_nothing_to_do_waits_for_something_to_change() -> None:
    bench = Bench({1})
    covered(bench)
    bench.loop()
    assert ("maintain", 0) not in bench.timers
    bench.beats(11, 9, 9)
    assert ("maintain", 0) in bench.timers


def test_fig2_14_15_16_without_redirects_the_rule_of_the_task_chooses() -> None:
    bench = Bench({1, 2}, {5: {1}, 6: {1, 2}})
    ((to, _),) = bench.loop()
    assert to == 6
    assert bench.view.asked[-1][0] == "greedy"


def test_fig2_16_the_random_task_asks_for_a_random_node() -> None:
    bench = Bench({1}, {5: {1}}, SpiderConfig(coverage(0, 1)))
    ((_, message),) = bench.loop(1)
    assert message.task == 1
    assert bench.view.asked[-1][0] == "random"


def test_fig2_17_18_whoever_one_was_redirected_to_comes_first() -> None:
    bench = Bench({1}, {5: {1}})
    bench.hear(5, Redirect(0, ref(7)))
    ((to, message),) = bench.loop()
    assert (to, type(message)) == (7, Connect)


def test_fig2_19_and_is_asked_once() -> None:
    bench = Bench({1}, {5: {1}})
    bench.hear(5, Redirect(0, ref(7)))
    bench.loop()
    assert bench.task.redirected == {}
    ((to, _),) = bench.loop()
    assert to == 5


def test_fig2_20_connect_carries_degree_target_and_interest() -> None:
    bench = Bench({2, 1}, {5: {1}})
    bench.connected_by(9, [1])
    ((to, message),) = bench.loop()
    assert (to, message) == (5, Connect(ref(ME), 0, 1, 6, (1, 2)))


def test_fig2_21_22_disconnect_sets_the_target_to_the_degree_but_not_above_l_max() -> None:
    bench = Bench({1})
    covered(bench)
    assert bench.task.target == 3
    for node in (14, 15):
        bench.connected_by(node, [1])
    bench.loop()
    assert bench.task.target == 3
    two = Bench({1, 2})
    for node in range(11, 16):
        two.connected_by(node, [1, 2])
    two.loop()
    assert two.task.target == 5


def test_fig2_23_25_26_above_l_max_one_parts_although_a_topic_loses_cover() -> None:
    bench = Bench({1, 2})
    for node in range(11, 14):
        bench.connected_by(node, [1, 2], degree=9, target=9)
    for node in range(14, 18):
        bench.connected_by(node, [3], degree=1, target=9)
    assert bench.task.neighbours.under_covered_without(11) > 0
    ((to, message),) = bench.loop()
    assert to in {11, 12, 13}
    assert message == Disconnect(0, 1)


def test_fig2_24_27_without_a_candidate_nothing_is_sent() -> None:
    bench = Bench({1})
    covered(bench)
    bench.connected_by(14, [1], degree=1, target=9)
    assert bench.loop() == []


def test_fig2_27_28_29_not_above_l_max_one_keeps_who_is_needed() -> None:
    bench = Bench({1, 2})
    covered(bench)
    for node in (11, 12, 13):
        bench.beats(node, 9, 9)
    assert bench.loop() == []


def test_fig2_30_and_parts_with_who_is_not() -> None:
    bench = Bench({1, 2})
    covered(bench)
    bench.connected_by(14, [1], degree=9, target=9)
    assert bench.loop() == [(14, Disconnect(0, 1))]


def test_fig3_01_02_03_07_every_topic_counts_once() -> None:
    bench = Bench({1, 2, 3})
    assert bench.task.neighbours.under_covered == 3


def test_fig3_04_the_cover_of_a_topic_is_the_neighbours_that_want_it() -> None:
    bench = Bench({1, 2})
    bench.connected_by(11, [1, 5])
    bench.connected_by(12, [1, 2])
    assert bench.task.neighbours.cover == {1: 2, 2: 1}


def test_fig3_05_06_a_topic_with_fewer_than_k_is_under_covered() -> None:
    bench = Bench({1, 2})
    for node in (11, 12, 13):
        bench.connected_by(node, [1])
    assert bench.task.neighbours.under_covered == 1
    assert bench.task.neighbours.uncovered() == [2]


def test_fig3_08_09_only_those_that_have_reached_their_target_are_candidates() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1], degree=3, target=9)
    assert bench.task.disconnect_candidate() is None
    bench.connected_by(12, [1], degree=4, target=4)
    bench.connected_by(13, [1], degree=5, target=4)
    found = {bench.task.disconnect_candidate().ref.id for _ in range(30)}  # type: ignore[union-attr]
    assert found == {12, 13}


def test_fig3_09_as_printed_they_must_be_above_it() -> None:
    bench = Bench({1}, part_above=True)
    bench.connected_by(12, [1], degree=4, target=4)
    assert bench.task.disconnect_candidate() is None
    bench.connected_by(13, [1], degree=5, target=4)
    found = bench.task.disconnect_candidate()
    assert found is not None and found.ref.id == 13


def test_fig3_09_who_has_refused_is_no_candidate_until_it_has_more_neighbours() -> None:
    bench = Bench({1})
    covered(bench)
    bench.connected_by(14, [1], degree=9, target=9)
    assert bench.kinds(bench.loop()) == ["Disconnect"]
    assert bench.loop() == []
    bench.beats(14, 10, 10)
    assert bench.kinds(bench.loop()) == ["Disconnect"]


def test_fig3_10_11_12_13_14_15_16_the_least_missed_is_chosen() -> None:
    bench = Bench({1, 2})
    for node, topics in ((11, [1, 2]), (12, [1, 2]), (13, [1, 2]), (14, [1]), (15, [3])):
        bench.connected_by(node, topics, degree=9, target=9)
    found = {bench.task.disconnect_candidate().ref.id for _ in range(40)}  # type: ignore[union-attr]
    assert found == {14, 15}


def test_fig3_17_18_19_20_one_of_equals_is_drawn() -> None:
    bench = Bench({1})
    for node in range(11, 16):
        bench.connected_by(node, [1], degree=9, target=9)
    found = {bench.task.disconnect_candidate().ref.id for _ in range(60)}  # type: ignore[union-attr]
    assert found == {11, 12, 13, 14, 15}


def test_fig3_22_or_nobody() -> None:
    assert Bench({1}).task.disconnect_candidate() is None


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


def full(bench: Bench, **known: int) -> None:
    for node in range(11, 19):
        bench.connected_by(node, [1, 2] if node == 15 else [1], degree=known.get(f"n{node}", 99), target=9)


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


def test_fig4_09_where_nobody_can_be_named_the_redirect_says_so() -> None:
    bench = Bench({1})
    full(bench)
    assert bench.connected_by(30, [1]) == [(30, Redirect(0, None))]
    assert bench.hear(30, Redirect(0, None)) == []
    assert bench.task.redirected == {}


def test_fig4_10_11_a_redirect_is_remembered() -> None:
    bench = Bench({1})
    bench.hear(5, Redirect(0, ref(7)))
    bench.hear(5, Redirect(0, ref(8)))
    assert bench.task.redirected.keys() == {7, 8}


def test_fig4_12_13_14_connect_ok_makes_a_neighbour() -> None:
    bench = Bench({1})
    bench.gets_ok(5, [1], degree=4, target=7)
    neighbour = bench.task.neighbours.known[5]
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


def test_fig4_29_30_the_loss_of_an_earlier_life_takes_nothing_from_this_one() -> None:
    bench = Bench({1})
    bench.hear(11, Connect(ref(11, 2), 0, 1, 3, (1,)))
    bench.tell(PeerLost(11, 1))
    assert bench.neighbours() == {11}


def test_fig4_31_32_an_accepted_neighbour_is_kept_with_what_it_said() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1, 7], degree=2, target=6)
    neighbour = bench.task.neighbours.known[11]
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
    assert bench.timers["maintain", 0] == 0


def test_fig4_37_so_does_a_degree_below_the_target() -> None:
    bench = Bench({1, 2})
    covered(bench, 4)
    bench.hear(11, Leave(0, 1))
    assert bench.task.neighbours.under_covered == 0
    assert bench.timers["maintain", 0] == 0


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


def test_fig5_08_nobody_who_covers_nothing() -> None:
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
