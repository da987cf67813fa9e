"""Whom to ask when a newcomer is to be linked: a backup set for it over everybody its coordinator knows."""

from __future__ import annotations

from collections.abc import Set

from omen.protocol.config import Config
from omen.protocol.events import NodeId, Randomness, Topic
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.messages.overlay import Ref
from omen.protocol.repair.backups import build_backups


def members_for_join(
    peer_table: PeerTable,
    config: Config,
    randomness: Randomness,
    newcomer: NodeId,
    topics: Set[Topic],
    gone: Set[NodeId],
) -> dict[NodeId, Ref]:
    """The paper's S for a join, less the newcomer (omen 3.2). Covered at least once, or nobody could be linked to.

    `gone`: those that did not answer before.
    """
    candidates = {node: has for node, has in peer_table.topic_sets.items() if node != newcomer and node not in gone}
    if peer_table.id not in gone:
        candidates[peer_table.id] = frozenset(peer_table.me.topics)
    known = {node: descriptor for node in candidates if (descriptor := peer_table.get(node)) is not None}
    weights = {node: len(known[node].neighbours) if node in known else 0 for node in candidates}
    chosen = build_backups(topics, candidates, weights, max(1, config.coverage), config.backups, randomness)
    return {node: known[node].digest.ref for node in chosen if node in known}
