"""Stored records of one node on disk, so that they outlive a restart of the whole cluster: SQLite in WAL mode.

Each record is written before the core's answer that says so goes out. A process that is killed loses nothing; a
machine that loses its power may lose the last moments, for nothing waits for the disk (`synchronous = NORMAL`).
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from omen.errors import CannotWrite
from omen.net.state import path_of
from omen.protocol.messages.records import Record

PAGE_BYTES = 4096
SPARE = 4
"""The file may have this much more than the records in it: pages that are not full, and the journal's."""
_SELECT = "SELECT place, key, version, writer, value, ends_at FROM records"
_SIGNED = 1 << 63


def _signed(place: int) -> int:
    """SQLite's integers have a sign."""
    return place - _SIGNED


class RecordFile:
    """The records in one file. `CannotWrite`: it cannot be opened, or has no room."""

    def __init__(self, folder: str | Path, name: str, most_bytes: int) -> None:
        self.path = path_of(folder, name).with_suffix(".records")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            run = self._connection.execute
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = NORMAL")
            run(f"PRAGMA max_page_count = {max(SPARE * most_bytes // PAGE_BYTES, 64)}")
            run(
                "CREATE TABLE IF NOT EXISTS records (place INTEGER, key BLOB, version INTEGER, writer INTEGER, "
                "value BLOB, ends_at REAL, PRIMARY KEY (place, key)) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise CannotWrite(f"{self.path}: cannot keep records there: {error}") from error

    def put(self, record: Record) -> None:
        row = (
            _signed(record.place),
            record.key,
            record.version,
            _signed(record.writer),
            record.value,
            time.time() + record.life / 1000,
        )
        try:
            self._connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise CannotWrite(f"{self.path}: {error}") from error

    def drop(self, place: int, key: bytes) -> None:
        try:
            self._connection.execute("DELETE FROM records WHERE place = ? AND key = ?", (_signed(place), key))
        except sqlite3.Error as error:
            raise CannotWrite(f"{self.path}: {error}") from error

    def read(self) -> tuple[Record, ...]:
        """All that have not expired; the others are removed."""
        now = time.time()
        try:
            self._connection.execute("DELETE FROM records WHERE ends_at <= ?", (now,))
            rows = self._connection.execute(_SELECT).fetchall()
        except sqlite3.Error as error:
            raise CannotWrite(f"{self.path}: {error}") from error
        return tuple(
            Record(place + _SIGNED, key, version, writer + _SIGNED, value, int((ends_at - now) * 1000))
            for place, key, version, writer, value, ends_at in rows
        )

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
