"""The records that one node keeps."""

from __future__ import annotations

from omen.protocol.events import MILLISECOND
from omen.protocol.messages.records import Record
from omen.protocol.storage.store import OVERHEAD, RecordStore


def record(version: int, writer: int = 1, key: bytes = b"k", value: bytes = b"v", life: int = 1000) -> Record:
    return Record(7, key, version, writer, value, life)


def test_the_higher_version_counts_then_the_higher_writer() -> None:
    store = RecordStore(10_000)
    assert store.put(record(2, writer=5), 0)
    assert not store.put(record(1, writer=9), 0)
    assert not store.put(record(2, writer=5), 0)
    assert store.put(record(2, writer=6), 0)
    assert store.holds(7, b"k", (2, 6)) and not store.holds(7, b"k", (3, 0))
    assert len(store) == 1 and store.bytes == 2 + OVERHEAD


def test_records_are_bounded_in_all_and_per_writer() -> None:
    store = RecordStore(4 * (OVERHEAD + 12))
    assert [store.put(record(1, 1, bytes([65 + n, 0]), bytes(10)), 0) for n in range(3)] == [True, True, False]
    assert [store.put(record(1, 2, bytes([75 + n, 0]), bytes(10)), 0) for n in range(3)] == [True, True, False]
    assert not store.put(record(1, 3, b"z", b"z"), 0)
    assert store.refused == 3 and store.bytes <= 4 * (OVERHEAD + 12)
    assert store.put(record(2, 1, b"A\0", b""), 0), "a removal takes less than what it removes"


def test_a_record_ends_with_its_life_and_tells_what_is_left_of_it() -> None:
    store = RecordStore(10_000)
    store.put(record(1, life=500), 0)
    assert [one.life for one in store.at(7, 200 * MILLISECOND)] == [300]
    assert store.expired(499 * MILLISECOND) == []
    assert store.expired(500 * MILLISECOND) == [(7, b"k")]
    store.drop((7, b"k"))
    assert len(store) == store.bytes == 0


def test_the_last_changed_comes_first_and_keys_come_in_order() -> None:
    store = RecordStore(10_000)
    for key in (b"b", b"a", b"c"):
        store.put(record(1, key=key), 0)
    store.put(record(2, key=b"b"), 0)
    assert [kept.record.key for kept in store.newest_first()] == [b"b", b"c", b"a"]
    assert [one.key for one in store.at(7, 0, b"a")] == [b"b", b"c"]
