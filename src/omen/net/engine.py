"""The greedy engine of a live node, and when compiled code is loaded for it: beside the loop, and only if it pays.

The repairs of a live node concern some tens of nodes, which the small engine does in milliseconds. The compiled one
takes a second and a hundred megabytes to load, and where the cache does not hold it most of a minute to compile. The
first large case has it loaded by a thread; until then the small engine does large cases too. Nothing is compiled in the
process of a node: a process of its own fills the cache first.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from threading import Lock, Thread

from omen.kernels import engine
from omen.net.observe.metrics import Histogram

SOON_S = 3.0
BOUNDS_S = (0.001, 0.01, 0.1, 1.0, 10.0)
COMPILE_TIMEOUT_S = 600.0

_begun = Lock()


def choose_links(
    topics_of: Sequence[Sequence[int]],
    labels_of: Sequence[Sequence[int]],
    degrees: Sequence[int],
    rho: float,
    centre: int = engine.ALL_PAIRS,
) -> list[tuple[int, int]]:
    """The links of `kernels.engine.choose_pairs`, with what is loaded; a large case makes sure that more will be."""
    if not engine.is_loaded() and engine.is_large(topics_of, centre):
        load_beside()
    return engine.choose_small(topics_of, labels_of, degrees, rho, centre)


class TimedEngine:
    """`choose_links`, and in `times` how long each call took."""

    def __init__(self) -> None:
        self.times = Histogram(BOUNDS_S)

    def __call__(
        self,
        topics: Sequence[Sequence[int]],
        components: Sequence[Sequence[int]],
        degrees: Sequence[int],
        rho: float,
        centre: int,
    ) -> list[tuple[int, int]]:
        begun = time.perf_counter()
        links = choose_links(topics, components, degrees, rho, centre)
        self.times.observe(time.perf_counter() - begun)
        return links


def load_engine() -> None:
    """Load compiled code now, or compile it: for those who have no event loop yet."""
    engine.load()


def load_beside() -> None:
    """Load compiled code in a thread, once in a process."""
    if _begun.acquire(blocking=False):
        Thread(target=_load_kept, name="engine", daemon=True).start()


def load_soon() -> asyncio.TimerHandle:
    """Load it beside the loop in a while."""
    return asyncio.get_running_loop().call_later(SOON_S, load_beside)


def _load_kept() -> None:
    """Load what another process has compiled, and found again; where it cannot, the small engine stays."""
    command = [sys.executable, "-m", "omen.kernels", "greedy"]
    for _ in range(2):
        try:
            said = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMPILE_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return
        if not said.stderr:  # nothing had to be compiled
            engine.load()
            return
