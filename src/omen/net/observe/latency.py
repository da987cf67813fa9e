"""How long publications take, from `publish` to the inbox of a subscriber.

A publisher stamps a publication now and then with its own clock; the node that delivers it compares its own. So
the two clocks must agree as well as the figure is to be: an earlier arrival than sending counts as none at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from omen.net.observe.metrics import Histogram
from omen.protocol.messages.publications import Fields, read_fields, write_fields

LATENCY_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SAMPLE_S = 0.5


class DeliveryLatency:
    """`times`: of the publications that were stamped."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.times = Histogram(LATENCY_BOUNDS_S)
        self._clock = clock
        self._stamped = 0.0

    def stamp(self, fields: bytes) -> bytes:
        """The block of fields for the next publication: with the time, where none was stamped for a while."""
        now = self._clock()
        if fields or 0 <= now - self._stamped < SAMPLE_S:
            return fields
        self._stamped = now
        return write_fields(Fields(timestamp=int(now * 1e3)))

    def observe(self, fields: bytes) -> None:
        """A publication was delivered; one whose fields cannot be read tells nothing."""
        try:
            sent = read_fields(fields).timestamp
        except msgspec.MsgspecError:
            return
        if sent is not None:
            self.times.observe(max(0.0, self._clock() - sent / 1e3))
