"""What one member says once does not go round for ever, whatever it claims about hops, origins and numbers."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from omen.interests import Interests
from omen.maintain.choosing import choose_links
from omen.overlay import Overlay
from omen.protocol.config import Config
from omen.protocol.events import SECOND, NodeId, Received, Time
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import EventKind
from omen.protocol.messages.overlay import (
    EventId,
    LossReport,
    Message,
    PathProbe,
    Ref,
    RelayedQuery,
    RepairRequest,
    RingWalk,
    ShadowQuery,
)
from omen.sim.latency import uniform
from omen.sim.population import Population
from omen.sim.world import Network, World
from unit.protocol.contexts import describe

NAMES = "abcdefghi"
HIGHEST = 1 << 48


class Cluster:
    """Nine nodes of one topic, each linked to all, and what they say to each other."""

    def __init__(self) -> None:
        self.received: Counter[type] = Counter()
        network = Network(latency=uniform(500, 2_000), detection=uniform(20_000, 40_000))
        self.world = World(3, network, self._trace)
        self.population = Population(self.world, Config(resilience=2, coverage=1), choose_links)
        interests = Interests.from_pairs([(name, "t") for name in NAMES])
        self.population.set_up(interests, Overlay.from_links(interests.nodes, list(combinations(NAMES, 2))))
        self.world.run_until(SECOND)
        self.received.clear()
        self.member, self.target = self.population.place("a"), self.population.place("b")
        self.topic = next(iter(self.population.cores[self.target].topics))

    def _trace(self, _: Time, _node: NodeId, what: object) -> None:
        if isinstance(what, Received):
            self.received[type(what.message)] += 1

    def flood(self, messages: list[Message], seconds: int = 60) -> Counter[type]:
        """One member says all of this to one neighbour, at once; what is heard in the last second of all this time."""
        for message in messages:
            self.world.tell(self.target, Received(self.member, message))
        self.world.run_until(self.world.now + (seconds - 1) * SECOND)
        whole = Counter(self.received)
        self.received.clear()
        self.world.run_until(self.world.now + SECOND)
        self.late = Counter(self.received)
        return whole


def test_a_storm_of_probes_ends() -> None:
    """Before: nine nodes went on passing 400 probes round for ever, 76,000 of them per second."""
    cluster = Cluster()
    probes: list[Message] = [PathProbe(1, 2, nonce, HIGHEST, (cluster.topic,)) for nonce in range(400)]
    whole = cluster.flood(probes, seconds=4)
    assert cluster.late[PathProbe] == 0
    assert whole[PathProbe] <= 400 + 256 * 9 * 8  # of those one neighbour may bring, each over each link at most once


def test_forwarded_messages_have_a_last_hop_and_a_budget() -> None:
    """Each goes no further than the ring is long, and 5,000 at once are not passed on."""
    cluster = Cluster()
    there, far = Ref(cluster.member, 1, ""), place_of("nowhere")
    walks: list[Message] = [
        RingWalk(EventId(far, 1, EventKind.JOIN), there, (12345,), (), (), HIGHEST, number) for number in range(5_000)
    ]
    whole = cluster.flood(walks, seconds=5)
    assert cluster.late[RingWalk] == 0
    assert whole[RingWalk] < 5_000 + 1_000 * 5


def test_a_walk_passes_a_node_once() -> None:
    cluster = Cluster()
    walk = RingWalk(EventId(1, 1, EventKind.JOIN), Ref(cluster.member, 1, ""), (12345,), (), (), HIGHEST, 7)
    whole = cluster.flood([walk] * 50, seconds=2)
    assert whole[RingWalk] <= 50 + 5


def test_reports_and_requests_of_no_node_are_not_carried_round_at_any_rate() -> None:
    cluster = Cluster()
    there = Ref(cluster.member, 1, "")
    reports: list[Message] = [
        LossReport(EventId(place_of(f"x{number}"), 1, EventKind.LEAVE), there, (), HIGHEST) for number in range(3_000)
    ]
    requests: list[Message] = [
        RepairRequest(EventId(place_of(f"y{number}"), 1, EventKind.ADD), describe(place_of(f"y{number}")), (), (), 0)
        for number in range(3_000)
    ]
    whole = cluster.flood(reports + requests, seconds=2)
    assert whole[LossReport] + whole[RepairRequest] < 6_000 + 5 * 600


def test_a_question_is_relayed_to_as_many_as_its_sender_pays_for() -> None:
    cluster = Cluster()
    others = tuple(sorted(cluster.population.cores))
    ask = ShadowQuery(Ref(cluster.member, 1, ""), EventId(1, 1, EventKind.JOIN), 1, (cluster.topic,), (), ())
    whole = cluster.flood([RelayedQuery(ask, others * 100)], seconds=2)
    assert whole[ShadowQuery] <= len(others)
    whole = cluster.flood([RelayedQuery(ask, others)] * 1_000, seconds=2)
    assert whole[ShadowQuery] < 600
