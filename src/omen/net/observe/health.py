"""How a node is: whether its loop turns, whether it does its work, and what its operator should look at.

`/livez` is answered at all, or the process should be started again. `/readyz` is 200 while the node has joined, does
not leave, and no stream that its application wants has stalled for long. Warnings change neither: the node does its
work, but would stand the next loss less well, or has lost sight of others.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from omen.net.observe.logs import line_handlers
from omen.protocol.membership.ring import SPACE, SPARE, nearest_after, nearest_before
from omen.protocol.messages.base import EventKind

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.protocol.status import NodeStatus

STALLED_FOR_LONG_S = 10.0
LOOK_S = 5.0
SETTLING_S = 30.0  # an estimate of the ring's size is averaged over so long
FORGETTING_S = 3600.0  # after so long a former size counts half
FAR = 2.5  # how many times smaller than it was a cluster seems when that is worth a warning
SEEDS, VIEWS, SMALLER = "seeds_unreachable", "backup_sets_not_ready", "cluster_smaller"
LOG, KEYS, RESTART = "log_lines_dropped", "keys_not_renewed", "settings_need_restart"
ABOVE = "more_links_than_max"
WARNINGS = (SEEDS, VIEWS, SMALLER, LOG, KEYS, RESTART, ABOVE)


def estimate_nodes(place: int, ring: Collection[int], room: int) -> float:
    """How many nodes the cluster has, by the spacing of the ring around this one. `room`: how many are kept a side.

    Where fewer are kept than there is room for, they are all there are.
    """
    if len(ring) < 2 * room:
        return len(ring) + 1.0
    arc = (nearest_after(place, ring, room)[-1] - nearest_before(place, ring, room)[-1]) % SPACE
    return 2 * room * SPACE / max(arc, 1)


class SizeMemory:
    """The estimated size of the cluster, averaged over a while, and the largest it was lately."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.peak = 0.0

    def note(self, nodes: float, after_s: float) -> None:
        """An estimate, so many seconds after the last one."""
        self.mean = nodes if not self.mean else nodes + (self.mean - nodes) * math.exp(-after_s / SETTLING_S)
        self.peak = max(self.mean, self.peak * 0.5 ** (after_s / FORGETTING_S))

    @property
    def is_far_smaller(self) -> bool:
        return self.mean * FAR < self.peak


class HealthWatch:
    """Looks at a node now and then, and logs warnings when they begin and when they end.

    `after_restart`: settings that its file has otherwise than it goes by.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.size = SizeMemory()
        self.after_restart: tuple[str, ...] = ()
        self._told: frozenset[str] = frozenset()
        self._seen: frozenset[str] = frozenset()
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._next = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def end(self) -> None:
        """Look no more."""
        if self._next is not None:
            self._next.cancel()

    def _look(self) -> None:
        self.begin()
        self.look(LOOK_S)

    def look(self, after_s: float) -> None:
        """Note how it is now, so many seconds after the last time."""
        broker = self._broker
        if broker.core is None or not broker.is_joined:
            return
        room = broker.config.protocol.resilience + SPARE
        self.size.note(estimate_nodes(broker.node, broker.status().membership.ring, room), after_s)
        present = frozenset(self.warnings())
        warnings = present & (self._seen | self._told)  # seen once is not told: views are renewed after every change
        self._seen = present
        for warning in sorted(warnings - self._told):
            broker.log.warning("health_warning", warning=warning, nodes=round(self.size.mean, 1))
        for warning in sorted(self._told - warnings):
            broker.log.info("health_warning_ended", warning=warning, nodes=round(self.size.mean, 1))
        self._told = warnings

    def warnings(self) -> list[str]:
        """What does not keep the node from its work, but should be looked at."""
        broker = self._broker
        found = [SEEDS] if broker.unreachable_seeds else []
        if broker.core is not None and not _views_are_ready(broker.status()):
            found.append(VIEWS)
        if self.size.is_far_smaller:
            found.append(SMALLER)
        if any(handler.is_behind for handler in line_handlers()):
            found.append(LOG)
        if broker.has_stale_keys:
            found.append(KEYS)
        if self.after_restart:
            found.append(RESTART)
        if broker.core is not None and broker.status().links_above_max:
            found.append(ABOVE)
        return found


def _views_are_ready(node: NodeStatus) -> bool:
    """Whether this node could repair the loss of each of its predecessors."""
    sets = node.backup_sets
    return all(place in sets and sets[place].ready for place in node.membership.predecessors)


def readiness_of(broker: Broker) -> dict[str, Any]:
    """Whether the node does its work, and warnings."""
    core = broker.core
    if core is None or core.stopped:
        status = "stopped"
    elif broker.is_leaving:
        status = "leaving"
    elif not broker.is_joined:
        status = "joining"
    else:
        waits_s = max((stream.seconds for stream in broker.stalled), default=0.0)
        status = "stalled" if waits_s > STALLED_FOR_LONG_S else "ok"
    warnings = broker.health.warnings() if status not in ("stopped", "joining") else []
    return {"status": status, "name": broker.name, "warnings": warnings}


def health_of(broker: Broker) -> dict[str, Any]:
    """The worse of both, as one page: that this is answered at all is the other half of it.

    `losses`: those it knows of that are not repaired yet, as far as it knows.
    """
    node = None if broker.core is None else broker.status()
    losses = 0 if node is None else sum(event.kind is EventKind.LEAVE for event in node.repairs.open_events)
    return readiness_of(broker) | {"busy": node is not None and node.busy, "losses": losses}
