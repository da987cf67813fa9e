"""Looks for trouble: random worlds drawn from seeds, each watched; what fails is shrunk until little is left of it.

`omen simulate --search --seeds A..B` runs it. Worlds run in processes of their own, and what came of each is kept in a
file, if wished, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

import gc
import json
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from omen.errors import InvalidInput
from omen.sim.drawing import (
    draw_beyond,
    draw_refusing,
    draw_scenario,
    draw_twofold,
    draw_within,
)
from omen.sim.drawing_load import draw_busy, draw_cramped
from omen.sim.kinds import KINDS
from omen.sim.load import LoadedRun
from omen.sim.running import Outcome, Run
from omen.sim.scenario import BoundsSpec, Scenario
from omen.sim.shrinking import Shrunk, shrink
from omen.sim.watch import CONNECTED, JOINED

__all__ = ["draw_scenario"]

DRAWS: dict[str, Callable[[int], Scenario]] = {
    "within": draw_within,
    "beyond": draw_beyond,
    "busy": draw_busy,
    "refusing": draw_refusing,
    "cramped": draw_cramped,
    "twofold": draw_twofold,
    "plain": draw_scenario,
}


PATIENCE_S = 90.0
KILLED = "Killed"
HASTY = BoundsSpec(connected_s=7.0, handled_s=9.0, idle_s=12.0)


@dataclass(frozen=True, slots=True)
class Search:
    """What to look at. `draw`: which worlds; `without`: remedies that are switched off; `kind`: of population."""

    draw: str = "within"
    without: tuple[str, ...] = ()
    kind: str = "omen"

    def scenario(self, seed: int) -> Scenario:
        """World `seed`: always the same one."""
        return DRAWS[self.draw](seed).without(*self.without)

    def run(self, seed: int) -> Outcome:
        return run_scenario_once(self.scenario(seed), seed, self.kind)


@dataclass(frozen=True, slots=True)
class World:
    """What came of one world."""

    seed: int
    went_well: bool
    split: bool
    events: int
    steps: int
    rejoins: int
    restored_s: float
    end_s: float
    seconds: float
    complaints: tuple[str, ...] = ()
    raised: str = ""


def run_scenario_once(scenario: Scenario, seed: int, kind: str = "omen", hasty: bool = False) -> Outcome:
    with without_collection():
        if scenario.load is not None and kind == "omen":
            return LoadedRun(scenario, seed, hasty=hasty).go()
        return Run(scenario, seed, kind=KINDS[kind], hasty=hasty).go()


@contextmanager
def without_collection() -> Iterator[None]:
    """A world is all alive until it ends, so looking for garbage in it meanwhile finds none and costs a tenth."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run_world(search: Search, seed: int) -> World:
    """Run a world, and say in a few words how it went. What raises has failed too."""
    started = time.process_time()
    scenario = search.scenario(seed)
    try:
        with time_limit(PATIENCE_S):
            outcome = run_scenario_once(scenario, seed, search.kind)
    except Exception as error:  # a bug is what is looked for, of whatever sort
        spent, raised = time.process_time() - started, type(error).__name__
        complaints = (f"raised {raised}: {error}",)
        return World(seed, False, False, len(scenario.events), 0, 0, 0, 0, spent, complaints, raised)
    return World(
        seed,
        outcome.went_well and outcome.settled,
        is_split(outcome),
        len(scenario.events),
        outcome.processed,
        outcome.rejoins,
        max(outcome.restored, default=0) / 1e6,
        outcome.end / 1e6,
        round(time.process_time() - started, 3),
        tuple(outcome.complaints()[:6]) or (() if outcome.settled else ("never came to rest",)),
    )


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so much processor time, where the system can: a node that never answers is a bug too."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def is_split(outcome: Outcome) -> bool:
    """Whether a topic was left split, which is the worst that can happen.

    What is split where a hasty run ends, because of something else that did not hold, might have healed.
    """
    found = {violation.monitor for violation in outcome.violations}
    return CONNECTED in found or (bool(outcome.split) and not found - {JOINED})


Runner = Callable[[Sequence[int]], Iterable[World]]
"""Runs worlds by their seeds, in whatever order."""


def run_worlds(
    search: Search,
    seeds: Sequence[int],
    workers: int = 1,
    keep: Path | None = None,
    stop_at_first: bool = False,
    run: Runner | None = None,
) -> Iterator[World]:
    """All worlds, those first that `keep` has already; with `stop_at_first` none after one that failed.

    `run`: who runs them, if not so many processes of this machine.
    """
    before = {world.seed: world for world in read_kept(keep, search)} if keep is not None else {}
    if keep is not None:
        _begin_line(keep)
    known = [before[seed] for seed in seeds if seed in before]
    yield from known
    if stop_at_first and not all(world.went_well for world in known):
        return
    todo = [seed for seed in seeds if seed not in before]
    for world in run(todo) if run is not None else _run(search, todo, workers):
        if keep is not None:
            _keep(keep, search, world)
        yield world
        if stop_at_first and not world.went_well:
            return


