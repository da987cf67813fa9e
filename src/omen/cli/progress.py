"""What a person sees while something takes long: one line on the terminal that counts, and then goes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from omen.cli import terminal

if TYPE_CHECKING:
    from omen.sweep.runner import Progress

PATIENCE_S = 2.0  # what is over sooner needs no line
_TICK_S = 0.25
LOG_EVERY_S = 60.0


@contextmanager
def working(what: str, patience: float = PATIENCE_S) -> Iterator[None]:
    """Show `what` and the time it has taken, from `patience` seconds on, where stderr is a terminal.

    Kernels let go of the interpreter lock but cannot be asked how far they are, so the line shows time, not a share.
    """
    if not terminal.is_terminal(sys.stderr):
        yield
        return
    bar = terminal.Bar(sys.stderr, what, None, time.monotonic())  # here: a thread that imports must not be forked
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(bar, patience, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(bar: terminal.Bar, patience: float, over: threading.Event) -> None:
    if not over.wait(patience):
        with bar.shown():
            over.wait()


@contextmanager
def counting(what: str, total: int, patience: float = PATIENCE_S) -> Iterator[Callable[[int], None]]:
    """Hands out what to call with how many of `total` are done; shows a bar and the time left on a terminal."""
    if not terminal.is_terminal(sys.stderr):
        yield lambda done: None
        return
    started = shown_at = time.monotonic()
    bar = terminal.Bar(sys.stderr, what, total, started)
    first = -1
    with ExitStack() as while_shown:

        def tell(done: int) -> None:
            nonlocal shown_at, first
            now = time.monotonic()
            first = done if first < 0 else first
            if now - started < patience or now - shown_at < _TICK_S:
                return
            if shown_at == started:
                while_shown.enter_context(bar.shown())
            shown_at = now
            bar.tell(done, f"{duration((now - started) * (total - done) / max(done - first, 1))} left")

        yield tell


@contextmanager
def sweeping(what: str) -> Iterator[Callable[[Progress], None]]:
    """Hands out what a sweep tells how far it is: a line that is written over, or one per minute in a log."""
    told_at = time.monotonic()
    bar: terminal.Bar | None = None
    with ExitStack() as while_shown:

        def tell(progress: Progress) -> None:
            nonlocal told_at, bar
            if terminal.is_terminal(sys.stderr):
                if bar is None:
                    bar = terminal.Bar(sys.stderr, what, progress.total, told_at)
                    bar.tell(progress.done, _words(progress))
                    while_shown.enter_context(bar.shown())
                bar.tell(progress.done, _words(progress))
            elif time.monotonic() - told_at >= LOG_EVERY_S:
                told_at = time.monotonic()
                print(
                    f"{what}: {progress.done:,} of {progress.total:,} {_words(progress)}", file=sys.stderr, flush=True
                )

        yield tell


def _words(progress: Progress) -> str:
    words = "cells"
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
