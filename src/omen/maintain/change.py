"""What a maintainer did about an event, or about several together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omen.fleet.repairing import AboveCap
from omen.interests import Label

Link = tuple[Label, Label]


@dataclass(frozen=True, slots=True)
class Change:
    """Links made and dropped, each as (lower label, higher label), who took part, and the processor time of each step.

    The overlay afterwards is the one before without `removed` and with `added`; no link is in both. `removed` holds
    the links a leaving node took with it. `shadow` is the shadow set in label order (all events of a batch together):
    empty for maintainers that look at all nodes. Steps: `prepare_s` builds the backups of joining nodes, `links_s`
    finds the links (labels and greedy), `backups_s` rebuilds the backups of others, `rebalance_s` is what `rebalance`
    took. `above`: the nodes that have more links than the rules of a fleet allow them, when it is done.
    """

    added: tuple[Link, ...] = ()
    removed: tuple[Link, ...] = ()
    shadow: tuple[Label, ...] = ()
    prepare_s: float = 0.0
    links_s: float = 0.0
    backups_s: float = 0.0
    rebalance_s: float = 0.0
    rebuilt: int = 0
    above: tuple[AboveCap, ...] = ()

    @property
    def repair_s(self) -> float:
        """What stands between the event and a connected overlay: finding the links, for a join its backups too."""
        return self.prepare_s + self.links_s

    @property
    def links_changed(self) -> int:
        return len(self.added) + len(self.removed)


class Ledger:
    """Links made and dropped on the way, balanced against each other."""

    def __init__(self) -> None:
        self._balance: dict[Link, int] = {}

    def make(self, links: Iterable[Link]) -> None:
        for link in links:
            self._balance[link] = self._balance.get(link, 0) + 1

    def drop(self, links: Iterable[Link]) -> None:
        for link in links:
            self._balance[link] = self._balance.get(link, 0) - 1

    def made(self) -> tuple[Link, ...]:
        return tuple(link for link, balance in self._balance.items() if balance > 0)

    def dropped(self) -> tuple[Link, ...]:
        return tuple(link for link, balance in self._balance.items() if balance < 0)