def _run(search: Search, seeds: Iterable[int], workers: int) -> Iterator[World]:
    """In order of completion; a few are in the air at any time, so that stopping costs little."""
    if workers <= 1:
        for seed in seeds:
            yield run_world(search, seed)
        return
    left = deque(seeds)
    while left:
        undone = yield from _run_in_pool(search, left, workers)
        for seed in undone:  # a worker was killed: whose world that was is not known, so each gets a process of its own
            yield from _run_alone(search, seed)


def _run_in_pool(search: Search, left: deque[int], workers: int) -> Generator[World, None, list[int]]:
    """Until none is left, or a worker is killed: then the seeds that were under way."""
    with ProcessPoolExecutor(workers, initializer=_leave_interrupts_to_the_parent) as pool:
        running: dict[Future[World], int] = {}
        undone: list[int] = []
        try:
            while (left or running) and not undone:
                while left and len(running) < 2 * workers:
                    running[pool.submit(run_world, search, left[0])] = left[0]
                    left.popleft()
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                finished = sorted((running.pop(future), future) for future in done)
                undone = [seed for seed, future in finished if future.exception() is not None]
                yield from (future.result() for _, future in finished if future.exception() is None)
        except BrokenProcessPool:
            pass
        finally:
            for future in running:
                future.cancel()
    return sorted({*undone, *running.values()})


def _run_alone(search: Search, seed: int) -> Iterator[World]:
    """A world that may have ended its process: if it does so again, that is what came of it."""
    with ProcessPoolExecutor(1, initializer=_leave_interrupts_to_the_parent) as pool:
        try:
            yield pool.submit(run_world, search, seed).result()
        except BrokenProcessPool as error:
            yield killed_world(search, seed, str(error))


def killed_world(search: Search, seed: int, how: str) -> World:
    """What came of a world that ended its process."""
    events, complaint = len(search.scenario(seed).events), f"ended its process: {how}"
    return World(seed, False, False, events, 0, 0, 0, 0, 0, (complaint,), KILLED)


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches all processes of a terminal: worlds under way are finished, and the parent ends the search."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def shrink_world(search: Search, world: World) -> Shrunk:
    """The smallest world found that fails in the same way: split, raised the same sort of error, or any other way.

    With less patience than worlds are given otherwise, if that comes to the same.
    """
    patience = PATIENCE_S if world.raised else min(PATIENCE_S, 10 + 5 * world.seconds)

    def fails(scenario: Scenario, seed: int) -> bool:
        try:
            with time_limit(patience):
                outcome = run_scenario_once(scenario, seed, search.kind, hasty=True)
        except Exception as error:
            return type(error).__name__ == world.raised
        if world.raised:
            return False
        return is_split(outcome) if world.split else not outcome.went_well or not outcome.settled

    scenario = search.scenario(world.seed)
    if world.raised == KILLED:  # it would end this process as well
        return Shrunk(scenario, world.seed)
    if search.draw != "beyond":
        hasty = msgspec.structs.replace(scenario, bounds=HASTY)
        if fails(hasty, world.seed):
            small = shrink(hasty, world.seed, fails)
            small.scenario = msgspec.structs.replace(small.scenario, bounds=scenario.bounds)
            if fails(small.scenario, small.seed):
                return small
    return shrink(scenario, world.seed, fails)


def read_kept(path: Path, search: Search) -> Iterator[World]:
    """The worlds a search has kept."""
    asked = json.loads(json.dumps(asdict(search)))
    for number, row in kept_rows(path):
        if row.pop("search", None) != asked:
            raise InvalidInput(f"{path}: line {number} is of another search; give each a file of its own")
        try:
            yield msgspec.convert(row, World)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{path}: line {number} is not what a search keeps: {error}") from None


def kept_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """What a file of kept worlds holds, by line; a line that was cut off when the search was killed is left out."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        except UnicodeDecodeError:
            row = None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path}: line {number} is not what a search keeps")
        if "renewals" in row:  # its name in version 0.1.0
            row["rejoins"] = row.pop("renewals")
        yield number, row


def _begin_line(path: Path) -> None:
    """So that nothing is added to a line that was cut off; and so that a file that cannot be written is told now."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")


def _keep(path: Path, search: Search, world: World) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"search": asdict(search), **asdict(world)}) + "\n")
