"""SpiderCast in the simulator as a system that `replay` can drive: after each instant the nodes settle down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omen.churn import Crash, Event, Join, Resubscribe
from omen.interests import Interests
from omen.overlay import Overlay
from omen.protocol.events import SECOND, Time
from omen.protocol.spidercast.config import SpiderConfig, coverage
from omen.protocol.spidercast.messages import Heartbeat
from omen.sim.latency import uniform
from omen.sim.membership import Membership
from omen.sim.spiders import Spiders
from omen.sim.world import Network, World
from omen.systems import design_overlay
from omen.systems.system import Outcome
from omen.systems.worlds import load_world, save_world

PATIENCE = 60 * SECOND
WATCHING = (Heartbeat.__name__,)


class SpiderSystem:
    """SpiderCast's nodes under churn. Gaps of the trace are cut to `gap_rounds` seconds: a month costs minutes.

    The overlay given covers topics less than the nodes wish: what they add before the first event is told with it.

    `repair_s` is what choosing neighbours took, `handled_s` when the last link had changed. `messages` and `bytes` are
    those of Fig. 4; heartbeats are failure detection, whatever they carry.
    """

    def __init__(self, interests: Interests, overlay: Overlay, workload: Interests, options: Mapping[str, Any]) -> None:
        self._topics = workload.topics_by_node()
        self._gap = int(options["gap_rounds"]) * SECOND
        config = SpiderConfig(coverage(options["kg"], options["kr"]), adaptive=bool(options["adaptive"]))
        self.world = World(options["seed"], Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000)))
        self._membership = Membership(options["seed"], options["view"], timed=True)
        self.spiders = Spiders(self.world, config, self._membership)
        self.spiders.set_up(interests, overlay)
        self._links = set(self.spiders.links())
        self._time_s: float | None = None
        self._settle()

    def apply(self, events: Sequence[Event]) -> list[Outcome]:
        """Let the events happen, wait until all is quiet, and say what it took; the numbers stand with the last."""
        self._pass_time(events[0].time_s)
        started = self.world.now
        before = (self._membership.seconds, self._count(self.world.messages), self._count(self.world.bytes))
        links = self._links
        for event in events:
            self._inject(event)
        handled = self._settle() - started
        now = self._links = set(self.spiders.links())
        degrees = self.spiders.degrees
        nodes = len(self.spiders.members())
        highest, average = max(degrees.values(), default=0), 2 * len(now) / nodes if nodes else 0.0
        return [
            *(Outcome(event, event.node, max_degree=highest, average_degree=average) for event in events[:-1]),
            Outcome(
                events[-1],
                events[-1].node,
                repair_s=self._membership.seconds - before[0],
                handled_s=handled / SECOND,
                links_added=len(now - links),
                links_removed=len(links - now),
                messages=self._count(self.world.messages) - before[1],
                bytes=self._count(self.world.bytes) - before[2],
                max_degree=highest,
                average_degree=average,
            ),
        ]

    @staticmethod
    def _count(counted: Counter[str]) -> int:
        return sum(number for kind, number in counted.items() if kind not in WATCHING)

    def _pass_time(self, time_s: float) -> None:
        gap = 0.0 if self._time_s is None else time_s - self._time_s
        self._time_s = time_s
        self.world.run_until(self.world.now + min(int(gap * SECOND), self._gap))

    def _inject(self, event: Event) -> None:
        if isinstance(event, Join | Resubscribe):
            topics = self._topics.get(event.node, ()) if event.topics is None else event.topics
            (self.spiders.join if isinstance(event, Join) else self.spiders.resubscribe)(event.node, topics)
        elif isinstance(event, Crash):
            self.spiders.crash(event.node)
        else:
            self.spiders.leave(event.node)

    def _settle(self) -> Time:
        """Crashes are noticed before the world can be quiet about them."""
        self.world.run_until(self.world.now + SECOND // 5)
        return self.spiders.settle(self.world.now + PATIENCE, SECOND // 5)

    def snapshot(self) -> tuple[Interests, Overlay]:
        return self.spiders.snapshot()

    def save(self) -> bytes:
        """The whole world, nodes, membership and generators included, as a pickle."""
        return save_world(self)


def restore_spidercast(data: bytes) -> SpiderSystem:
    """Go on from what was saved."""
    return load_world(data, SpiderSystem)


def build_spidercast(
    interests: Interests, overlay: Overlay | None, workload: Interests, options: Mapping[str, Any]
) -> SpiderSystem:
    """SpiderCast on these nodes, from this overlay or Low-ODA's."""
    if overlay is None:
        overlay = design_overlay(interests, "low-oda", rho=options["rho"])
    return SpiderSystem(interests, overlay, workload, options)
