"""A progress line on stderr: what Spark's stages have done, shown only to a person, and only after two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE_S = 2.0
_EVERY_S = 0.5
_WIDTH = 30
_what = "working"


def announce_step(what: str) -> None:
    """Names what is being done, for the progress line."""
    global _what
    _what = what


@contextmanager
def stage_progress(session: SparkSession) -> Iterator[None]:
    """Watches the session's stages for the block."""
    if not sys.stderr.isatty():
        yield
        return
    line = _Line()
    if type(session).__module__.startswith("pyspark.sql.connect"):
        with _watch_server(session, line):
            yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch_stages, args=(_stage_counts(session), line, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(timeout=2 * _EVERY_S)
        line.close()


class _Line:
    """One line that is written over; after `close` it stays clear, even if a thread is late to write it."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._shown = False
        self._closed = False
        self._turn = threading.RLock()

    def show(self, done: int, total: int) -> None:
        if total == 0 or time.monotonic() - self._since < _PATIENCE_S:
            return
        filled = _WIDTH * done // total
        with self._turn:
            if self._closed:
                return
            sys.stderr.write(f"\r\x1b[K{_what} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{total} tasks")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        with self._turn:
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False

    def close(self) -> None:
        with self._turn:
            self.clear()
            self._closed = True


def _stage_counts(session: SparkSession) -> Callable[[], tuple[int, int]]:
    tracker = session.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    return count


def _watch_stages(count: Callable[[], tuple[int, int]], line: _Line, over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        with suppress(Exception):  # the session may be stopping: the line is a courtesy
            line.show(*count())


@contextmanager
def _watch_server(session: Any, line: _Line) -> Iterator[None]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        if done:
            line.clear()
        elif stages:
            line.show(sum(s.num_completed_tasks for s in stages), sum(s.num_tasks for s in stages))

    session.registerProgressHandler(handle)
    try:
        yield
    finally:
        session.removeProgressHandler(handle)
        line.close()
