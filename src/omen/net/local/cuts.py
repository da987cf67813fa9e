"""Cuts in a cluster that was brought up to be tried: two nodes, or one and all others, that do not reach each other.

Which there are stands in a file of the cluster's folder. Who changes it sends SIGUSR1 to all nodes, which look. While a
cut lasts, both of its ends close their connection and ban the other, for a moment at a time: neither dials, neither is
let in, as with a firewall between them that resets connections. To drop packets in silence between processes of one
machine takes rights that a page should not have; a node finds out by its failure detector either way.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omen.net.state import read_states
from omen.protocol.membership.ring import place_of

if TYPE_CHECKING:
    from omen.net.broker import Broker

CUTS = "cuts.json"
ALL = ""
RENEW_S, BAN_S = 0.25, 0.75  # a ban outlasts a node that is busy for a moment, and ends soon after the cut
CHANGED = signal.SIGUSR1


@dataclass(frozen=True, slots=True)
class Cut:
    """A node that does not reach another, or (`ALL`) any other, until a time of the wall clock."""

    node: str
    other: str
    until: float

    def concerns(self, name: str) -> bool:
        return name in (self.node, self.other)


def read_cuts(folder: Path) -> list[Cut]:
    """The cuts in force."""
    try:
        found = [Cut(**values) for values in json.loads((folder / CUTS).read_text())]
    except (OSError, ValueError, TypeError):
        return []
    now = time.time()
    return [cut for cut in found if cut.until > now]


def write_cuts(folder: Path, cuts: Sequence[Cut]) -> None:
    """Whole or not at all. Nodes look at it when they are told."""
    aside = folder / f".{CUTS}.{os.getpid()}"
    aside.write_text(json.dumps([asdict(one) for one in cuts]))
    aside.replace(folder / CUTS)


def ignore_cuts() -> None:
    """Before a node is up it does not look, and a signal must not end it."""
    signal.signal(CHANGED, signal.SIG_IGN)


def obey_cuts(folder: Path, nodes: Path, broker: Broker) -> None:
    """Have a node that is up keep to the cuts of its cluster from now on. `nodes`: where all nodes keep their state."""
    ends = CutEnds(folder, nodes, broker)
    asyncio.get_running_loop().add_signal_handler(CHANGED, ends.look)
    ends.look()


class CutEnds:
    """This node's end of all its cuts."""

    def __init__(self, folder: Path, nodes: Path, broker: Broker) -> None:
        self._folder = folder
        self._nodes = nodes
        self._broker = broker
        self._cuts: list[Cut] = []
        self._again: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """The cuts may have changed."""
        name = self._broker.name
        self._cuts = [one for one in read_cuts(self._folder) if one.other == ALL or one.concerns(name)]
        self._renew()

    def _renew(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        now = time.time()
        self._cuts = [one for one in self._cuts if one.until > now]
        for node in self._far_ends():
            self._part_with(node)
        if self._cuts:
            self._again = asyncio.get_running_loop().call_later(RENEW_S, self._renew)

    def _far_ends(self) -> set[int]:
        """The nodes out of reach, by their places; a node that is cut from all others also from clients."""
        found, own = set(), self._broker.name
        for one in self._cuts:
            if one.node != own:
                found.add(place_of(one.node))
            elif one.other != ALL:
                found.add(place_of(one.other))
            else:
                driver = self._broker.driver
                found |= {place_of(state["name"]) for state in read_states(self._nodes)}
                found |= set(driver.peers.table) if driver is not None else set()
        return found - {self._broker.node}

    def _part_with(self, node: int) -> None:
        self._broker.admission.bans.ban_for(node, asyncio.get_running_loop().time(), BAN_S)
        driver = self._broker.driver
        peer = driver.peers.table.get(node) if driver is not None else None
        if peer is not None and peer.connection is not None:
            peer.connection.abort()
