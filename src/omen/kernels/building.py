"""All kernels ahead of time, on several processors."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from graphlib import TopologicalSorter
from multiprocessing import get_context
from pathlib import Path

from omen import kernels
from omen.kernels.compiling import announce, imported_modules

_NO_KERNELS = {"__main__", "building", "compiling", "engine", "small"}
_MOST_WORKERS = 4  # the compiler takes a few hundred megabytes in each


def module_names() -> list[str]:
    """The modules of the package that hold kernels."""
    return sorted({module.name for module in pkgutil.iter_modules(kernels.__path__)} - _NO_KERNELS)


def compile_all(workers: int | None = None) -> Iterator[tuple[str, float]]:
    """Compile the kernels of every module; yields each name and the seconds it took, as they are done.

    A module waits for those it takes helpers from, which it then finds in the cache; the largest go first.
    """
    files = {name: Path(kernels.__path__[0]) / f"{name}.py" for name in module_names()}
    waiting = TopologicalSorter({name: imported_modules(path) & files.keys() for name, path in files.items()})
    waiting.prepare()
    workers = workers or min(_processors(), _MOST_WORKERS)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker) as pool:
        running: set[Future[tuple[str, float]]] = set()
        while waiting.is_active():
            ready = sorted(waiting.get_ready(), key=lambda name: (-files[name].stat().st_size, name))
            running |= {pool.submit(_compile_module, name) for name in ready}
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                waiting.done(future.result()[0])
                yield future.result()


def compile_some(names: list[str]) -> Iterator[tuple[str, float]]:
    """The same for the modules named and what they take helpers from, in this process."""
    return map(_compile_module, names)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # on Ctrl-C workers go at once and without a word
    announce(None)


def _compile_module(name: str) -> tuple[str, float]:
    started = time.perf_counter()
    importlib.import_module(f"{kernels.__name__}.{name}")
    return name, time.perf_counter() - started
