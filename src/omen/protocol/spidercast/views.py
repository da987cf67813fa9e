"""The membership service as a node sees it (2.2): handed in by the driver, as the greedy engine is to OMen's nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from omen.protocol.events import NodeId, Topic
from omen.protocol.messages.overlay import Ref
from omen.protocol.spidercast.config import Rule


class InterestView(Protocol):
    """Who is there and wants what, as far as this node knows."""

    @property
    def version(self) -> int:
        """Another number whenever somebody came, went or changed their interest."""

    def choose(self, rule: Rule, uncovered: Sequence[Topic], excluded: Iterable[NodeId], word: int) -> Ref | None:
        """The next neighbour by this rule, from the view without those excluded and the node itself.

        `greedy` (NEXTGREEDYCOVERAGENODE): who covers most of `uncovered`. `random` (NEXTRANDOMCOVERAGENODE): anybody
        who covers some of it. `similar` (NEXTSIMILARITYNODE): whose interest meets `uncovered`, the node's own whole
        interest, most. `anybody` (NEXTRANDOMNODE). Among equals the 64-bit `word` decides. None: nobody fits.
        """
