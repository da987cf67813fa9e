"""How far a sweep is, and how long it will still take: a line that is written over, or one a minute in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omen.pipeline.sweep import Progress

_CLEAR = "\r\x1b[K"
LOG_EVERY_S = 60.0


@contextmanager
def sweep_progress(what: str) -> Iterator[Callable[[Progress], None]]:
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
