"""OMen in the simulator as a system that `replay` can drive: the nodes repair by themselves, the world is watched."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omen.churn import Crash, Event, Join, Resubscribe
from omen.errors import InvalidInput
from omen.fleet.designing import SIGMA, FleetDesign
from omen.fleet.repairing import AboveCap, above_caps, begin_within
from omen.interests import Interests, Label
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import SECOND, NodeId, RepairFinished, RequestHandled, Time
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import FORBIDDEN_AT_MOST, EventKind, LinkRules
from omen.protocol.messages.overlay import AUDIT, CONNECTIVITY, FAILURE_DETECTION, STORAGE, EventId
from omen.rules import FleetRules, PairRule
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Heard, Network, World
from omen.systems import design_overlay
from omen.systems.system import Outcome, Surroundings
from omen.systems.worlds import load_world, save_world

NOT_COUNTED = (
    *FAILURE_DETECTION,
    *AUDIT,
    *CONNECTIVITY,
    *STORAGE,
)  # failure detection and audit, which are counted apart (omen 6.8)
PATIENCE = 120 * SECOND
WARM_UP_ROUNDS = 25


class TimedEngine:
    """The greedy engine, with the processor time it took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(
        self,
        topics_of: Sequence[Sequence[int]],
        labels_of: Sequence[Sequence[int]],
        degrees: Sequence[int],
        rho: float,
        centre: int,
    ) -> list[tuple[int, int]]:
        before = time.process_time()
        links = choose_links(topics_of, labels_of, degrees, rho, centre)
        self.seconds += time.process_time() - before
        return links


class SimulatedSystem:
    """A population under churn. Gaps of the trace are cut to `gap_rounds` gossip rounds: a month costs minutes."""

    def __init__(
        self,
        interests: Interests,
        overlay: Overlay,
        around: Surroundings,
        options: Mapping[str, Any],
        global_view: bool = False,
    ) -> None:
        self._topics = around.workload.topics_by_node()
        self._rules = None if around.within is None else around.within.rules
        self._gap_rounds = int(options["gap_rounds"])
        self._config = Config(
            resilience=options["resilience"],
            coverage=options["lambda"],
            backups=options["backups"],
            rho=options["rho"],
            repair_rho=options["mend_rho"],
            halo_hops=0 if options["components"] == "literal" else options["halo_hops"],
            redundant_removals=options["removals"],
            global_view=global_view,
            connectivity=options["k"],
            sigma=SIGMA if around.within is None else around.within.sigma,
        )
        network = Network(latency=uniform(500, 2_000), detection=uniform(20_000, 100_000))
        self.world = World(options["seed"], network)
        self._engine = TimedEngine()
        self.population = Population(self.world, self._config, self._engine)
        if self._rules is not None:
            self.population.link_rules.update(link_rules_of(self._rules))
        self.population.set_up(interests, overlay)
        self._time_s: float | None = None
        self._handled: dict[EventId, tuple[Time, int]] = {}
        self.world.listeners.append(self._listen)
        _collect_seldom(self)
        self.world.run_until(WARM_UP_ROUNDS * self._config.gossip_period)
        self._links = self.population.links()

    def _listen(self, _node: NodeId, heard: Heard, now: Time) -> None:
        if isinstance(heard, RepairFinished):
            for event in heard.events:
                self._handled.setdefault(event, (now, heard.members))
        elif isinstance(heard, RequestHandled):
            self._handled.setdefault(heard.event, (now, 0))

    def apply(self, events: Sequence[Event]) -> list[Outcome]:
        """Hand the events to the world, wait until all are repaired, and say what it took."""
        self._pass_time(events)
        started = self.world.now
        before = (self._engine.seconds, self._messages(), self._bytes())
        expected: list[list[EventId]] = []
        for wave in _waves(events, self._config.resilience):
            if expected:
                self.world.run_until(self.world.now + self._config.gossip_period)
            expected.extend(self._inject(event) for event in wave)
        self._wait([key for keys in expected for key in keys])
        links, now = self._links, self.population.links()
        self._links = now
        degrees = _degrees(now, len(self.population.members()))
        outcomes = [self._outcome(event, keys, started, degrees) for event, keys in zip(events, expected, strict=True)]
        last = outcomes[-1]
        outcomes[-1] = Outcome(
            last.event,
            last.node,
            repair_s=self._engine.seconds - before[0],
            handled_s=last.handled_s,
            links_added=len(now - links),
            links_removed=len(links - now),
            shadow_size=last.shadow_size,
            messages=self._messages() - before[1],
            bytes=self._bytes() - before[2],
            max_degree=degrees[0],
            average_degree=degrees[1],
            above=self._above(),
        )
        return outcomes

    def _above(self) -> tuple[AboveCap, ...] | None:
        if self._rules is None:
            return None
        overlay = self.snapshot()[1]
        return above_caps(overlay, self._rules.restricted(overlay.nodes))

    def _outcome(self, event: Event, keys: Sequence[EventId], started: Time, degrees: tuple[int, float]) -> Outcome:
        handled = [self._handled[key] for key in keys if key in self._handled]
        return Outcome(
            event,
            event.node,
            handled_s=max((at - started for at, _ in handled), default=0) / SECOND if handled else None,
            shadow_size=max((members for _, members in handled), default=None),
            max_degree=degrees[0],
            average_degree=degrees[1],
        )

    def _pass_time(self, events: Sequence[Event]) -> None:
        time_s = events[0].time_s
        gap = 0.0 if self._time_s is None else time_s - self._time_s
        self._time_s = time_s
        longest = self._gap_rounds * self._config.gossip_period
        self.world.run_until(self.world.now + min(int(gap * SECOND), longest))

    def _inject(self, event: Event) -> list[EventId]:
        """Let it happen; what the nodes will call it."""
        population = self.population
        node = population.place(event.node)
        if isinstance(event, Join):
            population.join(event.node, self._topics_of(event.node, event.topics))
            return [EventId(node, self.world.places[node].incarnation, EventKind.JOIN)]
        incarnation = self.world.places[node].incarnation
        if isinstance(event, Resubscribe):
            had = population.wanted(node)
            version = population.cores[node].status().me.digest.topics_version + 1
            population.resubscribe(event.node, self._topics_of(event.node, event.topics))
            wants = population.wanted(node)
            kinds = [kind for kind, topics in ((EventKind.ADD, wants - had), (EventKind.DROP, had - wants)) if topics]
            return [EventId(node, incarnation, kind, version) for kind in kinds]
        if isinstance(event, Crash):
            population.crash(event.node)
        else:
            population.leave(event.node)
        return [EventId(node, incarnation, EventKind.LEAVE)]

    def _topics_of(self, label: Label, topics: Sequence[Label] | None) -> Sequence[Label]:
        return self._topics.get(label, ()) if topics is None else topics

    def _wait(self, expected: Sequence[EventId]) -> None:
        """Until every event is handled, and no node has anything left to repair, to make or to report."""
        limit = self.world.now + PATIENCE
        self.world.run_while(lambda: any(event not in self._handled for event in expected), limit)
        while self.population.is_busy() and self.world.now < limit:
            self.world.run_until(self.world.now + self._config.answer_timeout)

    def _messages(self) -> int:
        return sum(count for kind, count in self.world.messages.items() if kind not in NOT_COUNTED)

    def _bytes(self) -> int:
        return sum(count for kind, count in self.world.bytes.items() if kind not in NOT_COUNTED)

    def snapshot(self) -> tuple[Interests, Overlay]:
        return self.population.snapshot()

    def save(self) -> bytes:
        """The whole world, nodes and generators included, as a pickle."""
        return save_world(self)


