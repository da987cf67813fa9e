"""Who may leave at once: a node that came to say something, if no topic is connected through it."""

from __future__ import annotations

import random
from heapq import heappop, heappush

import pytest

from omen.maintain.choosing import choose_links
from omen.net.settings import LIVE
from omen.protocol.events import SECOND, ContactsFound, Depart, Input, NodeId, Received, Send, SetTimer, TimerFired
from omen.protocol.node import OmenNode
from omen.sim.running import Run
from omen.sim.scenario import NodeSpec, Scenario
from unit.protocol.contexts import ref


def leaves_at_once(label: str, is_brief: bool) -> tuple[int, bool]:
    """A node of three leaves: how many links it had, and whether it was gone without waiting for a repair."""
    run = Run(Scenario(nodes={f"n{number}": NodeSpec(("t",)) for number in range(3)}, until_s=40.0), 0)
    node, seen = run.population.place(label), list[tuple[int, bool]]()

    def look() -> None:
        core = run.population.cores.get(node)
        seen.append((len(core.status().links) if core is not None else 0, core is None or core.stopped))

    run.world.call(10 * SECOND - 1, look)
    run.world.call(10 * SECOND, lambda: run.world.tell(node, Depart(is_brief)))
    run.world.call(10 * SECOND + 1, look)
    run.world.call(35 * SECOND, look)
    assert run.go().complaints() == []
    assert seen[2][1]
    return seen[0][0], seen[1][1]


@pytest.mark.parametrize("label", ["n0", "n1", "n2"])
def test_a_brief_node_leaves_at_once_where_no_topic_is_connected_through_it(label: str) -> None:
    links, at_once = leaves_at_once(label, is_brief=True)
    assert at_once == (links == 1)


def test_others_wait_until_their_gap_is_repaired() -> None:
    assert not any(leaves_at_once(label, is_brief=False)[1] for label in ("n0", "n1", "n2"))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_nodes_that_all_leave_at_once_do_not_wait_for_each_other(size: int) -> None:
    run = Run(Scenario(nodes={f"n{number}": NodeSpec(("t",)) for number in range(size)}, until_s=40.0), 0)
    nodes = [run.population.place(f"n{number}") for number in range(size)]
    gone: list[bool] = []

    def leave() -> None:
        for node in nodes:
            run.world.tell(node, Depart())

    def look() -> None:
        cores = [run.population.cores.get(node) for node in nodes]
        gone.extend(core is None or core.stopped for core in cores)

    run.world.call(10 * SECOND, leave)
    run.world.call(13 * SECOND, look)
    assert run.go().complaints() == []
    assert gone == [True] * size


@pytest.mark.parametrize("between_ms", [300, 700])
def test_nodes_that_seek_a_place_and_meet_again_and_again_form_a_ring(between_ms: int) -> None:
    """Their only contact is gone. Each meeting threw away what they had asked, so that it never counted as silent."""
    cores = {node: OmenNode(ref(node), (1,), LIVE, random.Random(node), choose_links, (ref(77),)) for node in (10, 20)}
    queue: list[tuple[int, int, NodeId, Input]] = []
    steps = 0

    def plan(at: int, node: NodeId, what: Input) -> None:
        nonlocal steps
        steps += 1
        heappush(queue, (at, steps, node, what))

    def take(outputs: object, node: NodeId, now: int) -> None:
        for output in outputs:  # type: ignore[attr-defined]
            if isinstance(output, SetTimer):
                plan(now + output.delay, node, TimerFired(output.timer))
            elif isinstance(output, Send) and output.to in cores:
                plan(now + 20_000, output.to, Received(node, output.message))

    for node, core in cores.items():
        take(core.start(0), node, 0)
        for meeting in range(1, 20):
            plan(meeting * between_ms * 1000, node, ContactsFound((ref(30 - node),)))
    while queue and queue[0][0] < 15 * SECOND:
        now, _, node, what = heappop(queue)
        take(cores[node].handle(what, now), node, now)
    assert all(core.status().links for core in cores.values())
