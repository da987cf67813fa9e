"""The greedy engine as maintainers call it: on the part of a state that an event concerns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omen.interests import Codes
from omen.kernels import engine, pieces, repair
from omen.maintain.state import Pairs, State

NO_LINKS = np.empty((0, 2), np.int32)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a repair has to connect, and among which nodes.

    `former`: the former neighbours of the nodes lost. `topics`: those that may have split, ascending. `helpers`: more
    nodes that may get links; None stands for every subscriber of a topic that split. `components`: how far the repair
    looks to tell the pieces of a topic apart, see `pieces`.
    """

    former: Codes
    topics: Codes
    helpers: Codes | None
    components: int = pieces.EXACT


@dataclass(frozen=True, slots=True)
class DegreeRule:
    """Which nodes a repair spares: those of `max_degree` links, and with `enough` already those of so many.

    A link that spares no one must be over `rho` times better than the best that does.
    """

    rho: float
    max_degree: int = repair.OF_SHADOW
    enough: int | None = None


def reconnect(state: State, scope: Scope, rule: DegreeRule) -> tuple[Pairs, Codes]:
    """The links that connect the topics again, as pairs of slots in the order chosen, and the shadow set.

    See `split_instance`.
    """
    everyone = scope.helpers is None
    helpers = scope.former[:0] if scope.helpers is None else scope.helpers
    shadow, nodes, node_offsets, node_topics, topic_offsets, topic_nodes, labels, degrees, most = repair.split_instance(
        state.graph, state.scratch, scope.former, helpers, scope.topics, everyone, scope.components, rule.max_degree
    )
    if nodes.size == 0:
        return NO_LINKS, shadow
    if rule.enough is not None:
        degrees, most = np.minimum(degrees, np.int32(rule.enough)), rule.enough
    rows = engine.Rows(node_offsets, node_topics, topic_offsets, topic_nodes)
    pairs: Pairs = nodes[engine.choose_links(engine.Instance(rows, labels, degrees, most), rule.rho)]
    return pairs, shadow


def connect_newcomer(state: State, node: int, topics: Codes, helpers: Codes | None, rule: DegreeRule) -> Pairs:
    """The links of a node to helpers, or (None) to any node, that bring it into each of the topics.

    See `repair_gain`.
    """
    everyone = helpers is None
    others = topics[:0] if helpers is None else helpers
    links: Pairs = repair.repair_gain(
        state.graph, state.scratch, state.counts, node, others, topics, everyone, rule.max_degree, rule.rho
    )
    return links
