"""Worlds under load: links with a bandwidth and a queue, thousands of publications per second, and one promise watched.

The promise: once a subscriber has a link in a topic to a node that knows of a sequence (has it, or has heard of it or
of a later one), it has the message or a Gap within 10 s. And at the end nothing is passed over in silence.

`python -m omen.sim.load --worlds 100` runs them; `--world N` one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from omen.protocol.events import (
    MILLISECOND,
    PLENTY,
    SECOND,
    Gap,
    LinkReady,
    LinkRoom,
    LinkSlow,
    NodeId,
    Publish,
    Received,
    Time,
    Topic,
)
from omen.protocol.messages.publications import (
    Announce,
    Graft,
    Prune,
    Publication,
    RetransmissionRequest,
)
from omen.sim.deliveries import Deliveries, Reader, Tally
from omen.sim.drawing_load import draw_busy
from omen.sim.running import Outcome, Run
from omen.sim.scenario import LoadSpec, Name, Scenario, to_time
from omen.sim.world import Heard, Network, Tracer, World, generator_for

BULK = (Publication, Announce, RetransmissionRequest, Prune, Graft)
"""What shares a link's queue; the overlay's own messages go ahead of it."""
FRAMING = 5
TICK = MILLISECOND
PROMISE = 10 * SECOND
LINK_AGE = SECOND
"""A link counts for the promise once both ends have had so long to compare."""
LOOK_EVERY = 250 * MILLISECOND
SLOW_AFTER = SECOND
"""A link that has not caught up after this is a slow consumer."""
SETTLING = 20 * SECOND
"""How long after the last publication everything must be delivered or told."""


@dataclass(slots=True)
class Pipe:
    """One direction of a link. `free_at`: when all that was handed to it is written; `held`: bytes nobody reads."""

    free_at: Time = 0
    arrives_at: Time = 0
    held: int = 0
    eighths: int = 0
    is_slow: bool = False


class LoadedWorld(World):
    """Publications and what belongs to them take time on a link, in order; a full queue makes it a slow consumer."""

    def __init__(
        self,
        seed: int,
        network: Network,
        trace: Tracer | None,
        load: LoadSpec,
        slow_links: dict[frozenset[NodeId], float],
    ) -> None:
        super().__init__(seed, network, trace)
        self._load = load
        self._slow_links = slow_links
        self._pipes: dict[tuple[NodeId, int, NodeId, int], Pipe] = {}
        self.slow_consumers = 0

    def is_behind(self, node: NodeId, to: NodeId) -> bool:
        """Whether a node's link to another is a slow consumer now, which is told nothing until it reads again."""
        pipe = self._pipes.get((node, self.places[node].incarnation, to, self.places[to].incarnation))
        return pipe is not None and pipe.is_slow

    def _send(self, node: NodeId, to: NodeId, message: Any) -> None:
        target = self.places.get(to)
        if type(message) not in BULK or target is None or not target.alive or self._is_cut(node, to):
            super()._send(node, to, message)
            return
        size = self._count(message, FRAMING)
        key = (node, self.places[node].incarnation, to, target.incarnation)
        pipe = self._pipes.get(key)
        if pipe is None:
            pipe = self._pipes[key] = Pipe()
        if pipe.is_slow:
            self._drop(node, to, message, "slow consumer")
            return
        rate = self._slow_links.get(frozenset({node, to}), self._load.bytes_per_s)
        start = max(self.now, pipe.free_at)
        pipe.held = pipe.held + size if target.paused else 0
        waiting = start - self.now
        if waiting > SLOW_AFTER or waiting * rate / SECOND + max(size, pipe.held) > self._load.queue_bytes:
            self._fall_behind(node, to, pipe)
            return
        pipe.free_at = start + int(size * SECOND / rate)
        self._note_room(node, to, pipe, rate)
        latency = self.network.latency(self._random, node, to)
        pipe.arrives_at = max(pipe.arrives_at, pipe.free_at + latency)
        self._schedule(pipe.arrives_at - self.now, to, target.incarnation, Received(node, message))

    def _note_room(self, node: NodeId, to: NodeId, pipe: Pipe, rate: float) -> None:
        """The node is told how full the queue is, in eighths, from a quarter on, and when it is empty again."""
        queue = self._load.queue_bytes
        waiting = int(max(0, pipe.free_at - self.now) * rate / SECOND)
        eighths = 8 * waiting // queue
        if eighths == pipe.eighths or max(eighths, pipe.eighths) < 2:
            return
        if pipe.eighths < 2:
            self.call(10 * MILLISECOND, lambda: self._look_at_room(node, to, pipe, rate))
        pipe.eighths = eighths if eighths >= 2 else 0
        self.tell(node, LinkRoom(to, queue - waiting if eighths >= 2 else PLENTY))

    def _look_at_room(self, node: NodeId, to: NodeId, pipe: Pipe, rate: float) -> None:
        if self.places[node].alive:
            self._note_room(node, to, pipe, rate)
            if pipe.eighths:
                self.call(10 * MILLISECOND, lambda: self._look_at_room(node, to, pipe, rate))

    def _fall_behind(self, node: NodeId, to: NodeId, pipe: Pipe) -> None:
        self.slow_consumers += 1
        pipe.is_slow = True
        self.tell(node, LinkSlow(to))
        incarnation = self.places[to].incarnation

        def look_again() -> None:
            place = self.places[to]
            if not place.alive or place.incarnation != incarnation or not self.places[node].alive:
                return
            if place.paused or pipe.free_at > self.now:
                self.call(max(20 * MILLISECOND, pipe.free_at - self.now), look_again)
                return
            pipe.is_slow, pipe.held = False, 0
            self.tell(node, LinkReady(to))

        self.call(20 * MILLISECOND, look_again)


