"""SpiderCast under the faults of scenarios and the search: the same worlds, and what of them it survives.

It promises less than OMen, so less is watched: every topic connected again after a while, no link that only one side
counts for long, and no node that accepts more neighbours, or notes down more, than the protocol allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from omen.errors import InvalidInput
from omen.interests import Label
from omen.protocol.events import SECOND, Left, NodeId, Time
from omen.protocol.messages.overlay import EventId
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.node import SpiderStatus
from omen.sim.membership import Membership
from omen.sim.scenario import Scenario
from omen.sim.spiders import Spiders
from omen.sim.watch import AGREED, BOUNDED, CONNECTED, Bounds, Watch, listed
from omen.sim.world import Heard, World

WATCHED = SpiderConfig(coverage(3, 1), keep_alive=1, silence=3, quarantine=2 * SECOND)
"""(3, 1), with heartbeats as the failure detector: no node is told of losses."""


class SpiderMonitors(Watch):
    """As `Monitors` is to OMen: told of each event, looks at all nodes, records each breach once."""

    population: Spiders

    def __init__(self, population: Spiders, bounds: Bounds | None = None) -> None:
        super().__init__(population, bounds)
        config = population.config
        self._patience = config.time_to_notice + config.heartbeat_period
        self._sizes: dict[tuple[NodeId, int, int], tuple[int, int]] = {}
        self.world.listeners.append(self._hear)

    def note_burst(self) -> None:
        self.last_event = self.last_cause = self.world.now
        self.connected_since = None

    def note_scramble(self) -> None:
        self.note_burst()

    def note_cut(self, sides: Sequence[Sequence[NodeId]]) -> None:
        """The network is cut, or (without sides) whole again."""
        self.note_burst()

    def expect(self, event: EventId) -> None:
        """No node handles an event in SpiderCast: it is only noted that one happened."""
        self.note_burst()

    def expect_requests(self, node: NodeId) -> None:
        """A SpiderCast node asks for no repairs."""

    def note_end(self, node: NodeId, incarnation: int) -> None:
        self.note_burst()

    @property
    def is_settled(self) -> bool:
        """All topics connected, every link agreed on, no node about to act, and heartbeats exchanged since."""
        quiet = self.world.now - self.last_event > self._patience
        return quiet and self.connected_since is not None and not self._one_sided and not self.population.is_busy()

    def check(self) -> None:
        self._check_connected()
        self._check_links()
        for node in self.population.members():
            self._check_sizes(self.population.cores[node].status())

    def _hear(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, Left):
            self.note_burst()

    def _check_connected(self) -> None:
        """After an event a topic may be split more than once until heartbeats have told of all that is lost."""
        now, split = self.world.now, self.split_topics()
        if not split:
            if self.connected_since is None:
                self.connected_since = now
                self.restored.append(now - self.last_event if self._was_split else 0)
                self._was_split = False
            return
        self._was_split, self.connected_since = True, None
        if now - self.last_event > self.bounds.connected + self._patience:
            waited = (now - self.last_event) / SECOND
            self._record(CONNECTED, f"{waited:.1f} s after the last event still split: {listed(split)}")

    def _check_links(self) -> None:
        now, present = self.world.now, set(self.population.one_sided())
        self._one_sided = {pair: self._one_sided.get(pair, now) for pair in sorted(present)}
        patience = self.bounds.one_sided + self._patience
        for (node, other), since in self._one_sided.items():
            if now - max(since, self.last_event) > patience:
                self._record(AGREED, f"{self._name(node)} alone has a link to {self._name(other)}")

    def _check_sizes(self, status: SpiderStatus) -> None:
        """No node accepts a neighbour at L^max + Margin. One that has more was handed them, or wants fewer topics now:
        then they may only become fewer, which takes the consent of others, and may take for ever.
        """
        config, ref = status.config, status.ref
        for number, task in enumerate(status.tasks):
            key, most = (ref.id, ref.incarnation, number), task.most
            degree_before, most_before = self._sizes.get(key, (task.preset, most))
            self._sizes[key] = (task.degree, most)
            asked = config.quarantine // max(config.connect_timeout, 1) + 1  # one in each loop of a quarantine's time
            sizes = [
                ("neighbours", task.degree, max(degree_before, max(most, most_before) + config.margin)),
                ("redirections", len(task.redirected), most),
                ("quarantine", len(task.quarantined), asked + most + config.margin),
            ]
            for what, size, allowed in sizes:
                if size > allowed:
                    self._record(BOUNDED, f"{self._name(ref.id)} has {size} in its {what}, {allowed} at most")


def build_spiders(world: World, scenario: Scenario, places: Mapping[Label, NodeId]) -> Spiders:
    """A population for `Kind`: (3, 1)-coverage with full views, whatever the scenario says about OMen's settings.

    Its heartbeats find losses, so the world tells of none, as it does to OMen's nodes without their detector.
    """
    if any(expected.repair is not None or expected.view is not None for expected in scenario.expect):
        raise InvalidInput("the scenario expects repairs or views of OMen's nodes: SpiderCast's have none")
    world.network = replace(world.network, detection=None)
    return Spiders(world, WATCHED, Membership(world.seed), places)