def restore_omen(data: bytes) -> SimulatedSystem:
    """Go on from what was saved."""
    system = load_world(data, SimulatedSystem)
    _collect_seldom(system)
    return system


def build_omen(
    interests: Interests,
    overlay: Overlay | None,
    around: Surroundings,
    options: Mapping[str, Any],
    global_view: bool = False,
) -> SimulatedSystem:
    """OMen on these nodes, or OMen-G, from this overlay or Low-ODA's, within the rules of a fleet."""
    within = around.within
    if overlay is None and within is not None:
        design = FleetDesign(options["rho"], within.sigma)
        overlay = begin_within(interests, within.rules.restricted(interests.nodes), design)
    if overlay is None:
        overlay = design_overlay(interests, "low-oda", rho=options["rho"])
    return SimulatedSystem(interests, overlay, around, options, global_view)


def link_rules_of(rules: FleetRules) -> dict[Label, LinkRules]:
    """The rules as nodes say them of their own links; InvalidInput where nodes cannot say them."""
    if rules.held.link_count or rules.has_costs_of_pairs:
        raise InvalidInput(
            "nodes that repair by themselves know max_links, zones and forbidden pairs, but neither require, keep nor"
            " costs of pairs"
        )
    labels = rules.nodes.tolist()
    forbid: dict[Label, list[NodeId]] = {}
    for u, v in zip(*(ends.tolist() for ends in rules.pairs_of(PairRule.FORBID)), strict=True):
        one, other = (u, v) if len(forbid.get(labels[u], ())) < FORBIDDEN_AT_MOST else (v, u)
        forbid.setdefault(labels[one], []).append(place_of(str(labels[other])))
    found: dict[Label, LinkRules] = {}
    for code, label in enumerate(labels):
        cap, banned = rules.cap_of(code), tuple(sorted(forbid.get(label, ())))
        if cap == 0 or len(banned) > FORBIDDEN_AT_MOST:
            why = "may have no link at all" if cap == 0 else f"has over {FORBIDDEN_AT_MOST} forbidden pairs"
            raise InvalidInput(f"node {label!r} {why}, which nodes that repair by themselves cannot say")
        zone = rules.zone_names[rules.zones[code]]
        if cap is not None or zone or banned:
            found[label] = LinkRules(cap or 0, zone, banned)
    return found


def _collect_seldom(system: SimulatedSystem) -> None:
    """As long as there is this system, look for cyclic garbage seldom: of a world next to nothing is in cycles, and
    every search goes through millions of things.
    """
    weakref.finalize(system, gc.set_threshold, *gc.get_threshold())
    gc.set_threshold(1_000_000, 10, 10)


def _waves(events: Sequence[Event], most: int) -> Iterator[list[Event]]:
    """At most L losses at once; the rest of an instant a gossip round later."""
    wave: list[Event] = []
    losses = 0
    for event in events:
        loss = not isinstance(event, Join)
        if loss and losses == most:
            yield wave
            wave, losses = [], 0
        wave.append(event)
        losses += loss
    yield wave


def _degrees(links: set[tuple[NodeId, NodeId]], nodes: int) -> tuple[int, float]:
    counts: dict[NodeId, int] = {}
    for pair in links:
        for end in pair:
            counts[end] = counts.get(end, 0) + 1
    return max(counts.values(), default=0), 2 * len(links) / nodes if nodes else 0.0