class LoadedDeliveries(Deliveries):
    """Who is subscribed is looked up once per topic and 20 ms: a status costs more than a delivery."""

    def __init__(self, population: Any) -> None:
        super().__init__(population)
        self._known: dict[Topic, tuple[Time, tuple[Reader, ...]]] = {}

    def _subscribers(self, topic: Topic) -> tuple[Reader, ...]:
        time, readers = self._known.get(topic, (-SECOND, ()))
        if self.world.now - time >= 20 * MILLISECOND:
            readers = super()._subscribers(topic)
            self._known[topic] = (self.world.now, readers)
        return readers


class Promise:
    """Watches the promise from outside: what each node says of its streams, who is linked to whom, and for how long.

    A node is owed what it has heard of, and what a neighbour knows of for as long as the two are linked: where that one
    crashes before it has said so, the time begins anew with the next link, and where the node is a slow consumer, when
    it reads again. It begins anew too when a node loses its last neighbour in the topic.
    """

    def __init__(self, run: LoadedRun) -> None:
        self._run = run
        self._since: dict[tuple[NodeId, int, NodeId, int], Time] = {}
        self._owed: dict[tuple[NodeId, int, tuple[Topic, NodeId, int]], list[tuple[int, Time]]] = {}
        self._settled: dict[tuple[NodeId, int, tuple[Topic, NodeId, int]], int] = {}
        self._seen: dict[tuple[NodeId, int, tuple[Topic, NodeId, int]], int] = {}
        self._company: set[tuple[NodeId, Topic]] = set()
        self.broken: list[str] = []
        self.longest: Time = 0

    def look(self) -> None:
        """Once in a while: note what neighbours know of, and whether what they knew of earlier is settled."""
        population, world = self._run.population, self._run.world
        assert isinstance(world, LoadedWorld)
        states = {node: population.cores[node].status() for node in population.members()}
        members = [node for node in states if not world.places[node].paused]
        links: dict[tuple[NodeId, int, NodeId, int], Time] = {}
        for node in members:
            status = states[node]
            for peer in status.neighbours():
                if peer in states and node in states[peer].neighbours() and not world.is_behind(peer, node):
                    key = (node, status.ref.incarnation, peer, states[peer].ref.incarnation)
                    links[key] = self._since.get(key, world.now)
        self._since = links
        streams = {node: population.cores[node].streams(past=True) for node in states}
        seen: dict[tuple[NodeId, int, tuple[Topic, NodeId, int]], int] = {}
        for node in members:
            life = states[node].ref.incarnation
            for name, ours in streams[node].items():
                entry = (node, life, name)
                self._settled[entry] = max(self._settled.get(entry, -1), ours.settled)
                seen[entry] = ours.known
        for entry in self._seen.keys() - seen.keys():  # it has been silent for long, and is forgotten without a hole
            self._settled[entry] = max(self._settled[entry], self._seen[entry])
        self._seen = seen
        reach = dict(seen)
        company = {(node, topic) for node, _, peer, _ in links for topic in states[peer].topics}
        for (node, life, name), owed in self._owed.items():  # who lost its last link may get another
            if (node, name[0]) in self._company - company:
                self._owed[node, life, name] = [(owed[-1][0], world.now)]
        self._company = company
        for (node, life, peer, _), since in links.items():
            if world.now - since < LINK_AGE:
                continue
            status = states[node]
            for name, theirs in streams[peer].items():
                if name[0] not in status.topics or name[0] in status.waiting or name[0] not in status.wanted:
                    continue
                if name[1] == node:
                    continue
                settled = self._settled.get((node, life, name), -1)
                reach[node, life, name] = max(reach.get((node, life, name), -1), theirs.known)
                if settled < theirs.known and peer in members:
                    owed = self._owed.setdefault((node, life, name), [])
                    if not owed or owed[-1][0] < theirs.known:
                        owed.append((theirs.known, world.now))
        self._judge({node: states[node].ref.incarnation for node in members}, reach)

    def _judge(self, lives: dict[NodeId, int], reach: dict[tuple[NodeId, int, tuple[Topic, NodeId, int]], int]) -> None:
        """`reach`: up to where a node, or one it is linked to, knows of each stream now."""
        now = self._run.world.now
        for (node, life, key), owed in list(self._owed.items()):
            if lives.get(node) != life:
                del self._owed[node, life, key]
                continue
            settled = self._settled.get((node, life, key), -1)
            upto = reach.get((node, life, key), -1)
            left = [(min(known, upto), since) for known, since in owed if min(known, upto) > settled]
            if not left:
                del self._owed[node, life, key]
                continue
            self._owed[node, life, key] = left
            waited = now - left[0][1]
            self.longest = max(self.longest, waited)
            if waited > PROMISE:
                labels = self._run.population.labels
                self.broken.append(
                    f"{labels[node]} waits {waited / 1e6:.1f} s for {labels[key[1]]}/{key[2]} up to {left[0][0]}: "
                    f"it is at {settled}"
                )
                del self._owed[node, life, key]


