"""What keeps one peer from using up a node: rate limits, counts of connections, growing bans."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from omen.net.settings import Limits

FIRST_BAN_S, LONGEST_BAN_S = 0.2, 30.0
REMEMBERED = 4096
DIAL_BURST_S = 8.0


class Bucket:
    """A token bucket: `rate` per second, and as many at once as `burst_s` seconds bring. 0: any number."""

    def __init__(self, rate: float, burst_s: float = 1.0) -> None:
        self._rate = rate
        self._room = self._left = rate * burst_s
        self._filled = 0.0

    def take(self, count: int, now: float) -> float:
        """Take this many tokens; how long to wait until there is one again, 0 where there is."""
        if not self._rate:
            return 0.0
        self._left = min(self._room, self._left + (now - self._filled) * self._rate) - count
        self._filled = now
        return max(0.0, -self._left / self._rate)


class Rates:
    """What one peer may send: frames per second, and among them messages that are no publications."""

    def __init__(self, limits: Limits) -> None:
        self._frames = Bucket(limits.frames_per_s)
        self._messages = Bucket(limits.messages_per_s)

    def charge(self, frames: int, messages: int, now: float) -> float:
        """Count what has come; how long to read nothing from this peer."""
        return max(self._frames.take(frames, now), self._messages.take(messages, now))


class DialBudget:
    """What each peer may have this node dial: every connection that follows from a peer's message is paid by it."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def pay(self, asker: Hashable, now: float) -> bool:
        """Whether the asker could pay for one more."""
        bucket = self._buckets.get(asker)
        if bucket is None:
            bucket = self._buckets[asker] = Bucket(self._per_s, DIAL_BURST_S)
            if len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)
        if bucket.take(0, now) > 0:
            return False
        bucket.take(1, now)
        return True


class _Ban(msgspec.Struct, frozen=True):
    count: int
    until: float


class Bans:
    """Addresses or nodes that are shut out for a while, each time twice as long. The oldest are forgotten."""

    def __init__(self, first_s: float = FIRST_BAN_S, longest_s: float = LONGEST_BAN_S) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._bans: OrderedDict[Hashable, _Ban] = OrderedDict()

    def __len__(self) -> int:
        return len(self._bans)

    def ban(self, who: Hashable, now: float) -> float:
        """Begin a ban; how long it is."""
        former = self._bans.pop(who, None)
        if former is None or now > former.until + self._longest_s:
            former = _Ban(0, 0.0)
        length = min(self._first_s * 2.0 ** min(former.count, 30), self._longest_s)
        self._keep(who, _Ban(former.count + 1, now + length))
        return length

    def ban_for(self, who: Hashable, now: float, length: float) -> None:
        """A ban of another's making, of this length; one that lasts longer stays."""
        former = self._bans.pop(who, None) or _Ban(0, 0.0)
        self._keep(who, _Ban(former.count, max(former.until, now + length)))

    def _keep(self, who: Hashable, ban: _Ban) -> None:
        self._bans[who] = ban
        if len(self._bans) > REMEMBERED:
            self._bans.popitem(last=False)

    def remaining(self, who: Hashable, now: float) -> float:
        """How long a ban still lasts; 0: there is none."""
        found = self._bans.get(who)
        return 0.0 if found is None else max(0.0, found.until - now)

    def active(self, now: float) -> int:
        """How many bans are in force."""
        return sum(found.until > now for found in self._bans.values())

    def lift_all(self) -> None:
        self._bans.clear()


class InboundConnections:
    """Connections that peers have made, by address. `half_open`: their handshake has not ended; the oldest first."""

    def __init__(self) -> None:
        self.by_address: Counter[str] = Counter()
        self.peers_by_address: Counter[str] = Counter()
        self.half_open_by_address: Counter[str] = Counter()
        self.half_open: OrderedDict[Hashable, str] = OrderedDict()
        self._peers: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self.half_open) + len(self._peers)

    def add(self, connection: Hashable, address: str) -> None:
        self.half_open[connection] = address
        self.half_open_by_address[address] += 1
        self.by_address[address] += 1

    def settle(self, connection: Hashable) -> None:
        """Its handshake has ended well."""
        address = self.half_open.pop(connection, None)
        if address is not None:
            _less(self.half_open_by_address, address)
            self._peers[connection] = address
            self.peers_by_address[address] += 1

    def remove(self, connection: Hashable) -> None:
        address = self.half_open.pop(connection, None)
        if address is not None:
            _less(self.half_open_by_address, address)
        else:
            address = self._peers.pop(connection, None)
            if address is None:
                return
            _less(self.peers_by_address, address)
        _less(self.by_address, address)

    def oldest_half_open(self) -> Hashable:
        return next(iter(self.half_open))


def _less(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
