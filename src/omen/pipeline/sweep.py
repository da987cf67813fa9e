"""Run the cells of a sweep, many in a Spark task, and keep what each came to.

As many driver threads as the cluster has slots each hand a bundle of cells to Spark as a job of one task and append
what comes back to the table. No bundle waits for another, and a killed sweep loses only those under way. Bundles are
sized by what cells of their kind have taken so far. Works on Spark Connect too; the table is on the driver's disk.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.pipeline.failures import first_line
from omen.pipeline.session import SparkOptions, is_connect, spark_session
from omen.sweep.cells import Cell, CellResult
from omen.sweep.kinds import run_cell, weight_of
from omen.sweep.table import DDL, SweepTable, from_arrow, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
RunBundle = Callable[[Sequence[Cell]], list[CellResult]]


def sweep(
    cells: Iterable[Cell],
    folder: str | Path,
    engine: str = "spark",
    options: SparkOptions | None = None,
    tell: Tell | None = None,
) -> Swept:
    """Run those cells that the table in `folder` has no result of, and return the results of all.

    `engine` local: in this process, one after another; none: nothing is run, and only what there is comes back, that of
    a sweep still under way as well. A cell that failed before is tried again.
    """
    started = time.monotonic()
    table = SweepTable(folder)
    wanted = list(dict.fromkeys(cells))
    with table.opened(alone=engine != "none"):
        known = table.read()
        finished = [cell for cell in wanted if cell.id in known and known[cell.id].ok]
        todo = [cell for cell in wanted if not (cell.id in known and known[cell.id].ok)]
        state = _State(todo, len(finished), tell or (lambda progress: None))
        if todo and engine == "local":
            _run_all(state, table, lambda bundle: [run_cell(cell) for cell in bundle], 1)
        elif todo and engine == "spark":
            with spark_session(replace(options or SparkOptions(), shows_stages=False)) as spark:
                _run_all(state, table, lambda bundle: run_on_spark(spark, bundle), slots_of(spark))
        known |= {one.cell.id: one for one in state.results}
    results = tuple(known[cell.id] for cell in wanted if cell.id in known)
    return Swept(results, len(finished), time.monotonic() - started)


def slots_of(spark: SparkSession) -> int:
    """How many tasks can run at once, as far as the driver can know."""
    if is_connect(spark):
        told = spark.conf.get("spark.default.parallelism", None) or spark.conf.get("spark.sql.shuffle.partitions")
        return max(1, min(int(told or 2), 64))
    return max(1, min(int(spark.sparkContext.defaultParallelism), 256))


def run_on_spark(spark: SparkSession, bundle: Sequence[Cell]) -> list[CellResult]:
    """One job of one task. Where the task dies (no memory, a killed worker), its cells are tried one by one."""
    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(_BundleRunner(tuple(cell.to_plain() for cell in bundle)), DDL)
        return from_arrow(rows.toArrow())
    except Exception as error:
        if len(bundle) == 1:
            return [CellResult(bundle[0], {}, {}, 0.0, f"the task died: {first_line(error)}")]
    return [result for cell in bundle for result in run_on_spark(spark, [cell])]


@dataclass(frozen=True)
class _BundleRunner:
    """What a worker does: the numbers that come in are only there to start it."""

    cells: tuple[dict[str, Any], ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                results = [run_cell(Cell.from_plain(plain)) for plain in self.cells]
                yield from to_arrow(results).to_batches()


class _State:
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
        group = _group(cell)
        return self.spent[group] / self.weight[group] * weight_of(cell) if self.weight[group] else None

    def note(self, results: Sequence[CellResult], slots: int) -> None:
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


def _run_all(state: _State, table: SweepTable, run: RunBundle, slots: int) -> None:
    lock = threading.Lock()
    stopped = threading.Event()

    def run_one(bundle: list[Cell]) -> None:
        results = run(bundle)
        with lock:
            if stopped.is_set():  # what comes back after an interrupt failed because of it
                return
            table.append(results)
            state.note(results, slots)

    if slots == 1:
        while bundle := state.next_bundle():
            run_one(bundle)
        return
    pool = ThreadPoolExecutor(slots, thread_name_prefix="sweep")
    under_way: set[Future[None]] = set()
    try:
        while state.queue or under_way:
            while state.queue and len(under_way) < slots:
                with lock:
                    bundle = state.next_bundle()
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
