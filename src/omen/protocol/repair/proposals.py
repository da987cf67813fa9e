"""Ends of planned links hear of these as fast as they may act on them.

Each end opens a link for the coordinator that proposes it, and pays for that from the budget it has for each sender
(see `validation`). What is beyond that is dropped there, and in the end held against the coordinator. So the
coordinator keeps the same budget for each end, and stays below it. A proposal that is repeated costs nothing where the
link is under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from omen.protocol.budgets import SenderBudget
from omen.protocol.context import NodeContext
from omen.protocol.events import NodeId
from omen.protocol.repair.join_check import Pair
from omen.protocol.repair.shadow_set import Repair

LINKS_AT_ONCE = 48
"""Links under way at one end: below those that it makes at a time (`links.PLANNED_AT_MOST`)."""
PROPOSALS_PER_S, PROPOSALS_AT_ONCE = 48, 384
"""To one end, of what it pays for (`validation.FORWARDS_PER_S`): other messages are paid from the same budget."""


class Proposals:
    """Tells both ends of each planned link."""

    def __init__(self, context: NodeContext) -> None:
        self._peer_table = context.peer_table
        self._out = context.out
        self._clock = context.clock
        self._is_repeated = context.config.remedies.redo_unconfirmed
        self._paid = SenderBudget(PROPOSALS_PER_S, PROPOSALS_AT_ONCE)

    def send(self, repair: Repair) -> None:
        """Of what is under way, to the ends that have not confirmed it, and of what may begin now. That has its time
        from now on.
        """
        if self._begin(repair):
            repair.tries = 0
        self._tell(repair, sorted(repair.under_way))

    def send_more(self, repair: Repair) -> int:
        """A link has come up: of those that may begin now; how many these are."""
        begun = self._begin(repair)
        self._tell(repair, begun)
        return len(begun)

    def _begin(self, repair: Repair) -> list[Pair]:
        if not self._is_repeated:
            repair.under_way.update(repair.open_links)
            return sorted(repair.open_links)
        busy = Counter(end for pair in repair.under_way for end in pair)
        spent: set[NodeId] = set()
        begun = []
        for pair in repair.open_links:
            is_busy = any(busy[end] >= LINKS_AT_ONCE or end in spent for end in pair)
            if is_busy or pair in repair.under_way:
                continue
            spent.update(end for end in pair if not self._paid.take(end, self._clock.now))
            if spent.isdisjoint(pair):
                busy.update(pair)
                begun.append(pair)
        repair.under_way.update(begun)
        return begun

    def _tell(self, repair: Repair, pairs: Iterable[Pair]) -> None:
        for ref, proposal in repair.proposals(self._peer_table.ref, pairs):
            self._out.send(ref, proposal)
