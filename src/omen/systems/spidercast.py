"""SpiderCast and its rivals run to quiescence: what the nodes end up with is the design. And SpiderCast as a system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omen.design import Algorithm, Option
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.overlay import Overlay
    from omen.protocol.spidercast.config import SpiderConfig

LONGEST_S = 600

KG = Option("kg", int, 3, 0, 1000, "K_g: how often each topic of a node is covered greedily")
KR = Option("kr", int, 0, 0, 1000, "K_r: how often each topic of a node is covered at random")
ADAPTIVE = Option(
    "adaptive", int, 0, 0, 1, "1: a node raises K_r by itself, from 0, where greedy coverage took only K_g links"
)
VIEW = Option("view", float, 1.0, 0.0, 1.0, "share of the nodes that each node knows, above 0")
X = Option("x", int, 10, 0, 100_000, "links of a node to those whose interests are most alike")
Y = Option("y", int, 0, 0, 100_000, "links of a node to any node")
SEED = Option("seed", int, 0, 0, 2**63 - 1, "what everything random is drawn from")

_PAPER = "Chockler, Melamed, Tock, Vitenberg: SpiderCast"


def settle_options(given: Mapping[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options of the system, those left out as the others want them: adaptive nodes start with K_r = 0 (3.3.1)."""
    if options["adaptive"] and "kr" not in given:
        options = options | {"kr": 0}
    check_coverage(options["kg"], options["kr"], options["adaptive"], options["view"])
    return options


def check_coverage(kg: int, kr: int, adaptive: int, view: float) -> None:
    """InvalidInput where no node would ever link to another, or the options contradict each other."""
    if not kg and not kr and not adaptive:
        raise InvalidInput("spidercast with kg 0 and kr 0 has no task that runs: one of the two must be 1 or more")
    if adaptive and kr:
        raise InvalidInput(f"spidercast with adaptive 1 raises K_r from 0 by itself: leave kr out (it is {kr})")
    if adaptive and not kg:
        raise InvalidInput("spidercast with adaptive 1 raises K_r where K_g links cover all: kg must be 1 or more")
    if not view:
        raise InvalidInput("option view must be above 0: with 0 no node knows another")


def design_spidercast(interests: Interests, kg: int, kr: int, adaptive: int, view: float, seed: int) -> Overlay:
    """SpiderCast with (K_g, K_r)-coverage, until no node has anything left to do.

    Paper: Chockler, Melamed, Tock, Vitenberg (SpiderCast), 2.3 and 3. Guarantee: none; connects all topics with high
    probability unless interests are heavily skewed (then K_r = 1). Cost: about ten messages per link, heartbeats
    included; a choice reads the subscribers of the topics not yet covered. Deviations: see protocol/spidercast/task.py.
    """
    from omen.protocol.spidercast.config import SpiderConfig, coverage

    check_coverage(kg, kr, adaptive, view)
    return run_to_quiescence(interests, SpiderConfig(coverage(kg, kr), adaptive=bool(adaptive)), view, seed)


def design_similarity(interests: Interests, x: int, y: int, seed: int) -> Overlay:
    """similarity(x, y): x links to the nodes that share most topics, y to any; SpiderCast's code with other choices.

    Paper: SpiderCast 3.9.1, as a rival. Guarantee: none, and topics do split. Cost: as SpiderCast.
    """
    from omen.protocol.spidercast.config import SpiderConfig, similarity

    if not x and not y:
        raise InvalidInput("similarity with x 0 and y 0 links no nodes: one of the two must be 1 or more")
    return run_to_quiescence(interests, SpiderConfig(similarity(x, y)), 1.0, seed)


def design_random(interests: Interests, y: int, seed: int) -> Overlay:
    """random(y): y links to any node; similarity(0, y). Paper: SpiderCast 3.9.1, as a rival. Guarantee: none."""
    return design_similarity(interests, 0, y, seed)


def run_to_quiescence(interests: Interests, config: SpiderConfig, view: float, seed: int) -> Overlay:
    """The links that nodes agree on when all is quiet. They start together and know all others, or a share of them.

    Nodes and topics go by their codes, so that labels change nothing but labels.
    """
    import numpy as np

    from omen.interests import Interests
    from omen.overlay import Overlay
    from omen.protocol.events import SECOND
    from omen.sim.latency import uniform
    from omen.sim.membership import Membership
    from omen.sim.spiders import Spiders
    from omen.sim.world import Network, World

    codes = Interests(
        np.arange(interests.node_count),
        np.arange(interests.topic_count),
        interests.node_offsets,
        interests.node_topics,
        interests.topic_offsets,
        interests.topic_nodes,
    )
    world = World(seed, Network(latency=uniform(500, 2_000)))
    spiders = Spiders(world, config, Membership(seed, view), {code: code for code in range(interests.node_count)})
    spiders.set_up(codes)
    spiders.settle(LONGEST_S * SECOND)
    ends = np.array(sorted(spiders.links()), np.int64).reshape(-1, 2)
    return Overlay.from_codes(interests.nodes, ends[:, 0], ends[:, 1])


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "similarity",
            design_similarity,
            (X, Y, SEED),
            0,
            "each node links to the nodes most like it; promises nothing",
            _PAPER,
        ),
        Algorithm(
            "random",
            design_random,
            (Option("y", int, 10, 1, 100_000, Y.help), SEED),
            0,
            "each node links to random others; promises nothing",
            _PAPER,
        ),
        Algorithm(
            "spidercast",
            design_spidercast,
            (KG, KR, ADAPTIVE, VIEW, SEED),
            0,
            "the nodes cover their topics themselves, message by message; connected with high probability",
            _PAPER,
        ),
    )
}
