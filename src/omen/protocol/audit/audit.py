"""Healing from any state: labels of pieces, reports of their leaders, a rendezvous for each topic. No paper has this.

A repair answers to an event. Where more was lost than could be mended, a network was cut, or links vanished without a
word, there is no event left to answer to, and a topic stays split. The audit looks for that all the time: see `labels`,
`reporting` and `rendezvous`. Guarantee: once nothing more happens, and the circle is one circle, every topic is whole
after a few periods, whatever the state was; measured: within two after links were lost.
"""

from __future__ import annotations

from collections.abc import Callable

from omen.protocol.audit.labels import PieceLabels
from omen.protocol.audit.leader_reports import Reporter
from omen.protocol.audit.rendezvous import Rendezvous
from omen.protocol.config import Config
from omen.protocol.context import Outbox
from omen.protocol.events import Engine, Randomness, Time
from omen.protocol.membership.peer_table import PeerTable
from omen.protocol.membership.ring import Ring
from omen.protocol.membership.ring_lookup import RingLookup
from omen.protocol.repair.links import Links

SETTLING = 5  # a fifth of a period passes between a change of pieces and the report of it


class Audit:
    """The three parts of the audit, and their timers. Does nothing unless it is switched on."""

    def __init__(
        self,
        peer_table: PeerTable,
        ring: Ring,
        links: Links,
        ring_lookup: RingLookup,
        config: Config,
        randomness: Randomness,
        engine: Engine,
        out: Outbox,
        clock: Callable[[], Time],
    ) -> None:
        self._config = config
        self._random = randomness
        self._out = out
        self._settling = False
        self.labels = PieceLabels(peer_table, links, config, out)
        self.reporter = Reporter(peer_table, ring, links, self.labels, ring_lookup, config, out)
        self.rendezvous = Rendezvous(peer_table, ring, config, randomness, engine, out, clock)

    def start(self) -> None:
        """Begin somewhere in the period, so that the nodes' turns are spread."""
        period = self._config.audit_period
        self._out.set_timer(("audit", "period"), period // 4 + self._random.randrange(period))
        self.labels.note_change()

    def on_timer(self, key: tuple[object, ...]) -> bool:
        """Whether a period has begun."""
        what = key[1]
        if what == "spread":
            self.labels.spread()
            self._report_soon()
        elif what == "report":
            self._settling = False
            self.reporter.report()
        elif what == "inquire":
            self.rendezvous.inquire()
        elif what == "ask" and isinstance(key[2], int):
            self.rendezvous.ask_silent(key[2])
        elif what == "period":
            self._out.set_timer(("audit", "period"), self._config.audit_period)
            self.rendezvous.expire()
            self.labels.next_period()
            self.reporter.next_period()
            return True
        return False

    def _report_soon(self) -> None:
        if self.labels.led_changed and not self._settling:
            self._settling = True
            self._out.set_timer(("audit", "report"), self._config.audit_period // SETTLING)
