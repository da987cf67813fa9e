"""SpiderCast under the faults of scenarios and the search: the same worlds, and what of them it survives.

It promises less than OMen, so less is watched: every topic connected again after a while, no link that only one side
counts for long, and no node with more neighbours or notes than the protocol allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from omen.interests import Label
from omen.protocol.events import SECOND, NodeId, Notify, Time
from omen.protocol.messages import EventId
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.node import SpiderNode
from omen.quality import check_overlay
from omen.sim.membership import Membership
from omen.sim.monitors import AGREED, BOUNDED, WHOLE, Bounds, Violation
from omen.sim.scenario import Scenario
from omen.sim.spiders import Spiders
from omen.sim.world import World

WATCHED = SpiderConfig(coverage(3, 1), keep_alive=1, silence=3, quarantine=2 * SECOND)
"""(3, 1), with heartbeats that are a failure detector as well: no driver need tell of losses."""


class WatchedSpider(SpiderNode):
    """A node with the parts that scenarios ask OMen's nodes about, as far as it has any."""

    @property
    def requests(self) -> Any:
        """It asks nobody for repairs."""
        return SimpleNamespace(open=())

    @property
    def book(self) -> Any:
        return SimpleNamespace(me=SimpleNamespace(topics=self.me.interest))

    @property
    def audit(self) -> Any:
        """Nobody leads anything."""
        return SimpleNamespace(labels=SimpleNamespace(leads=lambda topic: False))

    @property
    def links(self) -> Any:
        return SimpleNamespace(up=self.neighbours, drop=self.forget)

    def forget(self, node: NodeId) -> None:
        """Lose a neighbour without anybody being told, as no protocol would."""
        for task in self.tasks:
            if task.neighbours.remove(node) is not None:
                self._note_link(node, None)


class WatchedSpiders(Spiders):
    core = WatchedSpider


class SpiderMonitors:
    """As `Monitors` is to OMen: told of each event, looks at everybody, records each breach once."""

    def __init__(self, population: Spiders, bounds: Bounds | None = None) -> None:
        self.population = population
        self.world = population.world
        self.bounds = bounds or Bounds()
        self.violations: list[Violation] = []
        self.whole_since: Time | None = None
        self.last_event: Time = 0
        self.last_cause: Time = 0
        self.restored: list[Time] = []
        self.renewals = 0
        self._one_sided: dict[tuple[NodeId, NodeId], Time] = {}
        self._reported: set[tuple[str, str]] = set()
        self.world.listeners.append(self._hear)

    def note_burst(self) -> None:
        self.last_event = self.last_cause = self.world.now
        self.whole_since = None

    def expect(self, event: EventId) -> None:
        """Nobody handles an event in SpiderCast: it is only noted that one happened."""
        self.note_burst()

    def note_end(self, node: NodeId, incarnation: int) -> None:
        self.note_burst()

    def refused(self) -> dict[str, int]:
        return {}

    def broken_topics(self) -> list[Label]:
        verdict = check_overlay(*self.population.snapshot())
        return sorted((topic.topic for topic in verdict.broken), key=str)

    @property
    def is_settled(self) -> bool:
        """Whole, every link agreed on, nobody about to do anything, and heartbeats have been all round since."""
        quiet = self.world.now - self.last_event > (WATCHED.silence + 2) * WATCHED.heartbeat_period
        return quiet and self.whole_since is not None and not self._one_sided and not self.population.is_busy()

    def check(self) -> None:
        self._check_whole()
        self._check_links()
        for node in self.population.members():
            self._check_sizes(self.population.cores[node])

    def _hear(self, node: NodeId, notice: Notify, time: Time) -> None:
        if notice.what == "left":
            self.note_burst()

    def _check_whole(self) -> None:
        """After an event a topic may be split more than once until heartbeats have told of all that is lost."""
        now, broken = self.world.now, self.broken_topics()
        if not broken:
            if self.whole_since is None:
                self.whole_since = now
                self.restored.append(now - self.last_event)
        elif now - self.last_event > self.bounds.whole:
            shown = ", ".join(map(str, broken[:5]))
            self._record(WHOLE, f"{self.bounds.whole / SECOND:.0f} s after the last event still split: {shown}")
            self.whole_since = None
        else:
            self.whole_since = None

    def _check_links(self) -> None:
        now, present = self.world.now, set(self.population.one_sided())
        self._one_sided = {pair: self._one_sided.get(pair, now) for pair in sorted(present)}
        patience = self.bounds.one_sided + (WATCHED.silence + 2) * WATCHED.heartbeat_period
        for (node, other), since in self._one_sided.items():
            if now - max(since, self.last_event) > patience:
                self._record(AGREED, f"{self._name(node)} alone has a link to {self._name(other)}")

    def _check_sizes(self, core: SpiderNode) -> None:
        everybody = len(self.population.cores)
        for task in core.tasks:
            sizes = [
                ("neighbours", task.degree, everybody),
                ("redirections", len(task.redirected), everybody),
                ("quarantine", len(task.quarantined), everybody),
            ]
            for what, size, most in sizes:
                if size > most:
                    self._record(BOUNDED, f"{self._name(core.ref.id)} has {size} in its {what}, {most} at most")

    def _name(self, node: NodeId) -> str:
        return str(self.population.labels.get(node, node))

    def _record(self, monitor: str, what: str) -> None:
        if (monitor, what) not in self._reported:
            self._reported.add((monitor, what))
            self.violations.append(Violation(self.world.now, self.world.seed, monitor, what))


def build_spiders(world: World, scenario: Scenario, places: Mapping[Label, NodeId]) -> WatchedSpiders:
    """A population for `Kind`: (3, 1)-coverage with full views, whatever the scenario says about OMen's settings."""
    return WatchedSpiders(world, WATCHED, Membership(world.seed), places)