class LoadedRun(Run):
    """A scenario with a load. `tally`: what came of the publications; `promise`: whether it was kept."""

    def _prepare(self) -> None:
        assert self.scenario.load is not None
        self.load = self.scenario.load
        self.deliveries = LoadedDeliveries(self.population)
        self.promise = Promise(self)
        self.tally = Tally()
        self.gaps_missing = 0
        self.blocked: Time = 0
        self._blocked_for: Time = 0
        self._draw = generator_for(self.outcome.seed, "load")
        self._due = 0.0
        self._is_publishing = True
        self.world.listeners.append(self._hear_gap)
        self.world.call(0, self._begin)

    def _make_world(self, scenario: Scenario, places: dict[Name, NodeId]) -> World:
        assert scenario.load is not None
        slow = {frozenset(places[name] for name in link.between): link.bytes_per_s for link in scenario.load.links}
        return LoadedWorld(self.outcome.seed, scenario.network_model(places), self._writer, scenario.load, slow)

    def _hear_gap(self, node: NodeId, heard: Heard, time: Time) -> None:
        if isinstance(heard, Gap):
            self.gaps_missing += heard.last - heard.first + 1

    def _begin(self) -> None:
        self.deliveries.begin()
        self._tick()
        self._look()

    def _look(self) -> None:
        self.promise.look()
        self.world.call(LOOK_EVERY, self._look)

    def _tick(self) -> None:
        """What is due by now is published; in bursts, when so much is due."""
        if self.world.now >= to_time(self.load.seconds, SECOND):
            return
        self._due += self.load.rate * TICK / SECOND
        if self._due >= self.load.burst:
            for _ in range(int(self._due)):
                if not self._publish():
                    break
                self._due -= 1
        self.world.call(TICK, self._tick)

    def _publish(self) -> bool:
        """Whether it was published: a publisher that heeds backpressure waits, for a second at most."""
        population = self.population
        members = [node for node in population.members() if not self.world.places[node].paused]
        named = [node for name in self.load.publishers if (node := population.place(name)) in members]
        publishers = named or members
        if not publishers:
            return True
        node = publishers[self._draw.randrange(len(publishers))]
        core = population.cores[node]
        topics = sorted(core.wanted)
        if topics and not core.is_leaving:
            topic = topics[min(self._draw.randrange(2 * len(topics)), len(topics) - 1)]
            size = self._draw.randint(*self.load.payload)
            if self.load.waits and core.room(topic, self.world.now) < size:
                self.blocked += TICK
                self._blocked_for += TICK
                if self._blocked_for < SLOW_AFTER:
                    return False
            self._blocked_for = 0
            self.world.tell(node, Publish(topic, bytes(size)))
        return True

    def _conclude(self) -> Outcome:
        self._run_to(max(self.world.now, to_time(self.load.seconds, SECOND)) + SETTLING)
        outcome = super()._conclude()
        self.tally = self.deliveries.conclude()
        self.tally.lost = [what for what in self.tally.lost if not what.endswith("told as a gap")]
        outcome.failures += self.tally.complaints()
        outcome.failures += [f"promise broken: {what}" for what in self.promise.broken]
        return outcome


