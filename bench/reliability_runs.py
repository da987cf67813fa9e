"""What keeping watch costs, how fast losses are noticed, how well links come back, whether anything grows with time."""

from __future__ import annotations

import gc
import pickle
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omen.design import ALGORITHMS, resolve_options
from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import MILLISECOND, SECOND, NodeId, PeerDeclaredFailed, Rejoined, Time
from omen.protocol.messages.overlay import AUDIT, FAILURE_DETECTION
from omen.quality import check_overlay
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Heard, Network, World, generator_for
from omen.workloads import generate_interests

GOSSIP = ("Shuffle", "ShuffleReply", "Offer", "Details", "Want", "Status")
KINDS: Mapping[str, tuple[str, ...]] = {"heartbeats": FAILURE_DETECTION, "gossip": GOSSIP, "audit": AUDIT}
STEP = 100 * MILLISECOND
APART = 40 * SECOND


def start_world(
    interests: Interests, config: Config, seed: int = 0, loss: float = 0.0, told: bool = False
) -> tuple[World, Population]:
    """A population on the overlay that Low-ODA designs; `told`: the simulator tells of losses."""
    detection = uniform(20 * MILLISECOND, 200 * MILLISECOND) if told else None
    world = World(seed, Network(latency=uniform(500, 5_000), loss=loss, detection=detection))
    population = Population(world, config, choose_links)
    population.set_up(interests, design(interests))
    return world, population


def design(interests: Interests) -> Overlay:
    algorithm = ALGORITHMS["low-oda"]
    return algorithm.build(interests, **resolve_options(algorithm, {}))


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes a second a node while all is well, by kind."""

    topics_a_node: float
    links_a_node: float
    bytes_a_second: dict[str, float]
    messages_a_second: dict[str, float]


def measure_cost(nodes: int, topics: int, sizes: str, seconds: int, seed: int = 0) -> Cost:
    """Everything on, nothing happens: what is sent after all has settled."""
    interests = generate_interests(nodes, topics, "uniform", sizes, seed)
    config = Config(detector=True, audit=True)
    world, population = start_world(interests, config, seed)
    world.run_until(6 * config.audit_period)
    before, messages, start = Counter(world.bytes), Counter(world.messages), world.now
    world.run_until(world.now + seconds * SECOND)
    spent = (world.now - start) / SECOND * nodes

    def by_kind(counted: Counter[str], earlier: Counter[str]) -> dict[str, float]:
        rest = {kind: counted[kind] - earlier[kind] for kind in counted}
        found = {name: sum(rest.pop(kind, 0) for kind in kinds) / spent for name, kinds in KINDS.items()}
        return found | {"other": sum(rest.values()) / spent}

    subscriptions = sum(len(core.topics) for core in population.cores.values())
    return Cost(
        subscriptions / nodes,
        2 * len(population.links()) / nodes,
        by_kind(world.bytes, before),
        by_kind(world.messages, messages),
    )


@dataclass(slots=True)
class Watching:
    """How losses were noticed. Times in seconds, one for each node that had watched the lost one."""

    noticed_s: list[float] = field(default_factory=list)
    node_hours: float = 0.0
    suspicions: int = 0
    false_losses: int = 0
    rejoins: int = 0
    whole: bool = True


class Watcher:
    """Listens for nodes that are taken for gone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.found = Watching()
        self.crashed: dict[NodeId, Time] = {}
        world.listeners.append(self.hear)

    def hear(self, _: NodeId, heard: Heard, now: Time) -> None:
        if isinstance(heard, PeerDeclaredFailed):
            at = self.crashed.get(heard.peer.id)
            if at is not None and now - at <= APART:
                self.found.noticed_s.append((now - at) / SECOND)
            elif at is None:
                self.found.false_losses += 1
        elif isinstance(heard, Rejoined):
            self.found.rejoins += 1


