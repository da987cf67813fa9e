"""Random clusters of nodes that are to be dispensable, judged from outside by another implementation (networkx).

    python -m tests.simulation.dispensable [--first 0] [--count 100]

The worlds of `omen simulate --search --worlds twofold` once more, with what those have not: nodes of setting 1 among
those of 2, `max_links`, hosts that refuse, pairs of nodes that cannot reach each other. Must hold 30 s after the last
event: no node of setting 2 cuts a topic, or it counts those that it cuts (`cut_topics`) where a limit or such a pair
leaves no way; nothing is proposed any more, no link changes. Then nodes that cut nothing crash, one by one: no topic
is split at any tenth of a second. Exit code 1: it does not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

import networkx as nx
from msgspec import structs

from omen.protocol.events import SECOND, NodeId, Topic
from omen.protocol.messages.base import Ref
from omen.protocol.node import OmenNode
from omen.sim.drawing import draw_refusing, draw_within
from omen.sim.population import Population
from omen.sim.running import Run

SHARES = (1.0, 1.0, 1.0, 0.8, 0.5, 0.2)
LIMITS = (0, 0, 0, 4, 6, 9)
WORDS_OF_LINKS = ("LinkProposal", "LinkOpen", "LinkClose")
PLAIN = Population._core


class Case:
    """One cluster. `settings`: the connectivity of each node, drawn when it is first made."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(f"dispensable {seed}")
        scenario = draw_refusing(seed) if draw.random() < 0.6 else draw_within(seed)
        self.share, self.limit = draw.choice(SHARES), draw.choice(LIMITS)
        self.is_lossy = scenario.network.loss > 0
        config = structs.replace(scenario.config, connectivity_ms=500.0, max_links=self.limit)
        self.settings: dict[NodeId, int] = {}
        self.run = Run(structs.replace(scenario, config=config), seed)
        self.out_of_reach = draw.random() < 0.2

    @property
    def population(self) -> Population:
        return self.run.population

    def setting(self, node: NodeId) -> int:
        return self.settings.setdefault(node, 2 if self.draw.random() < self.share else 1)

    def core(
        self, population: Population, node: NodeId, incarnation: int, topics: Iterable[Topic], contacts: Sequence[Ref]
    ) -> OmenNode:
        """A node of its own setting; the others are those of all."""
        config, population.config = population.config, replace(population.config, connectivity=self.setting(node))
        try:
            return PLAIN(population, node, incarnation, topics, contacts)
        finally:
            population.config = config

    def graphs(self) -> dict[Topic, nx.Graph]:
        """The members that have each topic, and the links between them."""
        topics = {node: set(self.population.cores[node].topics) for node in self.population.members()}
        found: dict[Topic, nx.Graph] = {}
        for node, theirs in topics.items():
            for topic in theirs:
                found.setdefault(topic, nx.Graph()).add_node(node)
        for one, other in self.population.links():
            for topic in topics[one] & topics[other]:
                found[topic].add_edge(one, other)
        return found

    def cuts(self) -> dict[NodeId, int]:
        """How many topics each node cuts."""
        found: dict[NodeId, int] = {}
        for graph in self.graphs().values():
            for node in nx.articulation_points(graph):
                found[node] = found.get(node, 0) + 1
        return found

    def is_split(self) -> bool:
        return any(nx.number_connected_components(graph) > 1 for graph in self.graphs().values())

    def go(self) -> list[str]:
        """What does not hold in the end."""
        with patch.object(Population, "_core", lambda *given: self.core(*given)):
            outcome = self.run.go()
            complaints = outcome.complaints()
            if self.out_of_reach:
                self.mute_some()
            self.wait(30)
            return complaints + self.judge_rest() + [line for _ in range(3) for line in self.crash_one()]

    def wait(self, seconds: float) -> None:
        self.run.world.run_until(self.run.world.now + int(seconds * SECOND))

    def mute_some(self) -> None:
        """Nodes that are not linked yet, and cannot be."""
        members, linked = self.population.members(), self.population.links()
        pairs = [(one, other) for one in members for other in members if one < other and (one, other) not in linked]
        self.run.world.mute(self.draw.sample(pairs, len(pairs) // 8))

    def judge_rest(self) -> list[str]:
        messages, links = dict(self.run.world.messages), self.population.links()
        self.wait(20)
        new = {word: self.run.world.messages[word] - messages.get(word, 0) for word in WORDS_OF_LINKS}
        complaints = [f"{count} {word} at rest" for word, count in new.items() if count and not self.is_disturbed]
        if self.population.links() != links and not self.is_disturbed:
            complaints.append("links change at rest")
        return complaints + self.judge_cuts(self.cuts())

    @property
    def is_disturbed(self) -> bool:
        """Nodes that do not answer may have links that no asker knows of."""
        return self.is_lossy or self.out_of_reach

    def judge_cuts(self, cuts: Mapping[NodeId, int]) -> list[str]:
        complaints = []
        for node in self.population.members():
            name, cut = self.population.labels[node], cuts.get(node, 0)
            said = self.population.cores[node].status().cut_topics
            if self.setting(node) == 2 and cut and not self.limit and not self.out_of_reach:
                complaints.append(f"{name} cuts {cut} topics")
            if self.setting(node) == 2 and said != cut and not self.is_disturbed:
                complaints.append(f"{name} says that it cuts {said} topics, and cuts {cut}")
        return complaints

    def crash_one(self) -> list[str]:
        cuts = self.cuts()
        members = [node for node in self.population.members() if node not in cuts]
        if len(members) < 5 or self.is_split() or self.out_of_reach:
            return []
        name = str(self.population.labels[self.draw.choice(members)])
        self.population.crash(name)
        for tenth in range(100):
            self.wait(0.1)
            if self.is_split():
                return [f"the crash of {name} split a topic after {tenth / 10} s"]
        self.wait(20)
        left = [node for node in self.cuts() if self.setting(node) == 2]
        return [f"{len(left)} nodes cut topics 30 s after the crash of {name}"] if left and not self.limit else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.first, asked.first + asked.count):
        complaints = Case(seed).go()
        failed += bool(complaints)
        for line in complaints:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{asked.count} clusters, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
