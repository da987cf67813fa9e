"""Searches on Spark: a few seeds are a job of one task, and what fails is shrunk in the task that found it.

What comes back is on the driver's disk before it is told, so a search that was killed goes on where it was. Works on
Spark Connect too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from omen.pipeline.failures import first_line
from omen.pipeline.session import SparkOptions, spark_session
from omen.pipeline.sweep import slots_of
from omen.sim.search import Search, World, killed_world, run_world
from omen.sim.search_report import ShrunkWorld, shrink_found, write_shrunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "found string"
SEEDS_IN_TASK = 50
"""Some five seconds of work: long beside the tenth of a second a task costs, short beside what a kill may lose."""
TASKS_PER_SLOT = 4
"""Fewer seeds in a task where there are few, so that no slot is idle while another works through the last."""


class Found(msgspec.Struct, frozen=True):
    """What came of one world, and how small it was made if it failed."""

    world: World
    shrunk: ShrunkWorld | None = None


class SparkSearch:
    """Runs worlds on Spark. `folder`: where shrunk worlds go; `shrunk`: those of this run, by the world's seed."""

    def __init__(self, search: Search, options: SparkOptions, folder: Path) -> None:
        self._search = search
        self._options = replace(options, shows_stages=False)
        self._folder = folder
        self.shrunk: dict[int, tuple[ShrunkWorld, Path]] = {}

    def run(self, seeds: Sequence[int]) -> Iterator[World]:
        """In order of completion; Spark is started only where there is something to run."""
        if not seeds:
            return
        with spark_session(self._options) as spark:
            for found in run_tasks(spark, self._search, seeds):
                if found.shrunk is not None:
                    self.shrunk[found.world.seed] = (
                        found.shrunk,
                        write_shrunk(self._search, found.shrunk, self._folder),
                    )
                yield found.world


def run_tasks(spark: SparkSession, search: Search, seeds: Sequence[int]) -> Iterator[Found]:
    """As many tasks at once as the cluster has slots; no more are begun when the caller stops."""
    slots = slots_of(spark)
    size = max(1, min(SEEDS_IN_TASK, len(seeds) // (slots * TASKS_PER_SLOT)))
    left = deque(seeds[first : first + size] for first in range(0, len(seeds), size))
    with ThreadPoolExecutor(slots) as threads:
        running: set[Future[list[Found]]] = set()
        try:
            while left or running:
                while left and len(running) < slots:
                    running.add(threads.submit(run_on_spark, spark, search, left.popleft()))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for task in done:
                    yield from task.result()
        finally:
            for task in running:
                task.cancel()


def run_on_spark(spark: SparkSession, search: Search, seeds: Sequence[int]) -> list[Found]:
    """One job of one task. Where the task dies (no memory, a killed worker), its worlds are tried one by one."""
    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(_SeedsRunner(search, tuple(seeds)), DDL)
        return [msgspec.json.decode(text, type=Found) for text in rows.toArrow()["found"].to_pylist()]
    except Exception as error:
        if len(seeds) == 1:
            return [Found(killed_world(search, seeds[0], first_line(error)))]
    return [found for seed in seeds for found in run_on_spark(spark, search, [seed])]


@dataclass(frozen=True)
class _SeedsRunner:
    """What a worker does: the number that comes in is only there to start it."""

    search: Search
    seeds: tuple[int, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                texts = [msgspec.json.encode(find(self.search, seed)).decode() for seed in self.seeds]
                yield pa.RecordBatch.from_pydict({"found": pa.array(texts, pa.string())})


def find(search: Search, seed: int) -> Found:
    """Run a world, and shrink it if it fails."""
    world = run_world(search, seed)
    return Found(world, None if world.went_well else shrink_found(search, world))
