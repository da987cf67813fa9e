"""Lines that no caller waits for: a thread writes them, and what finds no room is dropped and counted.

A pipe that no process reads, a terminal that was stopped, a disk that is slow: each makes a write wait for as long as
it likes, and an event loop that waits stands still for all its peers. A disk that is full makes it fail.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

ROOM_BYTES = 1 << 20
LAST_WORDS_S = 1.0  # how long a process that ends waits for its last lines to be written


class LineWriter:
    """Writes lines to a descriptor, in order. `dropped`: how many it did not write, for lack of room or an error.

    `tell`: the line that says how many were dropped; it stands where they would have.
    """

    def __init__(self, descriptor: int, tell: Callable[[int], bytes], room_bytes: int = ROOM_BYTES) -> None:
        self._descriptor = os.dup(descriptor)  # so that no other file takes its number while a line waits
        self._tell = tell
        self._room_bytes = room_bytes
        self.dropped = 0
        self._is_cut = False
        self._begin()

    def _begin(self) -> None:
        """The thread is begun by the first line, and again in a process that was forked from this one."""
        self._process = os.getpid()
        self._turn = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._bytes = 0
        self._untold = 0
        self._count = 0
        self._stuck_at: int | None = None

    @property
    def is_own(self) -> bool:
        """Whether this process made it, and not the one that this was forked from."""
        return self._process == os.getpid()

    @property
    def is_behind(self) -> bool:
        """Whether lines were dropped, and it could not be said yet."""
        return self._untold > 0

    def put(self, line: bytes) -> None:
        """Have a line written, or drop it; returns at once."""
        if not self.is_own:
            self._begin()
        with self._turn:
            if self._bytes + len(line) > self._room_bytes:
                self._drop(1)
                return
            if self._untold:
                self._append_count()
            self._append(line, 0)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="omen-log", daemon=True)
                self._thread.start()

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._untold += count

    def _append_count(self) -> None:
        count, self._untold = self._untold, 0
        self._append(self._tell(count), count)

    def _append(self, line: bytes, told: int) -> None:
        self._waiting.append((line, told))
        self._bytes += len(line)
        self._turn.notify_all()

    def _run(self) -> None:
        while True:
            with self._turn:
                while not self._waiting:
                    self._turn.wait()
                line, told = self._waiting.popleft()
            is_written = self._write(line)
            with self._turn:
                self._count += 1
                self._bytes -= len(line)
                if not is_written and told:
                    self._untold += told
                elif not is_written:
                    self._drop(1)
                elif self._untold and not self._waiting:
                    self._append_count()
                self._turn.notify_all()

    def _write(self, line: bytes) -> bool:
        """Whether all of it was written. What follows a line that was cut short begins a line of its own."""
        rest = memoryview(b"\n" + line if self._is_cut else line)
        size = len(rest)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._descriptor, select.POLLOUT)
                poller.poll()
            except OSError:
                self._is_cut = self._is_cut if len(rest) == size else True
                return False
        self._is_cut = False
        return True

    def flush(self, timeout_s: float = LAST_WORDS_S) -> bool:
        """Wait until all lines are written, for so long at most; whether they are. It is not waited in vain twice."""
        if not self.is_own:
            return True
        with self._turn:
            if self._stuck_at != self._count:
                self._turn.wait_for(lambda: not self._bytes, timeout_s)
            self._stuck_at = self._count if self._bytes else None
            return not self._bytes

    def close(self) -> None:
        """Let go of the descriptor, unless a line that cannot be written still holds it."""
        if self.flush():
            with suppress(OSError):
                os.close(self._descriptor)
