"""What a node passes on, but for what needs peers."""

from __future__ import annotations

import msgspec

from omen.net.watching.gathering import BYTES_PER_S, WAITING_AT_MOST, WAITING_BYTES, Viewer, _in_frames
from omen.net.watching.messages import FRAME_BYTES

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


def test_entries_go_out_in_frames_that_are_not_large() -> None:
    parts = _in_frames([LARGE] * 10)
    assert sum(map(len, parts)) == 10
    assert max(sum(len(bytes(raw)) for raw in part) for part in parts) <= FRAME_BYTES
    assert _in_frames([]) == []
