"""Backup sets in a state: built, rebuilt, forgotten; primaries stay their inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omen.interests import Codes
from omen.kernels import backups as kernel
from omen.maintain.state import State

RULE_CODES = {
    "pd-weight": kernel.PD_WEIGHT,
    "pd-cover": kernel.PD_COVER,
    "greedy-weight": kernel.GREEDY_WEIGHT,
    "greedy-cover": kernel.GREEDY_COVER,
}


@dataclass(frozen=True)
class BackupRule:
    """How backup sets are built: which rule, how many covers (the papers' lambda, 0 for none), from which seed."""

    name: str
    covers: int
    seed: int

    def rebuild(self, state: State, nodes: Codes) -> None:
        """BuildBackupsAt (Algs. 6, 8, 9) for each of these nodes, in the order given."""
        if self.covers == 0 or nodes.size == 0:
            return
        backups, primaries, done = state.backups, state.primaries, 0
        while True:
            done = kernel.rebuild_backups(
                state.graph,
                state.scratch,
                backups.spans,
                backups.pool,
                backups.tail,
                primaries.spans,
                primaries.pool,
                primaries.tail,
                state.weights,
                state.counts,
                state.nodes.keys,
                state.topics.keys,
                nodes,
                RULE_CODES[self.name],
                self.covers,
                self.seed,
                state.builds,
                done,
            )
            if done == nodes.size:
                break
            widest = int(primaries.spans[:, 1].max())
            backups.grow(state.node_count)
            primaries.grow(state.node_count + 4 * widest)
        state.builds += int(nodes.size)

    def cover_once(self, state: State, node: int) -> Codes:
        """One cover of the node's topics that is not kept: whom to link to where no backups are."""
        cover: Codes = kernel.choose_backups(
            state.graph,
            state.scratch,
            state.primaries.spans,
            state.weights,
            state.counts,
            state.nodes.keys,
            state.topics.keys,
            node,
            RULE_CODES[self.name],
            1,
            self.seed,
            state.builds,
        )
        state.builds += 1
        return cover

    def top_up(self, state: State, node: int, topics: Codes) -> None:
        """Make a newcomer to these topics a backup of their subscribers where these had too few to choose from.

        The paper leaves the backups of others alone on a join; a topic that had at most lambda other subscribers
        would then stay covered by fewer than there are, and not at all where its only subscriber had nobody.
        """
        backups, primaries = state.backups, state.primaries
        for topic in topics[state.members.spans[topics, 1] - 2 < self.covers].tolist():
            for primary in state.nodes.in_order(state.members.of(topic).tolist()):
                while primary != node and not kernel.add_backup(
                    backups.spans,
                    backups.pool,
                    backups.tail,
                    primaries.spans,
                    primaries.pool,
                    primaries.tail,
                    primary,
                    node,
                ):
                    backups.grow(16 + 2 * backups.length(primary))
                    primaries.grow(16 + 2 * primaries.length(node))


def forget(state: State, nodes: Sequence[int]) -> set[int]:
    """Take nodes out of all backup and primary sets; returns the primaries that lost a backup, these nodes excepted."""
    bereft: set[int] = set()
    backups, primaries = state.backups, state.primaries
    for node in nodes:
        bereft.update(primaries.of(node).tolist())
        kernel.forget_backups(backups.spans, backups.pool, primaries.spans, primaries.pool, node)
    return bereft.difference(nodes)


def in_label_order(state: State, nodes: set[int]) -> Codes:
    return np.array(state.nodes.in_order(nodes), np.int32)
