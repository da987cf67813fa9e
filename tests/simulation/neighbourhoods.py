"""Random neighbourhoods of disseminating nodes: bursts after silence, newcomers, crashes, links that break, losses.

    python -m tests.simulation.neighbourhoods [--first 0] [--count 1000]

Must hold for each node that is there in the end: what was published after it was linked, as far as any node knows it,
was delivered to it in order and once, or told as a gap; and nothing waits 10 s after all is calm. Exit code 1: it does
not. Publishers are silent for up to 70 s and then say a hundred things at once, which worlds under load do not.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from itertools import count, pairwise

from omen.protocol.events import MILLISECOND, SECOND, Deliver, NodeId
from unit.protocol.dissemination.neighbourhood import TOPIC, Neighbourhood

LATENCIES_MS = (1, 1, 2, 5, 20, 20, 80, 300)
PAUSES_MS = (0, 1, 20, 100, 300, 1000, 1000, 2500, 6000, 25_000, 70_000)
CALM_MS = 10_500
Stream = tuple[NodeId, int]


class Case:
    """One neighbourhood from its start to its end. `published`: when, by stream and sequence; `linked`: since when."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(f"neighbourhood {seed}")
        nodes = draw.randint(2, 7)
        links = {(draw.randint(1, node - 1), node) for node in range(2, nodes + 1)}
        for _ in range(draw.randint(0, nodes)):
            one, other = sorted(draw.sample(range(1, nodes + 1), 2))
            links.add((one, other))
        settings: dict[str, int] = {"window_age": draw.choice([3, 20, 20, 20]) * SECOND}
        if draw.random() < 0.6:
            settings |= {"graft_delay": SECOND, "pull_retry": SECOND // 2, "retell_period": SECOND}
        if draw.random() < 0.4:
            settings["total_window_bytes"] = draw.choice([10_000, 40_000, 100_000])
        self.nodes = Neighbourhood(links, **settings)
        latencies: dict[frozenset[NodeId], int] = {}
        self.nodes.latency = lambda one, other: latencies.setdefault(
            frozenset((one, other)), draw.choice(LATENCIES_MS) * MILLISECOND
        )
        self.cut: set[frozenset[NodeId]] = set()
        self.nodes.drops = lambda one, other, _: frozenset((one, other)) in self.cut
        self.linked: dict[NodeId, int | None] = dict.fromkeys(self.nodes.parts, -1)
        self.published: dict[Stream, dict[int, int]] = {}
        self._next = nodes + 1
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, milliseconds: float, action: Callable[[], None]) -> None:
        self._later.append((self.nodes.now + int(milliseconds * MILLISECOND), next(self._order), action))

    def run(self, milliseconds: float) -> None:
        end = self.nodes.now + int(milliseconds * MILLISECOND)
        while self._later and min(self._later)[0] <= end:
            first = min(self._later)
            self._later.remove(first)
            self.nodes.run(max(0, first[0] - self.nodes.now) / MILLISECOND)
            first[2]()
        self.nodes.run((end - self.nodes.now) / MILLISECOND)

    def _burst(self) -> None:
        node, size = self.draw.choice(sorted(self.nodes.parts)), self.draw.choice([1, 100, 1000, 5000])
        gap = self.draw.choice([0, 0, 1, 5, 20, 50])
        for number in range(self.draw.choice([1, 3, 10, 30, 100])):
            self.at(number * gap, lambda: self._publish(node, size))

    def _publish(self, node: NodeId, size: int) -> None:
        if node in self.nodes.parts:
            sequence = self.nodes.publish(node, bytes(size))
            stream = self.published.setdefault((node, self.nodes.incarnations[node]), {})
            stream[sequence] = self.nodes.now

    def _join(self) -> None:
        nodes, new = self.nodes, self._next
        self._next += 1
        near = self.draw.sample(sorted(nodes.parts), min(self.draw.choice([1, 1, 1, 2, 3]), len(nodes.parts)))
        if self.draw.random() < 0.3:
            near = [max(nodes.parts)]  # a newcomer too, as a rule
        if self.draw.random() < 0.15:
            self._join_alone(new, near[0])
            return
        nodes.waiting.add(new)
        nodes.add(new)
        self.linked[new] = None
        nodes.link(near[0], new)
        for other in near[1:]:
            self.at(self.draw.choice([0, 5, 50, 500, 1500]), lambda other=other: self._link(other, new))  # type: ignore[misc]
        self.at(self.draw.choice([0, 5, 50, 300, 1500]), lambda: self._is_joined(new))
        if self.draw.random() < 0.5:  # the moment that matters
            self.at(self.draw.choice([0, 5, 10, 50, 400]), self._burst)

    def _join_alone(self, new: NodeId, near: NodeId) -> None:
        """Taken in without a link, as one of two newcomers whose joins were handled at the same time."""
        self.nodes.add(new)
        self.linked[new] = self.nodes.now
        self.at(self.draw.choice([0, 50, 1000, 3000, 11_000, 15_000]), lambda: self._link(near, new))
        for _ in range(self.draw.randint(0, 2)):
            self.at(self.draw.choice([0, 5, 400, 2000, 9000]), self._burst)

    def _is_joined(self, node: NodeId) -> None:
        if node in self.nodes.parts:
            self.nodes.waiting.discard(node)
            self.nodes.refresh()
            self.linked[node] = self.nodes.parts[node].topics[TOPIC].linked_at

    def _link(self, one: NodeId, other: NodeId) -> None:
        if one in self.nodes.parts and other in self.nodes.parts:
            self.nodes.link(one, other)

    def _crash(self) -> None:
        if len(self.nodes.parts) < 3:
            return
        node = self.draw.choice(sorted(self.nodes.parts))
        near = self._near(node)
        self.nodes.crash(node)
        self.nodes.waiting.discard(node)
        if self.draw.random() < 0.6:
            for other in near:
                self.nodes.broken(other, node)
        self.at(self.draw.choice([10, 200, 1500, 4000]), self._repair)

    def _repair(self) -> None:
        self.nodes.refresh()
        while len(pieces := self._pieces()) > 1:
            self.nodes.link(self.draw.choice(sorted(pieces[0])), self.draw.choice(sorted(pieces[1])))

    def _near(self, node: NodeId) -> list[NodeId]:
        return sorted(other for link in self.nodes.links if node in link for other in link if other != node)

    def _pieces(self) -> list[set[NodeId]]:
        left, found = set(self.nodes.parts), []
        while left:
            reached, todo = set[NodeId](), [min(left)]
            while todo:
                node = todo.pop()
                if node not in reached:
                    reached.add(node)
                    todo += [other for other in self._near(node) if other in left]
            found.append(reached)
            left -= reached
        return found

    def _break(self) -> None:
        """A connection is down for a while; both ends see it."""
        link = self.draw.choice(sorted(map(sorted, self.nodes.links)))
        one, other = link
        if frozenset(link) in self.cut or not {one, other} <= self.nodes.parts.keys():
            return
        self.cut.add(frozenset(link))
        self.nodes.broken(one, other)
        self.nodes.broken(other, one)
        self.at(self.draw.choice([5, 50, 400, 2500]), lambda: self._mend(one, other))

    def _mend(self, one: NodeId, other: NodeId) -> None:
        self.cut.discard(frozenset((one, other)))
        if {one, other} <= self.nodes.parts.keys() and frozenset((one, other)) in self.nodes.links:
            self.nodes.ready(one, other)
            self.nodes.ready(other, one)

    def _relink(self) -> None:
        one, other = self.draw.choice(sorted(map(sorted, self.nodes.links)))
        self.nodes.unlink(one, other)
        self.at(self.draw.choice([0, 50, 1000, 3000]), self._repair)

    def go(self) -> list[str]:
        """What does not hold in the end."""
        kinds = {self._burst: 8, self._join: 5, self._crash: 1, self._break: 2, self._relink: 1}
        for _ in range(self.draw.randint(4, 14)):
            if self.nodes.links:
                self.draw.choices(list(kinds), list(kinds.values()))[0]()
            self.run(self.draw.choice(PAUSES_MS))
        while self._later:
            self.run(1000)
        self.cut.clear()
        self._repair()
        for one, other in sorted(map(sorted, self.nodes.links)):
            self._mend(one, other)
        self.run(CALM_MS)
        return [line for node in sorted(self.nodes.parts) for line in self._complaints(node)]

    def _complaints(self, node: NodeId) -> list[str]:
        nodes, since, found = self.nodes, self.linked[node], []
        given: dict[Stream, list[range]] = {}
        for item in nodes.given[node]:
            last = item.sequence if isinstance(item, Deliver) else item.last
            first = item.sequence if isinstance(item, Deliver) else item.first
            given.setdefault((item.publisher, item.incarnation), []).append(range(first, last + 1))
        for stream, ranges in given.items():
            if any(later.start <= one[-1] for one, later in pairwise(ranges)):
                found.append(f"node {node} was given {stream} out of order or twice")
        for stream, times in self.published.items():
            known = max(self._known(other, stream) for other in nodes.parts)
            had = {sequence for one in given.get(stream, []) for sequence in one}
            silent = [
                sequence
                for sequence, time in times.items()
                if since is not None and since < time and sequence <= known and sequence not in had
            ]
            if silent:
                found.append(f"node {node} was neither given nor told {len(silent)} of {stream}, from {silent[0]} on")
        found += [line for line in nodes.false_held if line.startswith(f"node {node} ")]
        if nodes.parts[node].status(nodes.now).waiting:
            found.append(f"node {node} still waits")
        return found

    def _known(self, node: NodeId, stream: Stream) -> int:
        status = self.nodes.parts[node].streams(self.nodes.now, past=True).get((TOPIC, *stream))
        return status.known if status is not None else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.first, asked.first + asked.count):
        complaints = Case(seed).go()
        failed += bool(complaints)
        for line in complaints:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{asked.count} neighbourhoods, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
