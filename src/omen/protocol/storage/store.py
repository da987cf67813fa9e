"""The records that one node keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from omen.protocol.events import MILLISECOND, NodeId, Time
from omen.protocol.messages.records import Record

OVERHEAD = 200
"""What keeping a record costs beside its key and value, in bytes."""
LIFE_AT_MOST = 10 * 365 * 24 * 3600 * 1000
"""No record is kept for longer, in milliseconds."""

Name = tuple[int, bytes]
"""Place and key."""


class Kept(msgspec.Struct, frozen=True, gc=False):
    """A record and when it ends. `stamp`: counts changes of the store, this record's last among them."""

    record: Record
    ends_at: Time
    stamp: int
    since: Time

    @property
    def size(self) -> int:
        return size_of(self.record)


def size_of(record: Record) -> int:
    return len(record.key) + len(record.value) + OVERHEAD


class RecordStore:
    """Records by place and key, those that changed last at the end. `refused`: how many there was no room for."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: dict[Name, Kept] = {}
        self._keys: dict[int, set[bytes]] = {}
        self._by_writer: Counter[NodeId] = Counter()
        self.bytes = 0
        self.stamp = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._kept)

    def holds(self, place: int, key: bytes, order: tuple[int, int]) -> bool:
        """Whether this version or a later one is here."""
        kept = self._kept.get((place, key))
        return kept is not None and kept.record.order >= order

    def put(self, record: Record, now: Time) -> bool:
        """Keep a record unless a later version is here; whether anything changed.

        A writer has at most half of the room, so that no single one can take it from all others.
        """
        name = (record.place, record.key)
        former = self._kept.get(name)
        if former is not None and former.record.order >= record.order:
            return False
        size = size_of(record)
        freed = 0 if former is None else former.size
        own = freed if former is not None and former.record.writer == record.writer else 0
        is_full = self.bytes + size - freed > self._most
        if is_full or self._by_writer[record.writer] + size - own > self._most // 2:
            self.refused += 1
            return False
        if former is not None:
            self._remove(name)
        self.stamp += 1
        ends_at = now + min(record.life, LIFE_AT_MOST) * MILLISECOND
        self._kept[name] = Kept(record, ends_at, self.stamp, now)
        self._keys.setdefault(record.place, set()).add(record.key)
        self._by_writer[record.writer] += size
        self.bytes += size
        return True

    def _remove(self, name: Name) -> None:
        kept = self._kept.pop(name)
        keys = self._keys[name[0]]
        keys.discard(name[1])
        if not keys:
            del self._keys[name[0]]
        writer = kept.record.writer
        self._by_writer[writer] -= kept.size
        if self._by_writer[writer] <= 0:
            del self._by_writer[writer]
        self.bytes -= kept.size

    def drop(self, name: Name) -> None:
        if name in self._kept:
            self._remove(name)

    def expired(self, now: Time) -> list[Name]:
        return [name for name, kept in self._kept.items() if kept.ends_at <= now]

    def get(self, place: int, key: bytes, now: Time) -> Record | None:
        kept = self._kept.get((place, key))
        return None if kept is None else _as_of(kept, now)

    def at(self, place: int, now: Time, after: bytes = b"") -> Iterator[Record]:
        """The records of a place behind a key, in the order of their keys."""
        for key in sorted(key for key in self._keys.get(place, ()) if key > after):
            yield _as_of(self._kept[place, key], now)

    def newest_first(self) -> Iterator[Kept]:
        """All of them, the last changed first."""
        return reversed(self._kept.values())


def _as_of(kept: Kept, now: Time) -> Record:
    """A record with what is left of its life."""
    left = max((kept.ends_at - now) // MILLISECOND, 0)
    return msgspec.structs.replace(kept.record, life=left)
