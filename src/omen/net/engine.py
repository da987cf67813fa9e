"""The compiled engine of a node: loaded when it first mends, or at the start where it is still to be compiled.

Loading takes a second and a hundred megabytes, which most nodes never need. Compiling takes a minute, for which a node
that is already a member would be silent, and be taken for gone.
"""

from __future__ import annotations

import os
from pathlib import Path

from omen import kernels
from omen.mend.choosing import choose_links

KEPT = "greedy_small.*.nbi"


def is_compiled() -> bool:
    """Whether the engine seems to be kept compiled from before: by the place that numba keeps it in."""
    beside = Path(kernels.__file__).parent / "__pycache__"
    elsewhere = [os.environ.get("NUMBA_CACHE_DIR", ""), Path.home() / ".cache" / "numba"]
    folders = [beside, *(folder for place in elsewhere if place for folder in Path(place).glob("kernels_*"))]
    return any(True for folder in folders for _ in folder.glob(KEPT))


def load_engine() -> None:
    """Load compiled code now, with the smallest repair there is."""
    choose_links([[0], [0]], [[0], [1]], [0, 0], 3.0)
