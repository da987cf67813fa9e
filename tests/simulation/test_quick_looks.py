"""What monitors ask for often is kept or looked at quickly: it must be what a full look would say, at every moment."""

from __future__ import annotations

import pytest

from omen.protocol.status import NodeStatus
from omen.quality import check_overlay
from omen.sim.drawing import draw_within
from omen.sim.monitors import Monitors
from omen.sim.population import Population
from omen.sim.running import Run
from omen.sim.watch import Bounds


class Compared(Monitors):
    """Compares at each look; `splits`: at how many looks a topic was split."""

    def __init__(self, population: Population, bounds: Bounds) -> None:
        super().__init__(population, bounds)
        self.splits = 0
        self.backups: dict[int, tuple[object, object, object]] = {}

    def check(self) -> None:
        super().check()
        split = not check_overlay(*self.population.snapshot()).topic_connected
        self.splits += split
        assert self._has_split_topics() == self.population.has_split_topics() == split
        assert self._one_sided_links() == set(self._find_one_sided(*here(self.population)))
        for core in self.population.cores.values():
            status = core.status()
            assert core.links() == status.links
            assert tuple(core.sizes()) == sizes_in(status)
            now = (core.backups_stamp, status.backup_sets, dict(core.topic_sets))
            before = self.backups.setdefault(core.ref.id, now)
            assert before[0] != now[0] or before == now
            self.backups[core.ref.id] = now


def here(population: Population) -> tuple[set[int], set[int]]:
    members = set(population.members())
    return members, {node for node in members if population.world.places[node].paused}


def sizes_in(status: NodeStatus) -> tuple[int, ...]:
    membership, repairs = status.membership, status.repairs
    return (
        len(status.backup_sets),
        len(membership.sample),
        len(membership.ring),
        repairs.handled,
        len(membership.known),
        membership.seen_digests,
        repairs.path_probes,
        len(repairs.queued),
        len(repairs.standby),
        len(repairs.pending),
        len(repairs.loss_reports),
        len(repairs.requests),
        membership.lookups,
        repairs.proposals,
        sum(not link.is_up for link in status.links.values()),
        repairs.links_on_trial,
    )


@pytest.mark.parametrize("seed", [3, 900011, 900240])
def test_what_is_kept_is_what_a_full_look_says(seed: int) -> None:
    run = Run(draw_within(seed), seed)
    run.world.listeners.remove(run.monitors._hear)
    run.monitors = compared = Compared(run.population, run.monitors.bounds)
    assert run.go().went_well
    assert compared.splits, "a world in which nothing is ever split compares nothing"
