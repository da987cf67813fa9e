"""What a SpiderCast node does around its two tasks: heartbeats, the adaptive K_r, changes of interest, leaving."""

from __future__ import annotations

import msgspec
import pytest

from omen.protocol.events import Connect as ConnectTo
from omen.protocol.events import Depart, Disconnect, Left, Notify, Subscribe
from omen.protocol.messages.overlay import encode
from omen.protocol.spidercast import messages as say
from omen.protocol.spidercast.config import SpiderConfig, coverage, similarity
from omen.protocol.spidercast.node import HeartbeatTimer, SpiderStatus
from omen.protocol.spidercast.task import MaintainTimer
from unit.protocol.spidercast.spiders import ME, Bench, ref

MESSAGES = [
    say.Connect(ref(1), 0, 2, 9, (1, 2**63)),
    say.ConnectOk(ref(1), 1, 2, 9, ()),
    say.Redirect(0, ref(4)),
    say.Redirect(1, None),
    say.Disconnect(0, 3),
    say.DisconnectOk(1, 3),
    say.Leave(0, 1),
    say.Heartbeat(ref(1), 0, 4, 5, None),
    say.Heartbeat(ref(1), 0, 4, 5, (7,)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_survive_the_wire(message: say.SpiderMessage) -> None:
    assert say.decode(encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"\x00", encode(MESSAGES[0])[:-1], b"\x92\x00\x01"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        say.decode(data)


def test_heartbeats_tell_each_neighbour_what_it_does_not_know_and_then_stop() -> None:
    bench = Bench({1, 2})
    bench.connected_by(11, [1])
    bench.connected_by(12, [1])
    assert HeartbeatTimer() in bench.timers or bench.node.is_busy
    assert bench.beat() == [(11, say.Heartbeat(ref(ME), 0, 2, 6, None))]  # 12 heard it with its CONNECT-OK
    assert HeartbeatTimer() not in bench.timers
    assert bench.beat() == []


def test_with_keep_alive_everybody_hears_now_and_then_although_nothing_is_new() -> None:
    bench = Bench({1}, keep_alive=2)
    bench.connected_by(11, [1])
    sent = [bench.beat() for _ in range(4)]
    assert [len(one) for one in sent] == [0, 1, 0, 1]


def test_heartbeats_bring_degree_and_target_of_a_neighbour() -> None:
    bench = Bench({1})
    bench.connected_by(11, [1], degree=1, target=9)
    bench.beats(11, 4, 4)
    known = bench.task.neighbours[11]
    assert (known.degree, known.target) == (4, 4)


def test_a_heartbeat_of_a_node_that_is_no_neighbour_is_answered_with_leave() -> None:
    bench = Bench({1})
    assert bench.beats(11, 4, 4) == [(11, say.Leave(0, 1))]


def test_but_not_while_an_answer_to_a_connect_may_be_under_way() -> None:
    bench = Bench({1}, {11: {1}})
    bench.loop()
    assert bench.beats(11, 4, 4) == []


def test_a_change_of_interest_is_counted_at_once_and_told_with_the_next_heartbeat() -> None:
    bench = Bench({1, 2})
    for node in (11, 12, 13):
        bench.connected_by(node, [1, 2])
    bench.beat()
    bench.tell(Subscribe(added=(3,), dropped=(1,)))
    assert bench.task.cover == {2: 3, 3: 0}
    assert {(to, message.interest) for to, message in bench.beat()} == {(node, (2, 3)) for node in (11, 12, 13)}


def test_a_neighbours_change_of_interest_changes_what_it_covers() -> None:
    bench = Bench({1, 2})
    bench.connected_by(11, [1])
    bench.beats(11, 1, 9, (2, 5))
    assert bench.task.cover == {1: 0, 2: 1}


def test_leaving_says_so_to_all_neighbours_of_both_tasks() -> None:
    bench = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    bench.connected_by(11, [1])
    bench.connected_by(12, [1], task=1)
    assert bench.tell(Depart()) == [(11, say.Leave(0, 1)), (12, say.Leave(1, 1))]
    assert Notify(Left()) in bench.outputs
    assert bench.loop() == []


def test_a_connection_is_kept_for_a_neighbour_of_either_task() -> None:
    bench = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    bench.connected_by(11, [1])
    assert ConnectTo(11, "") in bench.outputs
    bench.connected_by(11, [1], task=1)
    bench.hear(11, say.Leave(0, 1))
    assert Disconnect(11) not in bench.outputs
    bench.hear(11, say.Leave(1, 1))
    assert Disconnect(11) in bench.outputs


def adaptive(topics: set[int]) -> Bench:
    return Bench(topics, None, SpiderConfig(coverage(3, 0), adaptive=True))


def test_adaptive_k_r_rises_where_k_g_links_cover_everything() -> None:
    bench = adaptive({1, 2, 3, 4, 5, 6})
    for node in (11, 12, 13):
        assert bench.node.status().tasks[1].coverage == 0
        bench.connected_by(node, range(1, 7))
    assert bench.node.status().tasks[1].coverage == 1


def test_adaptive_k_r_stays_at_0_where_coverage_took_more_links() -> None:
    bench = adaptive({1, 2, 3, 4, 5, 6})
    bench.connected_by(10, [1])
    for node in (11, 12, 13):
        bench.connected_by(node, range(1, 7))
    assert bench.node.status().tasks[1].coverage == 0


def test_adaptive_k_r_rises_on_while_links_are_fewer_than_topics_and_k_r_at_most_3() -> None:
    bench = adaptive(set(range(1, 11)))
    for node in range(11, 25):
        bench.connected_by(node, range(1, 11), task=0 if node < 14 else 1)
    assert bench.node.status().tasks[1].coverage == 4
    few = adaptive({1, 2, 3, 4})
    for node in (11, 12, 13):
        few.connected_by(node, range(1, 5))
    few.connected_by(14, range(1, 5), task=1)
    assert few.node.status().tasks[1].coverage == 1  # four links, four topics


def test_the_rivals_count_links_and_not_topics() -> None:
    view = {node: {1, 2} if node == 5 else {9} for node in range(2, 8)}
    bench = Bench({1, 2, 3}, view, SpiderConfig(similarity(2, 3)))
    assert [task.most for task in bench.node.status().tasks] == [2, 3]
    ((to, _),) = bench.loop(0)
    assert to == 5
    ((anybody, _),) = bench.loop(1)
    assert anybody in view
    bench.gets_ok(3, [9])
    bench.gets_ok(4, [8])
    assert len(bench.task.under_covered) == 0


def test_a_node_that_finds_no_node_looks_again_when_one_has_joined() -> None:
    bench = Bench({1})
    assert bench.loop() == []
    assert bench.timers[MaintainTimer(0)] == bench.config.quarantine
    asked = len(bench.view.asked)
    assert bench.loop() == []
    assert len(bench.view.asked) == asked
    bench.view.interests[5] = {1}
    bench.view.version += 1
    assert bench.kinds(bench.loop()) == ["Connect"]


def shown(status: SpiderStatus) -> tuple[object, ...]:
    """What changes in a status, as plain values."""
    task = status.tasks[0]
    known = {node: (one.degree, tuple(one.interest)) for node, one in task.neighbours.items()}
    return status.topics, dict(task.cover), known, dict(status.refused)


def test_nothing_in_a_status_changes_when_the_node_goes_on() -> None:
    bench = Bench({1, 2}, {11: {1}, 12: {1, 2}})
    bench.connected_by(11, [1], degree=1)
    status = bench.node.status()
    before = shown(status)
    bench.beats(11, 7, 9, (1, 2))
    bench.connected_by(12, [1, 2])
    bench.hear(12, "nonsense")
    bench.tell(Subscribe(added=(3,)))
    assert shown(status) == before
    now = bench.node.status()
    assert all(one != other for one, other in zip(shown(now), before, strict=True)), "all of it has changed at the node"
