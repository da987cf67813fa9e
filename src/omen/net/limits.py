"""What keeps one peer from using up a node: rates, counts of connections, pauses for those who break the protocol."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
REMEMBERED = 4096
LINES_AT_ONCE, LINES_PER_S = 20.0, 2.0


class Bucket:
    """So many a second, and as many at once as one second brings. 0: any number."""

    def __init__(self, rate: float, burst_s: float = 1.0) -> None:
        self._rate = rate
        self._room = self._left = rate * burst_s
        self._filled = 0.0

    def take(self, count: int, now: float) -> float:
        """Take this many out; how long to wait until there is something in it again, 0 where there is."""
        if not self._rate:
            return 0.0
        self._left = min(self._room, self._left + (now - self._filled) * self._rate) - count
        self._filled = now
        return max(0.0, -self._left / self._rate)


@dataclass(slots=True)
class _Record:
    strikes: int
    until: float


class Backoff:
    """Whoever breaks the protocol is not heard for a while, each time twice as long. The oldest are forgotten."""

    def __init__(self, first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._records: OrderedDict[Hashable, _Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def strike(self, who: Hashable, now: float) -> float:
        """Begin a pause; how long it is."""
        record = self._records.pop(who, None)
        if record is None or now > record.until + self._longest_s:
            record = _Record(0, 0.0)
        pause = min(self._first_s * 2.0 ** min(record.strikes, 30), self._longest_s)
        self._records[who] = _Record(record.strikes + 1, now + pause)
        if len(self._records) > REMEMBERED:
            self._records.popitem(last=False)
        return pause

    def pause_left(self, who: Hashable, now: float) -> float:
        """For how long nothing is heard from there yet."""
        record = self._records.get(who)
        return 0.0 if record is None else max(0.0, record.until - now)

    def paused(self, now: float) -> int:
        """How many are not heard now."""
        return sum(record.until > now for record in self._records.values())


class Census:
    """Connections that others have made, by address; those that have not said who they are yet in order of coming."""

    def __init__(self) -> None:
        self.by_address: Counter[str] = Counter()
        self.members_by_address: Counter[str] = Counter()
        self.half_open_by_address: Counter[str] = Counter()
        self.half_open: OrderedDict[Hashable, str] = OrderedDict()
        self._members: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self.half_open) + len(self._members)

    def enter(self, who: Hashable, address: str) -> None:
        self.half_open[who] = address
        self.half_open_by_address[address] += 1
        self.by_address[address] += 1

    def settle(self, who: Hashable) -> None:
        """It has said, and shown, who it is."""
        address = self.half_open.pop(who, None)
        if address is not None:
            _less(self.half_open_by_address, address)
            self._members[who] = address
            self.members_by_address[address] += 1

    def leave(self, who: Hashable) -> None:
        address = self.half_open.pop(who, None)
        if address is not None:
            _less(self.half_open_by_address, address)
        else:
            address = self._members.pop(who, None)
            if address is None:
                return
            _less(self.members_by_address, address)
        _less(self.by_address, address)

    def oldest_half_open(self) -> Hashable:
        return next(iter(self.half_open))


def _less(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]


class Lines:
    """Lets a few lines a second into the log: refusals must not fill a disk. `skipped`: since the last that passed."""

    def __init__(self) -> None:
        self._bucket = Bucket(LINES_PER_S, LINES_AT_ONCE / LINES_PER_S)
        self._since = 0

    def skipped_before(self, now: float) -> int | None:
        """How many lines were left out before this one; None: leave this one out too."""
        if self._bucket.take(0, now) > 0:
            self._since += 1
            return None
        self._bucket.take(1, now)
        skipped, self._since = self._since, 0
        return skipped
