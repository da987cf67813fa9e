"""A node as bytes, and back."""

from __future__ import annotations

import pytest

from omen.protocol.events import Input, Output, Subscribe, Time
from omen.protocol.node import OmenNode
from omen.protocol.snapshots import Snapshots
from omen.sim.drawing import draw_within
from omen.sim.explore_world import OrderedRun, SmallRandom
from omen.sim.explore_worlds import small_worlds
from omen.sim.running import Run


def test_a_node_that_is_saved_and_restored_before_every_input_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """World 6 has crashes, a leave, changes of topics and nodes that rejoin after they were declared failed."""
    plain = Run(draw_within(6), 6, fingerprint=True).go()
    handle, kept = OmenNode.handle, dict[int, Snapshots]()

    def restore_and_handle(node: OmenNode, event: Input, now: Time) -> object:
        snapshots = kept.setdefault(id(node), Snapshots(node))
        saved, key = snapshots.take()
        snapshots.restore(saved)
        assert snapshots.key() == key
        return handle(node, event, now)

    monkeypatch.setattr(OmenNode, "handle", restore_and_handle)
    assert Run(draw_within(6), 6, fingerprint=True).go().fingerprint == plain.fingerprint


def test_a_node_goes_back_to_where_it_was() -> None:
    run = OrderedRun(next(small_worlds(3, 1)))
    run.prepare()
    core = run.population.cores[1000]
    snapshots = Snapshots(core)
    saved, key = snapshots.take()
    first: list[Output] = list(core.start(20_000_000))
    assert snapshots.key() != key
    snapshots.restore(saved)
    assert snapshots.key() == key
    assert list(core.start(20_000_000)) == first, "what it draws from went back too"


def test_the_order_in_which_a_set_was_filled_makes_no_other_state() -> None:
    run = OrderedRun(next(small_worlds(3, 1)))
    run.prepare()
    core = run.population.cores[1000]
    snapshots = Snapshots(core)
    saved, before = snapshots.take()
    keys = set()
    for added in ((8, 16, 0), (0, 16, 8)):
        core.handle(Subscribe(added), 20_000_000)
        assert core.wanted > {0, 8, 16}
        keys.add(snapshots.key())
        snapshots.restore(saved)
    assert len(keys) == 1
    assert before not in keys


def test_what_a_small_generator_draws_follows_from_its_state() -> None:
    one, other = SmallRandom(7), SmallRandom(7)
    drawn = [one.randrange(10), one.random(), one.sample(range(9), 4)]
    assert drawn == [other.randrange(10), other.random(), other.sample(range(9), 4)]
    assert len(set(drawn[2])) == 4
