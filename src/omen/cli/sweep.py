"""omen sweep: a grid of workloads, algorithms, systems, options and seeds, on Spark."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from omen.cli.arguments import add_json
from omen.cli.output import explain, print_facts, print_json, say
from omen.cli.progress import sweeping
from omen.cli.spark_options import add_spark_options, require_cluster, spark_options

if TYPE_CHECKING:
    from omen.sweep.runner import Swept

EPILOG = """\
example:
  omen sweep grid.toml --out s --figures

  # grid.toml
  seeds = 3

  [workload]
  nodes = [100, 200, 400]
  topics = 100
  popularity = ["uniform", "zipf:2"]
  sizes = 10

  [[run]]
  algorithm = ["gm", "low-oda"]

  [[run]]
  system = "shadow"
  lambda = [1, 3]
  rounds = 50

A list stands for each of its values, combined with all others. Results are kept in OUT/cells, a Parquet table, and in
OUT/results.csv. A sweep that was killed goes on when the same command is given again; a finished cell is not run again.

figures: a [[figure]] has x, y and by, columns of results.csv, and may have where, title and name (docs/cli.md).

exit codes: 0 done, 1 a cell failed (results.csv says why), 2 bad input
"""
SHOWN_FAILURES = 5
LINES = {
    "cells": "combinations of a workload, an algorithm or system, and a seed",
    "run": "cells that were run now",
    "reused": "cells whose results were there already",
    "failed": "cells that ended with an error",
}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a grid of workloads, algorithms, systems, options and seeds",
        description="Run every cell of a grid as Spark tasks, and keep the results in one table.",
        epilog=EPILOG + explain("\nlines", LINES),
    )
    parser.add_argument("grid", metavar="GRID.toml", help="the grid")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the results, added to if it exists")
    parser.add_argument("--figures", action="store_true", help="also draw the results, into OUT/figures")
    parser.add_argument("--engine", choices=("spark", "local"), default="spark", help="local: in this process (spark)")
    add_spark_options(parser)
    add_json(parser)
    parser.set_defaults(handler=sweep)


def sweep(arguments: argparse.Namespace) -> int:
    require_cluster(arguments)
    from omen.pipeline.sweep import sweep as run_sweep
    from omen.report.versions import versions
    from omen.sweep.grid import read_grid
    from omen.sweep.table import CellTable, wide_columns
    from omen.tables import write_table

    grid = read_grid(arguments.grid)
    with sweeping(f"sweeping {grid.name}") as tell:
        swept = run_sweep(grid.cells, arguments.out, arguments.engine, spark_options(arguments), tell)
    CellTable(arguments.out).describe({"grid": grid.name, "cells": len(grid.cells), "versions": versions()})
    write_table(f"{arguments.out}/results.csv", wide_columns(swept.results))
    figures = _draw(arguments.out, grid, swept) if arguments.figures else []
    summary = {
        "cells": len(grid.cells),
        "run": len(grid.cells) - swept.reused,
        "reused": swept.reused,
        "failed": len(swept.failed),
        "seconds": swept.seconds,
        "figures": figures,
        "out": arguments.out,
    }
    if arguments.json:
        print_json(summary)
    else:
        print_facts([(name, value) for name, value in summary.items() if name != "figures"])
        for path in figures:
            print(f"figure   {path}")
    _tell_failures(swept)
    return 1 if swept.failed else 0


def _draw(out: str, grid: Any, swept: Swept) -> list[str]:
    from omen.report.sweep_figures import draw_grid

    return [str(path) for path in draw_grid(out, grid, swept.results)]


def _tell_failures(swept: Swept) -> None:
    if not swept.failed:
        return
    count = len(swept.failed)
    say(f"{count} {'cell' if count == 1 else 'cells'} failed{'; the first of them' if count > SHOWN_FAILURES else ''}:")
    for one in swept.failed[:SHOWN_FAILURES]:
        say(f"  {one.cell.name} on {one.cell.workload.folder or one.cell.workload.nodes}: {one.error}")
