"""Figs. 2 and 3 of SpiderCast: each line of the pseudo-code, in the paper's own numbering, has a test named after it.

Lines are numbered as the paper's text refers to them: a line that is continued has one number.
"""

from __future__ import annotations

import re
from pathlib import Path

from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.messages import Connect, Disconnect, Leave, Redirect
from omen.protocol.spidercast.task import MaintainTimer
from unit.protocol.spidercast.spiders import ME, Bench, TaskBench, covered, ref

LINES = {2: 30, 3: 22, 4: 38, 5: 19}
ONLY_HEADS = {(3, 21)}  # "else"


def test_every_line_of_every_figure_has_a_test() -> None:
    named: set[tuple[int, int]] = set()
    for path in Path(__file__).parent.glob("test_task_figures_*.py"):
        for figure, lines in re.findall(r"^def test_fig(\d)_((?:\d\d_)+)", path.read_text(), re.MULTILINE):
            named |= {(int(figure), int(line)) for line in lines.split("_") if line}
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
    assert Bench({1, 2, 3, 4}).task.most == 12


def test_fig2_05_under_covered_is_counted_from_the_neighbours_of_now() -> None:
    bench = Bench({1, 2}, {2: {1}})
    assert len(bench.task.under_covered) == 2
    covered(bench)
    assert len(bench.task.under_covered) == 0


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
    assert bench.task.under_covered
    assert bench.kinds(bench.loop()) == ["Disconnect"]


def test_fig2_13_it_sleeps_for_connect_timeout() -> None:
    bench = Bench({1}, {5: {1}})
    bench.loop()
    assert bench.timers[MaintainTimer(0)] == bench.config.connect_timeout


def test_fig2_13_a_loop_that_found_nothing_to_do_waits_for_something_to_change() -> None:
    bench = Bench({1})
    covered(bench)
    bench.loop()
    assert MaintainTimer(0) not in bench.timers
    bench.beats(11, 9, 9)
    assert MaintainTimer(0) in bench.timers


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


def test_fig2_17_18_a_node_that_one_was_redirected_to_comes_first() -> None:
    bench = Bench({1}, {5: {1}})
    bench.hear(5, Redirect(0, ref(7)))
    ((to, message),) = bench.loop()
    assert (to, type(message)) == (7, Connect)


def test_fig2_19_and_is_asked_once() -> None:
    bench = Bench({1}, {5: {1}})
    bench.hear(5, Redirect(0, ref(7)))
    bench.loop()
    assert bench.task.redirected == ()
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
    assert bench.task.cover == {1: 3, 2: 3}
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
    assert len(bench.task.under_covered) == 3


def test_fig3_04_the_cover_of_a_topic_is_the_neighbours_that_want_it() -> None:
    bench = Bench({1, 2})
    bench.connected_by(11, [1, 5])
    bench.connected_by(12, [1, 2])
    assert bench.task.cover == {1: 2, 2: 1}


def test_fig3_05_06_a_topic_with_fewer_than_k_is_under_covered() -> None:
    bench = Bench({1, 2})
    for node in (11, 12, 13):
        bench.connected_by(node, [1])
    assert len(bench.task.under_covered) == 1
    assert bench.task.under_covered == [2]


def test_fig3_08_09_only_those_that_have_reached_their_target_are_candidates() -> None:
    bench = TaskBench({1})
    bench.connected_by(11, [1], degree=3, target=9)
    assert bench.candidates(1) == set()
    bench.connected_by(12, [1], degree=4, target=4)
    bench.connected_by(13, [1], degree=5, target=4)
    assert bench.candidates(30) == {12, 13}


def test_fig3_09_as_printed_they_must_be_above_it() -> None:
    bench = TaskBench({1}, part_above=True)
    bench.connected_by(12, [1], degree=4, target=4)
    assert bench.candidates(1) == set()
    bench.connected_by(13, [1], degree=5, target=4)
    assert bench.candidates(1) == {13}


def test_fig3_09_one_that_has_refused_is_no_candidate_until_it_has_more_neighbours() -> None:
    bench = Bench({1})
    covered(bench)
    bench.connected_by(14, [1], degree=9, target=9)
    assert bench.kinds(bench.loop()) == ["Disconnect"]
    assert bench.loop() == []
    bench.beats(14, 10, 10)
    assert bench.kinds(bench.loop()) == ["Disconnect"]


def test_fig3_10_11_12_13_14_15_16_the_least_missed_is_chosen() -> None:
    bench = TaskBench({1, 2})
    for node, topics in ((11, [1, 2]), (12, [1, 2]), (13, [1, 2]), (14, [1]), (15, [3])):
        bench.connected_by(node, topics, degree=9, target=9)
    assert bench.candidates(40) == {14, 15}


def test_fig3_17_18_19_20_one_of_equals_is_drawn() -> None:
    bench = TaskBench({1})
    for node in range(11, 16):
        bench.connected_by(node, [1], degree=9, target=9)
    assert bench.candidates(60) == {11, 12, 13, 14, 15}


def test_fig3_22_or_none() -> None:
    assert TaskBench({1}).candidates(1) == set()
