"""Repair among shadows: former neighbours and backups instead of all nodes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from omen.fleet.repairing import Within
from omen.interests import Codes, Interests
from omen.kernels import pieces, repair
from omen.maintain.backups import BackupRule, forget, in_label_order
from omen.maintain.engine import DegreeRule, Scope, connect_newcomer
from omen.maintain.maintainers import Loss, Maintainer, Progress
from omen.maintain.plan import Plan
from omen.maintain.state import State

_COMPONENTS = {"exact": pieces.EXACT, "halo": pieces.HALO, "literal": pieces.LITERAL, "halo-near": pieces.HALO_NEAR}


class Shadow(Maintainer):
    """ShadowDynAlg (Chen, Jacobsen, Vitenberg, Algs. 6 to 12).

    Every node has a backup set that covers its topics lambda times. A leave is repaired among S = former neighbours and
    backups of the lost node (of all lost nodes of a batch), a join among the newcomer and its backups; then the backups
    of those that lost one are built anew. Guarantee: topic-connected after every event, degrees as bounded by Lemmas 3
    to 5.
    Cost: O(|S|^2 |v.topics|) for a leave and the breadth-first searches of `search_pieces`; nothing depends on |V|.

    Where we deviate: Alg. 12 keeps zero-weight nodes as candidates. A topic with at most lambda other subscribers
    takes a newcomer as a backup at once (`BackupRule.top_up`). With lambda 0 there are no backups, and a join is
    linked within one cover made for the occasion. A resubscription, which the paper leaves out, is a leave restricted
    to the topics dropped and a join restricted to those added. Components and the degree to spare are read as the
    options say.
    """

    uses_backups = True

    def __init__(
        self, state: State, options: dict[str, Any], workload: Interests, within: Within | None = None
    ) -> None:
        super().__init__(state, options, workload, within)
        self.rule = BackupRule(options["backups"], options["lambda"], options["seed"])
        self.components = _COMPONENTS[options["components"]]
        self.whole_degree = options["degree_of"] == "overlay"

    def prepare(self) -> None:
        """Alg. 6: backups for every node, in label order."""
        self.rule.rebuild(self.state, self.state.nodes.sorted_slots())

    def _spared_degree(self) -> int:
        return super()._spared_degree() if self.budget or self.whole_degree else repair.OF_SHADOW

    def _repair_losses(self, loss: Loss, progress: Progress) -> None:
        started = time.thread_time()
        scope = Scope(loss.former, loss.topics, loss.helpers, self.components)
        links, shadow = self._find_links(scope, self._spared_degree())
        progress.spend("links", started)
        progress.shadow.update(shadow.tolist())
        self._add(links, progress)

    def _settle_losses(self, loss: Loss, plan: Plan, progress: Progress) -> None:
        state, started = self.state, time.thread_time()
        bereft = forget(state, loss.leaving)
        super()._settle_losses(loss, plan, progress)
        gaining = {slot for slot, _ in plan.gaining}
        for slot, topics in loss.dropped.items():
            bereft.update(self._who_want(state.primaries.of(slot), topics).tolist())
            bereft.add(slot)
        bereft -= gaining  # built anew when their new topics are there
        self.rule.rebuild(state, in_label_order(state, bereft))
        progress.spend("backups", started)
        progress.rebuilt += len(bereft)

    def _helpers(self, slot: int, topics: Codes, progress: Progress) -> Codes:
        """The backups of a node, built anew, that want any of the topics it has gained."""
        state, started = self.state, time.thread_time()
        if self.rule.covers:
            self.rule.rebuild(state, np.array([slot], np.int32))
            helpers = state.backups.of(slot)
        else:
            helpers = self.rule.cover_once(state, slot)
        progress.spend("prepare", started)
        return self._who_want(helpers, topics) if topics.size < state.topics_of.length(slot) else helpers

    def _top_up(self, slot: int, topics: Codes, progress: Progress) -> None:
        started = time.thread_time()
        self.rule.top_up(self.state, slot, topics)
        progress.spend("backups", started)

    def _welcome(self, slot: int, topics: Codes, progress: Progress) -> Iterable[int]:
        helpers = self._helpers(slot, topics, progress).tolist()
        self._top_up(slot, topics, progress)
        return [slot, *helpers]

    def _gain(self, slot: int, topics: Codes, progress: Progress) -> None:
        state = self.state
        helpers = self._helpers(slot, topics, progress)
        started = time.thread_time()
        links = connect_newcomer(state, slot, topics, helpers, DegreeRule(self.rho, self._spared_degree()))
        progress.spend("links", started)
        progress.shadow.add(slot)
        progress.shadow.update(helpers.tolist())
        self._add(links, progress)
        self._top_up(slot, topics, progress)
