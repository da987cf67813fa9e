"""How long a node waits for what comes by itself before it requests it."""

from __future__ import annotations

from omen.protocol.config import Dissemination
from omen.protocol.events import MILLISECOND, SECOND, Time

ROUND_TRIPS = 4
SHORTEST_DELAY = 50 * MILLISECOND
COPIES = 16
"""So many publications that came twice in one round of announcements: requests, or grafts of branches, were early.

Those that new links and bypasses bring are not counted: all their branches are on the tree at first, on purpose.
"""
CALM = 4 * SECOND
"""After so long without many, half is waited again: where links are full for minutes, halving it sooner would fill them
up again and again."""
TRIES = 5
"""No longer is waited than `hole_patience` by this, unless `graft_delay` is longer: what is requested later than that
could be told as a gap before it can come, and copies may be sent on purpose."""


class Pace:
    """`by_round_trip`: follows the round trips of neighbours, within bounds; a node that is busy answers late too, so
    its neighbours do not request too early what it is about to send. `delay`: the same, and longer while much comes
    twice, as TCP's RACK does by duplicate acknowledgements: links that are full would be filled up with copies.
    `copies`: of this round.
    """

    __slots__ = ("_highest", "_longest", "_raised", "_raised_at", "by_round_trip", "copies", "delay")

    def __init__(self, settings: Dissemination) -> None:
        self.delay = self.by_round_trip = self._longest = settings.graft_delay
        self._highest = max(self._longest, settings.hole_patience // TRIES)
        self.copies = 0
        self._raised: Time = 0
        self._raised_at: Time = 0

    def note(self, round_trip: Time) -> None:
        """What the answer of a neighbour takes at most, as a rule."""
        if round_trip:
            self.by_round_trip = min(max(ROUND_TRIPS * round_trip, SHORTEST_DELAY), self._longest)
            self.delay = max(self.by_round_trip, self._raised)

    def wait(self, now: Time) -> Time:
        """`delay` as it is by now: rounds end only where something changes, and what was raised ends in silence too."""
        self._calm_down(now)
        return self.delay

    def end_round(self, now: Time) -> None:
        """Twice as long after a round with many copies; half as long again for each `CALM` without."""
        self._calm_down(now)
        if self.copies >= COPIES:
            self._raised = min(2 * self.delay, self._highest)
            self._raised_at = now
            self.delay = max(self.by_round_trip, self._raised)
        self.copies = 0

    def _calm_down(self, now: Time) -> None:
        if self._raised and (calm := (now - self._raised_at) // CALM):
            self._raised >>= calm
            self._raised_at += calm * CALM
            self.delay = max(self.by_round_trip, self._raised)
