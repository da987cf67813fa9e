"""How fast a client reads what is queued for it: whether it is worth while to hold back those who publish for it."""

from __future__ import annotations

import msgspec

MEASURED_S = 0.5
STILL_S = 2.0
"""A client that has acknowledged nothing for so long does not read."""
DRAIN_S = 20.0
"""Who would need longer for its queue is too slow: it would slow others down more than it would cost them to do without
it.
"""


class Pace(msgspec.Struct):
    """Acknowledgements of one client. `per_s`: negative where it was not measured yet."""

    since: float = 0.0
    count: int = 0
    per_s: float = -1.0

    def begin(self, now: float) -> None:
        """There is something to read again."""
        self.since, self.count, self.per_s = now, 0, -1.0

    def note(self, now: float) -> None:
        """The client has acknowledged a message."""
        self.count += 1
        if now - self.since >= MEASURED_S:
            self.per_s = self.count / (now - self.since)
            self.since, self.count = now, 0

    def keeps_up(self, queued: int, now: float) -> bool:
        """Whether so much will be read soon."""
        if now - self.since > STILL_S:
            return False
        latest = self.count / max(now - self.since, MEASURED_S)  # this node may have been busy, not the client
        return self.per_s < 0 or queued <= max(self.per_s, latest) * DRAIN_S
