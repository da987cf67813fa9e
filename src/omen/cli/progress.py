"""What a person sees while something takes long: one line on the terminal that counts, and then goes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.sweep.runner import Progress

PATIENCE_S = 2.0  # what is over sooner needs no line
_TICK_S = 0.25
_CLEAR = "\r\x1b[K"
_BAR = 30
LOG_EVERY_S = 60.0


@contextmanager
def working(what: str, patience: float = PATIENCE_S) -> Iterator[None]:
    """Show `what` and the time it has taken, from `patience` seconds on, where stderr is a terminal.

    Kernels let go of the interpreter lock but cannot be asked how far they are, so the line shows time, not a share.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(what, patience, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(what: str, patience: float, over: threading.Event) -> None:
    started = time.monotonic()
    if over.wait(patience):
        return
    while True:
        print(f"{_CLEAR}{what}: {time.monotonic() - started:.0f} s", end="", file=sys.stderr, flush=True)
        if over.wait(_TICK_S):
            break
    print(_CLEAR, end="", file=sys.stderr, flush=True)


@contextmanager
def counting(what: str, total: int, patience: float = PATIENCE_S) -> Iterator[Callable[[int], None]]:
    """Hands out what to call with how many of `total` are done; shows a bar and the time left on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    started = shown_at = time.monotonic()
    first = -1

    def tell(done: int) -> None:
        nonlocal shown_at, first
        now = time.monotonic()
        first = done if first < 0 else first
        if now - started < patience or now - shown_at < _TICK_S:
            return
        shown_at = now
        left = (now - started) * (total - done) / max(done - first, 1)
        bar = "#" * (done * _BAR // max(total, 1))
        line = f"{_CLEAR}{what} [{bar:<{_BAR}}] {done:,}/{total:,}, {left:.0f} s left"
        print(line, end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print(_CLEAR, end="", file=sys.stderr, flush=True)


@contextmanager
def sweeping(what: str) -> Iterator[Callable[[Progress], None]]:
    """Hands out what a sweep tells how far it is: a line that is written over, or one per minute in a log."""
    watched = sys.stderr.isatty()
    told_at = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal told_at
        if watched:
            print(f"{_CLEAR}{what}: {_words(progress)}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - told_at >= LOG_EVERY_S:
            told_at = time.monotonic()
            print(f"{what}: {_words(progress)}", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if watched:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _words(progress: Progress) -> str:
    words = f"{progress.done:,} of {progress.total:,} cells"
    if progress.reused:
        words += f" ({progress.reused:,} were there)"
    if progress.failed:
        words += f", {progress.failed:,} failed"
    return words if progress.left_s is None else f"{words}, {duration(progress.left_s)} left"


def duration(seconds: float) -> str:
    """As a person reads it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
