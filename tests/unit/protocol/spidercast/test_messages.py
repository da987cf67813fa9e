"""What a SpiderCast node drops before a task sees it, and counts."""

from __future__ import annotations

from typing import Any

import pytest

from omen.protocol.messages import overlay as upkeep
from omen.protocol.messages.overlay import encode
from omen.protocol.spidercast import messages as say
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.validation import LARGEST
from unit.protocol.spidercast.spiders import ME, Bench, ref


def every_kind(task: int, sender: int = 11) -> list[Any]:
    return [
        say.Connect(ref(sender), task, 1, 3, (1,)),
        say.ConnectOk(ref(sender), task, 1, 3, (1,)),
        say.Redirect(task, ref(7)),
        say.Disconnect(task, 1),
        say.DisconnectOk(task, 1),
        say.Leave(task, 1),
        say.Heartbeat(ref(sender), task, 1, 3, None),
    ]


def kind(message: Any) -> str:
    return type(message).__name__


@pytest.fixture
def bench() -> Bench:
    """A node with 11 for a neighbour of both tasks."""
    made = Bench({1}, None, SpiderConfig(coverage(3, 1)))
    for task in (0, 1):
        made.connected_by(11, [1], task=task)
    return made


@pytest.mark.parametrize("task", [2, 7, -1, 2**40])
@pytest.mark.parametrize("number", range(7), ids=lambda number: kind(every_kind(0)[number]))
def test_there_are_two_tasks_and_no_other_is_spoken_to(number: int, task: int, bench: Bench) -> None:
    assert bench.hear(11, every_kind(task)[number]) == []
    assert bench.neighbours(0) == bench.neighbours(1) == {11}
    assert bench.node.status().refused == {"false": 1}


@pytest.mark.parametrize("message", every_kind(0, ME), ids=kind)
def test_no_node_is_a_neighbour_of_itself(message: Any, bench: Bench) -> None:
    assert bench.hear(ME, message) == []
    assert bench.node.neighbours() == [11]
    assert bench.node.status().refused == {"false": 1}


@pytest.mark.parametrize("message", [one for one in every_kind(0) if hasattr(one, "sender")], ids=kind)
def test_no_node_speaks_for_another(message: Any, bench: Bench) -> None:
    before = bench.task.neighbours[11]
    assert bench.hear(12, message) == []
    assert bench.neighbours() == {11}
    assert bench.task.neighbours[11] == before
    assert bench.node.status().refused == {"false": 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "malformed"),
        (b"\x93\x32\x00", "malformed"),
        (encode(say.Leave(0, 1))[:-1], "malformed"),
        (b"\x93\x05\x00\x01", "unknown"),
        (bytes(LARGEST + 1), "oversized"),
    ],
    ids=["nothing", "cut", "short", "another's", "large"],
)
def test_bytes_that_are_no_message_are_counted_by_reason(data: bytes, reason: str, bench: Bench) -> None:
    assert bench.hear(11, data) == []
    assert bench.node.status().refused == {reason: 1}


def test_messages_of_other_protocols_are_unknown(bench: Bench) -> None:
    assert bench.hear(11, upkeep.Ping(3, ref(11))) == []
    assert bench.node.status().refused == {"unknown": 1}


def test_bytes_that_are_a_message_are_one(bench: Bench) -> None:
    bench.hear(11, encode(say.Leave(0, 1)))
    assert (bench.neighbours(0), bench.neighbours(1)) == (set(), {11})
    assert not bench.node.status().refused


@pytest.mark.parametrize("number", [-1, 2**60])
def test_numbers_out_of_bounds_do_not_come_past_the_wire(number: int, bench: Bench) -> None:
    bench.hear(11, encode(say.Connect(ref(11), 0, number, 3, (1,))))
    assert bench.node.status().refused == {"malformed": 1}
