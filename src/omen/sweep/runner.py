"""Run the cells of a sweep in bundles, and keep what each came to.

As many threads as there are slots each hand a bundle of cells to a worker and append what comes back to the table. No
bundle waits for another, and a killed sweep loses only those under way. Bundles are sized by what cells of their kind
have taken so far. Workers are this process (`local_workers`), or whatever the caller opens.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from omen.sweep.cells import Cell, CellResult
from omen.sweep.kinds import run_cell, weight_of
from omen.sweep.table import CellTable

TASK_S = 4.0
"""What a task should take: long beside the tenth of a second it costs, short beside what a kill may lose."""

MOST_IN_TASK = 200
FORGETTING = 0.9
"""What earlier cells of a kind still say after another: the first pay for loading and compiling."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is. `left_s` is None until something is known of how long cells take."""

    done: int
    failed: int
    total: int
    reused: int
    left_s: float | None


@dataclass(frozen=True)
class Swept:
    """What a sweep came to: a result for each cell of the grid, in the grid's order."""

    results: tuple[CellResult, ...]
    reused: int
    seconds: float

    @property
    def failed(self) -> tuple[CellResult, ...]:
        return tuple(one for one in self.results if not one.ok)


Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Workers:
    """Who runs bundles, and how many at once."""

    run: Callable[[Sequence[Cell]], list[CellResult]]
    slots: int


@contextmanager
def local_workers() -> Iterator[Workers]:
    """This process, one cell after another."""
    yield Workers(lambda bundle: [run_cell(cell) for cell in bundle], 1)


def sweep(
    cells: Iterable[Cell],
    folder: str | Path,
    open_workers: Callable[[], AbstractContextManager[Workers]] = local_workers,
    tell: Tell | None = None,
) -> Swept:
    """Run those cells that the table in `folder` has no result of, and return the results of all.

    A cell that failed before is tried again. Workers are opened only where there is something to run.
    """
    started = time.monotonic()
    table = CellTable(folder)
    wanted = list(dict.fromkeys(cells))
    with table.opened():
        known = table.read()
        todo = [cell for cell in wanted if not (cell.id in known and known[cell.id].ok)]
        schedule = Schedule(todo, len(wanted) - len(todo), tell or (lambda progress: None))
        if todo:
            with open_workers() as workers:
                run_schedule(schedule, table, workers)
        known |= {one.cell.id: one for one in schedule.results}
    return _swept(wanted, known, len(wanted) - len(todo), started)


def stored(cells: Iterable[Cell], folder: str | Path) -> Swept:
    """What the table in `folder` holds of these cells, that of a sweep still under way as well. Nothing is run."""
    started = time.monotonic()
    table = CellTable(folder)
    wanted = list(dict.fromkeys(cells))
    with table.opened(alone=False):
        known = table.read()
    return _swept(wanted, known, sum(cell.id in known and known[cell.id].ok for cell in wanted), started)


def _swept(wanted: Sequence[Cell], known: Mapping[str, CellResult], reused: int, started: float) -> Swept:
    results = tuple(known[cell.id] for cell in wanted if cell.id in known)
    return Swept(results, reused, time.monotonic() - started)


class Schedule:
    """Cells still to run, the heavy ones first, and what those run have taken."""

    def __init__(self, todo: Sequence[Cell], reused: int, tell: Tell) -> None:
        self.queue = deque(sorted(todo, key=lambda cell: (-_scale(weight_of(cell)), _group(cell))))
        self.waiting: dict[tuple[str, str], float] = defaultdict(float)
        for cell in todo:
            self.waiting[_group(cell)] += weight_of(cell)
        self.spent: dict[tuple[str, str], float] = defaultdict(float)
        self.weight: dict[tuple[str, str], float] = defaultdict(float)
        self.results: list[CellResult] = []
        self.total, self.reused, self.tell = len(todo), reused, tell

    def next_bundle(self) -> list[Cell]:
        """Cells that should take `TASK_S` together, by what is known of their kind."""
        bundle: list[Cell] = []
        expected = 0.0
        while self.queue and len(bundle) < MOST_IN_TASK:
            guess = self.guess(self.queue[0])
            if bundle and (guess is None or expected + guess > TASK_S):
                break
            bundle.append(self.queue.popleft())
            expected += guess or 0.0
        return bundle

    def guess(self, cell: Cell) -> float | None:
        """The seconds it should take; None where nothing is known of its kind."""
        group = _group(cell)
        return self.spent[group] / self.weight[group] * weight_of(cell) if self.weight[group] else None

    def note(self, results: Sequence[CellResult], slots: int) -> None:
        """Learn from what cells took, and tell how far the sweep is."""
        self.results += results
        for one in results:
            group, weight = _group(one.cell), weight_of(one.cell)
            self.spent[group] = FORGETTING * self.spent[group] + one.seconds
            self.weight[group] = FORGETTING * self.weight[group] + weight
            self.waiting[group] -= weight
        failed = sum(not one.ok for one in self.results)
        self.tell(Progress(len(self.results), failed, self.total, self.reused, self._left(slots)))

    def _left(self, slots: int) -> float | None:
        known = sum(self.weight.values())
        if not known:
            return None
        usual = sum(self.spent.values()) / known
        left = 0.0
        for group, weight in self.waiting.items():
            rate = self.spent[group] / self.weight[group] if self.weight[group] else usual
            left += max(weight, 0.0) * rate
        return left / slots


def run_schedule(schedule: Schedule, table: CellTable, workers: Workers) -> None:
    """Run all bundles, as many at once as there are slots, and append what comes back to the table."""
    slots = workers.slots
    lock = threading.Lock()
    stopped = threading.Event()

    def run_one(bundle: list[Cell]) -> None:
        results = workers.run(bundle)
        with lock:
            if stopped.is_set():  # what comes back after an interrupt failed because of it
                return
            table.append(results)
            schedule.note(results, slots)

    if slots == 1:
        while bundle := schedule.next_bundle():
            run_one(bundle)
        return
    pool = ThreadPoolExecutor(slots, thread_name_prefix="sweep")
    under_way: set[Future[None]] = set()
    try:
        while schedule.queue or under_way:
            while schedule.queue and len(under_way) < slots:
                with lock:
                    bundle = schedule.next_bundle()
                under_way.add(pool.submit(run_one, bundle))
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in finished:
                one.result()
    finally:
        with lock:
            stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _group(cell: Cell) -> tuple[str, str]:
    return cell.kind, cell.name


def _scale(weight: float) -> int:
    """Powers of four: within one, cells stay in groups that share workloads and kernels."""
    return int(weight).bit_length() // 2
