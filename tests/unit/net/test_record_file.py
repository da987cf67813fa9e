"""Stored records on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.errors import CannotWrite
from omen.net.record_file import RecordFile
from omen.protocol.messages.records import Record


def test_records_are_there_again_with_what_is_left_of_their_life(tmp_path: Path) -> None:
    file = RecordFile(tmp_path, "n/1", 1 << 20)
    file.put(Record(2**64 - 1, b"k", 1, 0, b"old", 60_000))
    file.put(Record(2**64 - 1, b"k", 2, 2**63, b"new", 60_000))
    file.put(Record(0, b"gone", 1, 0, b"x", 60_000))
    file.put(Record(0, b"over", 1, 0, b"x", 0))
    file.drop(0, b"gone")
    again = RecordFile(tmp_path, "n/1", 1 << 20)  # the first was never closed, as after a crash
    (found,) = again.read()
    assert (found.place, found.key, found.version, found.writer, found.value) == (2**64 - 1, b"k", 2, 2**63, b"new")
    assert 50_000 < found.life <= 60_000


def test_the_file_is_bounded_and_says_so(tmp_path: Path) -> None:
    file = RecordFile(tmp_path, "n", 64 << 10)
    with pytest.raises(CannotWrite):
        for number in range(1000):
            file.put(Record(number, b"k", 1, 0, bytes(4000), 60_000))
    assert file.path.stat().st_size <= 4 * (64 << 10) + 4096
    file.drop(0, b"k")
    file.put(Record(0, b"k", 2, 0, bytes(3000), 60_000))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        RecordFile(tmp_path / "file", "n", 1 << 20)