def run_world(number: int, write: Callable[[str], None] | None = None) -> LoadedRun:
    run = LoadedRun(draw_busy(number), number, write)
    run.go()
    return run


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m omen.sim.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=20, help="how many worlds (20)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--world", type=int, help="only this one")
    parser.add_argument("--verbose", action="store_true", help="a line per world")
    arguments = parser.parse_args(argv)
    first, count = (arguments.first, arguments.worlds) if arguments.world is None else (arguments.world, 1)
    troubled = published = delivered = told = slow = 0
    longest: Time = 0
    for number in range(first, first + count):
        run = run_world(number)
        complaints = run.outcome.complaints()
        troubled += bool(complaints)
        for complaint in complaints[:3]:
            print(f"world {number}: {complaint}")
        if len(complaints) > 3:
            print(f"world {number}: and {len(complaints) - 3} more")
        if arguments.verbose:
            load, spec = run.load, run.scenario
            events = " ".join(f"{event.action}@{event.at}" for event in spec.events)
            print(
                f"world {number}: {load.rate}/s x {load.payload} {load.seconds:.1f} s, {load.bytes_per_s / 1e6:g} MB/s "
                f"queue {load.queue_bytes >> 10}K window {load.window_bytes or 0:,} {load.window_s} slow "
                f"{[link.bytes_per_s for link in load.links]} repair {spec.network.detection_ms} {events}: published "
                f"{run.tally.published} told {run.gaps_missing} waited {run.blocked / 1e6:.2f} s "
                f"longest {run.promise.longest / 1e6:.2f} s"
            )
        published += run.tally.published
        delivered += run.tally.delivered
        told += run.gaps_missing
        longest = max(longest, run.promise.longest)
        assert isinstance(run.world, LoadedWorld)
        slow += run.world.slow_consumers
    print(
        f"{count} worlds, {troubled} with trouble: {published:,} publications, {delivered:,} deliveries, {told:,} told "
        f"as gaps, {slow} slow consumers, longest wait {longest / 1e6:.2f} s"
    )
    return 1 if troubled else 0


if __name__ == "__main__":
    sys.exit(main())