def measure_detection(loss: float, seconds: int = 300, crashes: int = 5, nodes: int = 30, seed: int = 0) -> Watching:
    """Nothing happens for a while, then nodes crash one by one."""
    interests = generate_interests(nodes, nodes // 2, "uniform", "uniform:2:6", seed)
    world, population = start_world(interests, Config(detector=True, audit=True), seed, loss)
    watcher = Watcher(world)
    world.run_until(20 * SECOND)
    start = world.now
    world.run_until(start + seconds * SECOND)
    watcher.found.node_hours = nodes * seconds / 3600
    watcher.found.suspicions = sum(core.status().membership.suspicions for core in population.cores.values())
    wrongly = watcher.found.rejoins
    draw = generator_for(seed, "crashes")
    for _ in range(crashes):
        members = population.members()
        node = members[draw.randrange(len(members))]
        watcher.crashed[node] = world.now
        population.crash(population.labels[node])
        world.run_until(world.now + APART)
    watcher.found.rejoins = wrongly
    patience = world.now + 3 * population.config.audit_period  # where so much is lost, the audit may have to help
    while not is_whole(population) and world.now < patience:
        world.run_until(world.now + SECOND)
    watcher.found.whole = is_whole(population)
    return watcher.found


def measure_pause(pause_s: float, loss: float = 0.0, pauses: int = 5, nodes: int = 30, seed: int = 0) -> Watching:
    """Nodes stand still one by one and go on: who takes them for gone, and are topics whole afterwards?"""
    interests = generate_interests(nodes, nodes // 2, "uniform", "uniform:2:6", seed)
    world, population = start_world(interests, Config(detector=True, audit=True), seed, loss)
    watcher = Watcher(world)
    world.run_until(20 * SECOND)
    draw = generator_for(seed, "pauses")
    for _ in range(pauses):
        members = population.members()
        node = members[draw.randrange(len(members))]
        world.pause(node)
        world.run_until(world.now + int(pause_s * SECOND))
        world.resume(node)
        world.run_until(world.now + 30 * SECOND)
        watcher.found.whole &= is_whole(population)
    return watcher.found


def is_whole(population: Population) -> bool:
    return check_overlay(*population.snapshot()).topic_connected


@dataclass(frozen=True, slots=True)
class Healing:
    """How an overlay came back after losing links at once. `periods`: of the audit, until every topic was whole."""

    links: int
    dropped: int
    split: int
    periods: float
    added: int
    max_degree: int
    average_degree: float
    engine_added: int
    engine_max_degree: int
    engine_average_degree: float
    fresh_links: int
    fresh_max_degree: int
    fresh_average_degree: float
    audit_bytes_a_node: float


def measure_dropped_links(
    interests: Interests, share: float = 0.3, config: Config | None = None, seed: int = 0, limit: int = 4
) -> Healing:
    """Take a share of the links away at both ends without a word; the audit alone brings the topics back.

    Next to it what the engine does that sees everything: with the links that are left, and from nothing.
    """
    settings = config or Config(audit=True)
    world, population = start_world(interests, settings, seed, told=True)
    world.run_until(2 * settings.audit_period)
    links = sorted(population.links())
    gone = generator_for(seed, "dropped").sample(links, round(share * len(links)))
    for one, other in gone:
        population.cores[one].drop_link(other)
        population.cores[other].drop_link(one)
    left = population.links()
    seen, overlay = population.snapshot()
    split = len(check_overlay(seen, overlay).failing)
    mended = mend_centrally(seen, overlay)
    fresh = design(interests)
    start, before = world.now, Counter(world.bytes)
    while not is_whole(population) and world.now < start + limit * settings.audit_period:
        world.run_until(world.now + 10 * STEP)
    took = (world.now - start) / settings.audit_period
    audit_bytes = sum(world.bytes[kind] - before[kind] for kind in AUDIT)
    now = population.links()
    after = population.snapshot()[1].degrees
    return Healing(
        len(links),
        len(gone),
        split,
        took,
        len(now - left),
        int(after.max()),
        float(after.mean()),
        mended.u.size - overlay.u.size,
        int(mended.degrees.max()),
        float(mended.degrees.mean()),
        int(fresh.u.size),
        int(fresh.degrees.max()),
        float(fresh.degrees.mean()),
        audit_bytes / len(population.cores),
    )


def mend_centrally(interests: Interests, overlay: Overlay) -> Overlay:
    """The greedy engine on everything there is, the present links kept: LowODA-Inc, all at once."""
    import numpy as np

    offsets, neighbours = overlay.adjacency
    topics_of = [interests.topics_of(node).tolist() for node in range(interests.nodes.size)]
    wanted = [set(topics) for topics in topics_of]
    labels_of: list[list[int]] = [[0] * len(topics) for topics in topics_of]
    position = [{topic: at for at, topic in enumerate(topics)} for topics in topics_of]
    for topic in range(interests.topics.size):
        seen: set[int] = set()
        for start in interests.subscribers_of(topic).tolist():
            queue = [] if start in seen else [start]
            seen.add(start)
            while queue:
                node = queue.pop()
                labels_of[node][position[node][topic]] = start
                for other in neighbours[offsets[node] : offsets[node + 1]].tolist():
                    if other not in seen and topic in wanted[other]:
                        seen.add(other)
                        queue.append(other)
    pairs = choose_links(topics_of, labels_of, overlay.degrees.tolist(), 3.0, -1)
    new = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    ends = [np.concatenate((old, new[:, side])) for side, old in enumerate((overlay.u, overlay.v))]
    return Overlay.from_codes(overlay.nodes, ends[0], ends[1])


@dataclass(frozen=True, slots=True)
class Sample:
    """How a world is after so many events of churn."""

    events: int
    state_bytes: int
    resident_mb: float
    max_degree: int
    average_degree: float
    seconds_an_event: float
    steps_an_event: float
    split: int


class Churn:
    """One world in which nodes come and go for ever. Can be saved and gone on with."""

    def __init__(self, nodes: int = 200, topics: int = 40, every: Time = SECOND // 2, seed: int = 0) -> None:
        interests = generate_interests(nodes, topics, "uniform", "uniform:2:6", seed)
        config = Config(coverage=1, ready_rounds=3, gossip_period=4 * SECOND)
        self.world, self.population = start_world(interests, config, seed, told=True)
        self.world.run_until(30 * SECOND)
        self.topics = [f"t{topic}" for topic in range(topics)]
        self.every = every
        self.done = 0
        self._names = interests.topics.tolist()
        self._present = [str(label) for label in interests.nodes.tolist()]
        self._labels = {str(label): label for label in interests.nodes.tolist()}
        self._absent: list[str] = []
        self._draw = generator_for(seed, "churn")

    def run(self, events: int, each: int) -> Iterator[Sample]:
        """So many events, joins and crashes in turn as the draw wills, with a sample after each so many."""
        started, steps = time.process_time(), self.world.processed
        for _ in range(events):
            self._happen()
            self.world.run_until(self.world.now + self.every)
            self.done += 1
            if self.done % each == 0:
                yield self._sample((time.process_time() - started) / each, (self.world.processed - steps) / each)
                started, steps = time.process_time(), self.world.processed

    def _happen(self) -> None:
        draw = self._draw
        if self._absent and (draw.randrange(2) or len(self._absent) > 10):
            name = self._absent.pop(draw.randrange(len(self._absent)))
            topics = sorted(draw.sample(self._names, draw.randint(2, 6)))
            self.population.join(self._labels[name], topics)
            self._present.append(name)
        else:
            name = self._present.pop(draw.randrange(len(self._present)))
            if draw.randrange(4):
                self.population.crash(self._labels[name])
            else:
                self.population.leave(self._labels[name])
            self._absent.append(name)

    def _sample(self, seconds: float, steps: float) -> Sample:
        self.world.run_until(self.world.now + 20 * SECOND)
        gc.collect()
        interests, overlay = self.population.snapshot()
        return Sample(
            self.done,
            len(pickle.dumps((self.world, self.population), protocol=5)),
            resident_mb(),
            int(overlay.degrees.max()),
            float(overlay.degrees.mean()),
            seconds,
            steps,
            len(check_overlay(interests, overlay).failing),
        )


def resident_mb() -> float:
    """What this process holds now; the most it ever held where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
