"""One member breaks rules again and again: those it offends drop it, topics are repaired around it, no other pays."""

from __future__ import annotations

from itertools import pairwise

import pytest

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import MILLISECOND, SECOND, NodeId, Notification, Offence, PeerBanned, Received, Time
from omen.protocol.messages.base import NUMBER_AT_MOST, Digest, EventKind, Ref
from omen.protocol.messages.overlay import EventId, Message, Ping, RingWalk, Status
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.running import Run
from omen.sim.search import Search
from omen.sim.world import Network, World

NAMES = [f"n{number}" for number in range(12)]
PAIRS = [(name, f"t{topic}") for number, name in enumerate(NAMES) for topic in range(6) if (number + topic) % 3]
CONFIG = Config(
    resilience=2,
    coverage=2,
    gossip_period=200 * MILLISECOND,
    standby_timeout=SECOND,
    detector=True,
    audit=True,
    audit_period=3 * SECOND,
    ban_time=20 * SECOND,
)


class Cluster:
    """Twelve nodes and six topics, with a member, n5, that says what it may not, in a core that is honest otherwise."""

    def __init__(self, seed: int, config: Config = CONFIG) -> None:
        self.world = World(seed, Network(latency=uniform(500, 3_000), loss=0.01, detection=None))
        self.population = Population(self.world, config, choose_links)
        interests = Interests.from_pairs(PAIRS)
        ring = [*pairwise(NAMES), (NAMES[-1], NAMES[0])]
        links = ring + [(NAMES[number], NAMES[(number + 2) % 12]) for number in range(12)]
        self.population.set_up(interests, Overlay.from_links(interests.nodes, links))
        self.bans: list[tuple[NodeId, PeerBanned]] = []
        self.world.listeners.append(self._hear)
        self.member = self.population.place("n5")
        self.world.run_until(SECOND)

    def _hear(self, node: NodeId, heard: object, _: Time) -> None:
        if isinstance(heard, PeerBanned):
            self.bans.append((node, heard))

    def honest(self) -> list[NodeId]:
        return [node for node in self.population.members() if node != self.member]

    def say(self, message: Message, to: list[NodeId], seconds: int) -> None:
        """Ten times a second."""
        for _ in range(10 * seconds):
            for node in to:
                self.world.tell(node, Received(self.member, message))
            self.world.run_until(self.world.now + SECOND // 10)

    def splits_the_honest(self, through: bool = False) -> bool:
        """Whether honest nodes of a topic are in pieces. `through`: the dishonest one may connect them."""
        honest, cores = set(self.honest()), self.population.cores
        usable = honest | {self.member} if through else honest
        links = {node: {other for other, link in cores[node].links().items() if link.is_up} for node in usable}
        for topic in {topic for node in honest for topic in cores[node].topics}:
            carrying = {node for node in usable if topic in cores[node].topics}
            reached: set[NodeId] = set()
            new = [min(carrying & honest)]
            while new:
                node = new.pop()
                reached.add(node)
                new += [other for other in links[node] & carrying - reached if node in links[other]]
            if (carrying & honest) - reached:
                return True
        return False


def lie(cluster: Cluster) -> Message:
    """In the name of another."""
    other = cluster.population.cores[cluster.population.place("n8")].ref
    return Status(Digest(other, 9, 9), (), ())


def test_a_member_that_lies_to_all_is_dropped_by_all_and_the_others_stay_connected() -> None:
    cluster = Cluster(1)
    cluster.say(lie(cluster), cluster.honest(), 3)
    assert {node for node, _ in cluster.bans} == set(cluster.honest())
    assert all(ban.peer == cluster.member and ban.offence is Offence.FALSE_SENDER for _, ban in cluster.bans)
    cluster.world.run_until(cluster.world.now + 10 * SECOND)
    assert not cluster.splits_the_honest()
    for node in cluster.honest():
        core = cluster.population.cores[node]
        assert cluster.member not in core.links() and list(core.status().bans) == [cluster.member]
        assert core.status().refused.get("banned", 0) > 0 and not core.status().offences
        assert core.ref.incarnation == 1, "nobody but the liar had to join again"
    cluster.world.run_until(cluster.world.now + 25 * SECOND)
    assert not any(cluster.population.cores[node].status().bans for node in cluster.honest())
    assert cluster.world.run_while(lambda: cluster.population.has_split_topics(), 40 * SECOND), "it may come back"


@pytest.mark.parametrize("seed", [2, 3, 7, 8])
def test_one_that_only_a_few_have_dropped_is_linked_to_others_and_holds_no_repair_up(seed: int) -> None:
    """Its neighbours drop it; the rest take it in again, and must not plan the links that these refuse for ever."""
    cluster = Cluster(seed)
    victims = [cluster.population.place(name) for name in ("n3", "n4", "n6")]
    cluster.say(lie(cluster), victims, 3)
    assert {node for node, _ in cluster.bans} == set(victims)
    cluster.world.run_until(cluster.world.now + 3 * SECOND)
    cluster.population.crash("n9")
    cluster.world.run_until(cluster.world.now + 12 * SECOND)
    assert not cluster.splits_the_honest(through=True), "it passes publications on for those that kept it"
    assert all(cluster.member not in cluster.population.cores[node].links() for node in victims)
    assert not any(cluster.population.cores[node].is_busy for node in cluster.honest())


def test_a_flood_beyond_its_budget_weighs_little_and_ends_in_a_ban_where_it_goes_on() -> None:
    cluster = Cluster(4)
    there, (victim, *_) = Ref(cluster.member, 1, ""), cluster.honest()
    event = EventId(cluster.population.place("nowhere"), 1, EventKind.JOIN)
    for number in range(1, 700):
        cluster.world.tell(
            victim, Received(cluster.member, RingWalk(event, there, (1,), (), (), NUMBER_AT_MOST, number))
        )
    cluster.world.run_until(cluster.world.now + SECOND)
    points = cluster.population.cores[victim].status().offences[cluster.member]
    assert 0 < points < 3 and not cluster.bans
    for number in range(700, 3_000):
        cluster.world.tell(
            victim, Received(cluster.member, RingWalk(event, there, (1,), (), (), NUMBER_AT_MOST, number))
        )
    cluster.world.run_until(cluster.world.now + SECOND)
    assert [(node, ban.offence) for node, ban in cluster.bans] == [(victim, Offence.OVER_BUDGET)]


def test_the_probes_of_a_node_of_version_0_1_0_are_no_offence() -> None:
    """It relays a probe in the name of the node that asked for it."""
    cluster = Cluster(6)
    other = cluster.population.cores[cluster.population.place("n8")].ref
    cluster.say(Ping(7, other), cluster.honest()[:2], 3)
    assert not cluster.bans and not any(core.status().offences for core in cluster.population.cores.values())


def test_nobody_can_have_another_dropped() -> None:
    """What the liar says of others, and what others pass on for it, is nobody's offence but its own."""
    cluster = Cluster(5)
    other = cluster.population.cores[cluster.population.place("n8")].ref
    cluster.say(Status(Digest(other, 9, 9), (), ()), cluster.honest(), 2)
    assert {ban.peer for _, ban in cluster.bans} <= {cluster.member}
    for node in cluster.honest():
        assert set(cluster.population.cores[node].status().offences) <= {cluster.member}


@pytest.mark.parametrize("worlds", ["within", "beyond", "busy", "refusing"])
def test_honest_nodes_however_slow_lossy_or_restarted_have_no_points(worlds: str) -> None:
    for seed in range(5000, 5004):
        scenario = Search(worlds).scenario(seed)
        run = Run(scenario)
        heard: list[Notification] = []
        run.world.listeners.append(lambda _node, what, _time, heard=heard: heard.append(what))
        run.go()
        assert not [what for what in heard if isinstance(what, PeerBanned)], (worlds, seed)
        for core in run.population.cores.values():
            assert not core.status().offences, (worlds, seed)
