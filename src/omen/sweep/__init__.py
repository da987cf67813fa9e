"""Grids of runs: what is run on which workload with which options and seeds, and what each run came to.

    grid.py       a TOML file becomes cells: every value of a list combined with all others
    cells.py      Cell, WorkloadSpec, CellResult: one run, named by its contents alone
    kinds.py      what a cell can do, by kind; `run_cell` never raises, an error is part of the result
    replay.py     cells that replay churn on a system
    simulated.py  cells that look inside simulated nodes
    bounds.py     cells that ask how few links would do
    meshes.py     meshes for each topic by itself, to hold an overlay against
    table.py      CellTable: results on disk, appended to, kept over a kill
    runner.py     bundles, the schedule, progress, and the runner in this process

A finished cell is not run again. The runner on Spark is in `pipeline.sweep`; it differs in its workers alone.

    >>> from omen.sweep import make_grid
    >>> plain = {"seeds": 2, "workload": {"nodes": 9, "topics": 4, "sizes": 2}, "run": {"algorithm": ["gm", "gm2"]}}
    >>> len(make_grid(plain).cells)
    4
"""

from omen.sweep.cells import Cell, CellResult, WorkloadSpec
from omen.sweep.grid import FigureSpec, Grid, make_grid, read_grid
from omen.sweep.kinds import KINDS, run_cell
from omen.sweep.runner import Progress, Swept, Workers, local_workers, stored, sweep
from omen.sweep.table import CellTable, wide_columns

__all__ = [
    "KINDS",
    "Cell",
    "CellResult",
    "CellTable",
    "FigureSpec",
    "Grid",
    "Progress",
    "Swept",
    "Workers",
    "WorkloadSpec",
    "local_workers",
    "make_grid",
    "read_grid",
    "run_cell",
    "stored",
    "sweep",
    "wide_columns",
]
