"""The settings of a SpiderCast node, and of the rivals that share its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omen.protocol.events import MILLISECOND, SECOND, Time

Rule = Literal["greedy", "random", "similar", "anybody"]


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """One neighbour maintenance task: by which rule it chooses the next neighbour, and how often it covers.

    The coverage rules (`greedy`, `random`) cover each topic of the node `coverage` times. The rules of the rivals
    (`similar`, `anybody`) count links and not topics: as if all nodes had one topic in common, wanted that often.
    """

    rule: Rule
    coverage: int

    @property
    def counts_links(self) -> bool:
        return self.rule in ("similar", "anybody")


@dataclass(frozen=True, slots=True)
class SpiderConfig:
    """One node's settings. The two tasks are the greedy and the random one, or what a rival has in their place."""

    tasks: tuple[TaskConfig, TaskConfig]
    margin: int = 5
    """Margin: links a node may accept above L^max (Fig. 1; 5 is the paper's example)."""
    part_above: bool = False
    """Fig. 3 line 9 as printed: part only with neighbours above their target, not with all that have reached it."""
    adaptive: bool = False
    """3.3.1: K_r starts at 0 and rises where greedy coverage took no more than K_g links."""
    connect_timeout: Time = 100 * MILLISECOND
    """How long the maintenance loop sleeps (Fig. 2 line 13)."""
    heartbeat_period: Time = SECOND
    """How often neighbours are told of a changed degree, target or interest."""
    keep_alive: int = 0
    """After so many heartbeat periods a neighbour hears from this node although nothing changed; 0: never."""
    silence: int = 0
    """After so many heartbeat periods without a word a neighbour is declared failed; 0: the driver tells of losses."""
    quarantine: Time = 5 * SECOND
    """How long a node that was asked to connect is not asked again (2.3.1, Redirect)."""

    @property
    def time_to_notice(self) -> Time:
        """After how long heartbeats that do not come have told of a loss."""
        return (self.silence + 1) * self.heartbeat_period


def coverage(greedy: int, random: int) -> tuple[TaskConfig, TaskConfig]:
    """(K_g, K_r)-coverage."""
    return TaskConfig("greedy", greedy), TaskConfig("random", random)


def similarity(similar: int, anybody: int) -> tuple[TaskConfig, TaskConfig]:
    """The rivals of 3.9.1: x links by likeness and y by chance; with x = 0 it is random(y)."""
    return TaskConfig("similar", similar), TaskConfig("anybody", anybody)
