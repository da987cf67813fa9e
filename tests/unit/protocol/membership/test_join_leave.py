"""Who may leave at once: a node that came to say something, if no topic is connected through it."""

from __future__ import annotations

import pytest

from omen.protocol.events import SECOND, Depart
from omen.sim.running import Run
from omen.sim.scenario import NodeSpec, Scenario


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
