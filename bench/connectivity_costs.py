"""What connectivity 2 costs in the simulator, next to 1: links, messages and bytes, at rest and after losses.

Nodes have the settings of live ones: heartbeats, audit and gossip count. Bytes are those of the messages in their wire
form, without the five of frame and kind and without what a transport adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.net.settings import LIVE
from omen.protocol.events import MILLISECOND, SECOND, Time
from omen.protocol.messages.overlay import CONNECTIVITY
from omen.sim.cut_pairs import cut_pairs
from omen.sim.latency import constant, uniform
from omen.sim.population import Population
from omen.sim.world import Network, World
from omen.systems import design_overlay
from omen.workloads.synthetic import generate_interests

TOPICS_EACH = 6
WARM_UP, REST, AFTER = 40 * SECOND, 40 * SECOND, 20 * SECOND
"""`REST`, `AFTER`: how long is counted at rest, and after each loss: whole rounds of searches and of the audit."""
LOSSES = 5
HEADER = """\
| | k | average degree | maximum | cut pairs | messages at rest | of searches | bytes at rest | of searches \
| messages after a loss | of searches | bytes after a loss | of searches | cut pairs at the end |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


@dataclass(frozen=True)
class Traffic:
    """Per node and second: all messages, those of searches, and the bytes of both."""

    messages: float
    searches: float
    bytes: float
    search_bytes: float

    def __str__(self) -> str:
        return f"{self.messages:.1f} | {self.searches:.1f} | {self.bytes:,.0f} | {self.search_bytes:,.0f}"


def measure_costs(sizes: Iterable[str], seed: int) -> Iterator[str]:
    """The lines of the table. `sizes`: as in 100x20, nodes and topics."""
    yield HEADER
    for size in sizes:
        nodes, topics = map(int, size.split("x"))
        interests = generate_interests(nodes, topics, "uniform", TOPICS_EACH, seed)
        for k in (1, 2):
            row = _row(interests, k, seed)
            yield f"| {nodes:,} nodes, {topics} topics, {TOPICS_EACH} each, uniform | {k} | {row} |"


def _row(interests: Interests, k: int, seed: int) -> str:
    """From Low-ODA's overlay, all nodes of this connectivity; then the node with most links is killed, some times."""
    network = Network(latency=uniform(500, 2_000), detection=None, refusal=constant(MILLISECOND))
    population = Population(World(seed, network), replace(LIVE, connectivity=k), choose_links)
    population.set_up(interests, design_overlay(interests, "low-oda"))
    population.world.run_until(WARM_UP)
    degrees = [len(population.cores[node].links()) for node in population.members()]
    average, cut = sum(degrees) / len(degrees), _cut(population)
    rest = _count(population, REST, 0)
    after = _count(population, AFTER, LOSSES)
    return f"{average:.2f} | {max(degrees)} | {cut} | {rest} | {after} | {_cut(population)}"


def _cut(population: Population) -> int:
    return sum(map(len, cut_pairs(population).values()))


def _count(population: Population, time: Time, losses: int) -> Traffic:
    """What is sent in so much time, or in so much after each of some losses."""
    world = population.world
    before = world.messages, world.bytes
    shares = 0.0
    for _ in range(max(losses, 1)):
        if losses:
            most = max(population.members(), key=lambda node: (len(population.cores[node].links()), node))
            population.crash(population.labels[most])
        world.run_until(world.now + time)
        shares += len(population.members()) * time / SECOND
    messages, sizes = world.messages - before[0], world.bytes - before[1]
    return Traffic(
        messages.total() / shares,
        sum(messages[kind] for kind in CONNECTIVITY) / shares,
        sizes.total() / shares,
        sum(sizes[kind] for kind in CONNECTIVITY) / shares,
    )
