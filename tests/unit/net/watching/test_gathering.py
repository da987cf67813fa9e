"""What a node passes on, but for what needs peers."""

from __future__ import annotations

import tracemalloc

import msgspec

from omen.net.watching.gathering import BYTES_PER_S, WAITING_AT_MOST, WAITING_BYTES, Viewer, _in_frames
from omen.net.watching.messages import FRAME_BYTES, Told, decode, encode

LARGE = msgspec.Raw(bytes(32 << 10))


def test_what_others_say_is_passed_on_within_bounds() -> None:
    viewer = Viewer([1], 0, 1, 0.0)
    taken = [viewer.add(LARGE, 0.0) for _ in range(100)]
    assert sum(taken) == WAITING_BYTES // (32 << 10) == len(viewer.take())
    assert viewer.take() == []
    passed = 0
    for tenth in range(1, 101):
        passed += sum(viewer.add(LARGE, tenth / 10) for _ in range(100)) * (32 << 10)
        viewer.take()
    assert 0.9 * BYTES_PER_S * 10 < passed <= BYTES_PER_S * 10


def test_no_more_entries_wait_than_may() -> None:
    viewer = Viewer([1], 0, 1, 0.0)
    assert sum(viewer.add(msgspec.Raw(b"x"), 0.0) for _ in range(WAITING_AT_MOST + 5)) == WAITING_AT_MOST


def test_an_entry_that_waits_keeps_its_own_bytes_and_not_the_frame_it_came_in() -> None:
    """Before: 2,000 entries of one byte, each first in a frame of 8 MiB, kept all these frames."""
    frame = encode(Told(1, (msgspec.Raw(b"x"), msgspec.Raw(msgspec.msgpack.encode(bytes(1 << 20))))))
    viewer = Viewer([1], 0, 1, 0.0)
    tracemalloc.start()
    try:
        for _ in range(20):
            told = decode(frame)
            assert isinstance(told, Told) and viewer.add(told.entries[0], 0.0)
            del told
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(viewer.take()) == 20 and kept < 1 << 16


def test_entries_go_out_in_frames_that_are_not_large() -> None:
    parts = _in_frames([LARGE] * 10)
    assert sum(map(len, parts)) == 10
    assert max(sum(len(bytes(raw)) for raw in part) for part in parts) <= FRAME_BYTES
    assert _in_frames([]) == []
