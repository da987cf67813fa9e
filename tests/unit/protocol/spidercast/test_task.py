"""What a SpiderCast node notes down, whom not to ask and whom others have named, and that it stays little."""

from __future__ import annotations

from omen.protocol.events import PeerLost, Subscribe
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.messages import Connect, Disconnect, Leave, Redirect
from unit.protocol.spidercast.spiders import Bench, covered, ref


def quarantined(bench: Bench, task: int = 0) -> set[int]:
    return set(bench.node.status().tasks[task].quarantined)


def test_a_lost_neighbour_is_in_quarantine_in_both_tasks_that_run() -> None:
    bench = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    bench.connected_by(11, [1])
    bench.tell(PeerLost(11, 1))
    assert quarantined(bench, 0) == quarantined(bench, 1) == {11}


def test_a_task_with_k_0_notes_no_node_down() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1])
    bench.tell(PeerLost(11, 1))
    assert quarantined(bench, 1) == set()


def test_the_loss_of_a_node_that_is_no_neighbour_is_not_noted_down() -> None:
    bench = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    for node in range(20, 400):
        bench.tell(PeerLost(node, 1))
    assert quarantined(bench, 0) | quarantined(bench, 1) == set()


def test_nor_is_the_loss_of_an_earlier_incarnation() -> None:
    bench = Bench({1})
    bench.hear(11, Connect(ref(11, 2), 0, 1, 3, (1,)))
    bench.tell(PeerLost(11, 1))
    assert quarantined(bench) == set()


def test_quarantines_end_although_the_loop_never_runs() -> None:
    bench = Bench({1})
    for node in range(20, 400):
        bench.connected_by(node, [1])
        bench.tell(PeerLost(node, 1))
        bench.now += bench.config.quarantine // 3
    assert len(quarantined(bench)) <= 4


def test_quarantines_end_although_a_node_is_always_named() -> None:
    bench = Bench({1})
    for node in range(20, 400):
        bench.hear(11, Redirect(0, ref(node)))
        assert [to for to, _ in bench.loop()] == [node]
    assert len(quarantined(bench)) == bench.config.quarantine // bench.config.connect_timeout


def test_however_many_come_and_go_in_a_moment_the_quarantine_holds_what_a_period_can_bring() -> None:
    bench = Bench({1})
    for node in range(20, 400):
        bench.connected_by(node, [1])
        bench.tell(PeerLost(node, 1))
    assert quarantined(bench) == set(range(400 - (51 + 3 + 5), 400))  # those that came last


def test_a_hungry_task_looks_again_when_a_loss_has_ended_quarantines() -> None:
    bench = Bench({1}, {5: {1}, 6: {1}}, SpiderConfig(coverage(2, 1)))
    bench.connected_by(6, [1])
    assert [to for to, _ in bench.loop(1)] in ([5], [6])
    bench.loop(1)
    bench.loop(1)
    assert bench.node.status().waiting
    bench.now += bench.config.quarantine
    bench.tell(PeerLost(6, 1))
    assert [to for to, _ in bench.loop(1)] == [5]


def test_whom_others_have_named_is_forgotten_once_all_is_covered() -> None:
    bench = Bench({1})
    for node in (31, 32):
        bench.hear(9, Redirect(0, ref(node)))
    for node in (11, 12, 13):
        assert bench.task.redirected
        bench.connected_by(node, [1])
    assert bench.task.redirected == ()
    bench.hear(9, Redirect(0, ref(33)))
    assert bench.task.redirected == ()


def test_and_when_the_interest_has_changed() -> None:
    bench = Bench({1, 2})
    bench.hear(9, Redirect(0, ref(31)))
    bench.tell(Subscribe(added=(), dropped=(1,)))
    assert bench.task.redirected == ()


def test_no_more_are_kept_than_a_node_wants_at_most() -> None:
    bench = Bench({1, 2})
    for node in range(20, 400):
        bench.hear(9, Redirect(0, ref(node)))
    assert set(bench.task.redirected) == set(range(20, 26))


def test_of_several_named_the_lowest_is_asked_first_quarantine_or_not() -> None:
    bench = Bench({1}, {5: {1}})
    assert [to for to, _ in bench.loop()] == [5]
    for node in (7, 5):
        bench.hear(5, Redirect(0, ref(node)))
    assert [to for _ in range(2) for to, _ in bench.loop()] == [5, 7]


def test_links_from_the_start_belong_to_the_task_that_runs() -> None:
    for settings, there in ((coverage(3, 1), 0), (coverage(3, 0), 0), (coverage(0, 1), 1)):
        bench = Bench({1}, None, SpiderConfig(settings))
        bench.node.preset([(ref(5), 1, (1,))])
        assert bench.neighbours(there) == {5}
        assert bench.neighbours(1 - there) == set()


def test_a_disconnect_of_a_node_that_is_no_neighbour_gets_no_answer() -> None:
    bench = Bench({1})
    covered(bench, 4)
    assert bench.hear(30, Disconnect(0, 1)) == []
    assert bench.beats(30, 1, 1) == [(30, Leave(0, 1))]


def test_a_node_with_a_topic_that_no_other_node_wants_never_adapts() -> None:
    bench = Bench({1, 2, 3, 4, 5, 99}, None, SpiderConfig(coverage(3, 0), adaptive=True))
    for node in (11, 12, 13):
        bench.connected_by(node, range(1, 6))
    assert bench.node.status().tasks[1].coverage == 0
