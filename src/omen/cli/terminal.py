"""What a person at a terminal sees: tables with a rule, names in bold, errors in red, bars that move. rich draws it.

It is loaded only where a stream is a terminal. What is piped is plain text, the same bytes everywhere, and neither
scripts nor `--help` wait for it. It heeds `NO_COLOR`, `TERM=dumb` and the width of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

BAR = 30
WARNING = "WARNING:"


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


@lru_cache(maxsize=2)
def console_of(stream: TextIO) -> Console:
    """The one console of a stream: what is printed while a bar moves goes above it."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def draw_table(stream: TextIO, lines: Sequence[Sequence[str]], indent: str) -> None:
    """Header and rows; the first column to the left, the others to the right.

    A header is broken between words where the terminal is narrow. Where that is not enough, nothing is cut off: lines
    are as long as they must be.
    """
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    header, *rows = lines
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for number, name in enumerate(header):
        table.add_column(Text(name), justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console, room = console_of(stream), Padding(table, (0, 0, 0, len(indent)))
    needed = console.measure(table, options=console.options.update(width=10_000))
    if needed.minimum + len(indent) > console.width:
        wide = Console(file=stream, highlight=False, width=needed.maximum + len(indent))
        wide.print(room, crop=False)
    else:
        console.print(room)


def write_line(stream: TextIO, marked: str, rest: str, style: str) -> None:
    """A line of which the beginning is marked; never broken, so that a command in it can be copied."""
    from rich.text import Text

    console_of(stream).print(Text.assemble((marked, style), rest), soft_wrap=True)


class Bar:
    """One line that is written over: how far something is, as a bar where that is known, and words."""

    def __init__(self, stream: TextIO, what: str, total: int | None, started: float) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        share = (SpinnerColumn(), TimeElapsedColumn()) if total is None else (BarColumn(BAR), MofNCompleteColumn())
        words = TextColumn("{task.fields[words]}", markup=False)
        name = TextColumn("{task.description}", markup=False)
        self._progress = Progress(name, *share, words, console=console_of(stream), transient=True)
        self._task = self._progress.add_task(what, total=total, words="")
        self._progress.tasks[0].start_time = started

    def tell(self, done: int, words: str) -> None:
        self._progress.update(self._task, completed=done, words=words)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self._progress:
            yield
