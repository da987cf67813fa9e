"""The compiled engine of a node, and when it is loaded.

Loading takes a second and a hundred megabytes. A node that does it only at its first repair is silent for that second,
on a busy machine for long enough to be declared failed. So it is done beside the event loop soon after the start,
though not by a node that only joins to publish. Compiling takes a minute: that is done before a node joins.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from omen import kernels
from omen.maintain.choosing import choose_links

KEPT = "greedy_small.*.nbi"
SOON_S = 3.0


def is_compiled() -> bool:
    """Whether the engine seems to be kept compiled from before: by the place that numba keeps it in."""
    beside = Path(kernels.__file__).parent / "__pycache__"
    elsewhere = [os.environ.get("NUMBA_CACHE_DIR", ""), str(Path.home() / ".cache" / "numba")]
    folders = [beside, *(folder for place in elsewhere if place for folder in Path(place).glob("kernels_*"))]
    return any(True for folder in folders for _ in folder.glob(KEPT))


def load_engine() -> None:
    """Load compiled code now, with the smallest repair there is."""
    choose_links([[0], [0]], [[0], [1]], [0, 0], 3.0)


def load_soon() -> asyncio.TimerHandle:
    """Load it in a while, in a thread of its own."""
    loop = asyncio.get_running_loop()
    return loop.call_later(SOON_S, lambda: loop.run_in_executor(None, load_engine))
