"""Repeat the papers: run their experiments as one sweep, judge every claim, draw every figure, write the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omen.errors import InvalidInput, MissingDependency
from omen.pipeline.session import SparkOptions
from omen.pipeline.sweep import sweep
from omen.report.beyond import BEYOND
from omen.report.experiments.inputs import GRAPHS, NO_DATA, SMALL, prepare_inputs
from omen.report.experiments.papers import PAPERS, Paper
from omen.report.experiments.results import NotRun, Results, Stored
from omen.report.figures import Drawing, draw
from omen.report.ledger import Entry, Measured, claims, judge, ledger_columns, summary_line
from omen.report.ledger_text import Beside, Table, Work, ledger_lines
from omen.report.versions import machine, versions
from omen.sweep.cells import Cell
from omen.sweep.runner import Swept, Tell
from omen.sweep.table import CellTable
from omen.tables import write_table, write_text


@dataclass(frozen=True)
class Reproduction:
    """What was found: a line for each claim, the figures drawn, and what it was made on."""

    papers: tuple[str, ...]
    scale: str
    entries: tuple[Entry, ...]
    drawings: tuple[Drawing, ...]
    beyond: tuple[Drawing, ...]
    beside: Mapping[str, Beside]
    about: dict[str, Any]
    failed: int

    @property
    def summary(self) -> str:
        return summary_line(self.entries)

    @property
    def measured(self) -> int:
        return sum(entry.measured is not None for entry in self.entries)


@dataclass(frozen=True)
class Request:
    """What `omen reproduce` was asked for."""

    papers: tuple[str, ...]
    scale: str
    out: str
    data: str | None = None
    engine: str = "spark"  # or local; none: nothing is run, what is there is reported
    spark: SparkOptions | None = None
    beyond: bool = True


def reproduce(request: Request, tell: Tell | None = None) -> Reproduction:
    """Run what the table in `out` does not hold yet; then claims, figures and tables, from all of it."""
    started = time.monotonic()
    unknown = [name for name in request.papers if name not in PAPERS]
    if unknown:
        raise InvalidInput(f"there is no paper {unknown[0]!r} (there are {', '.join(PAPERS)}, all)")
    inputs = NO_DATA
    if "omen" in request.papers:
        graphs = SMALL if request.scale == "quick" else tuple(GRAPHS)
        inputs = prepare_inputs(request.data, request.out, request.spark, graphs)
    chosen = [PAPERS[name] for name in request.papers]
    efforts = [paper.effort(request.scale, inputs) for paper in chosen]
    cells: list[Cell] = [cell for paper, effort in zip(chosen, efforts, strict=True) for cell in paper.cells(effort)]
    cells += BEYOND.cells(request.scale) if request.beyond else []
    swept = sweep(cells, request.out, request.engine, request.spark, tell)
    found = Stored({one.cell: one for one in swept.results})
    pairs = list(zip(chosen, efforts, strict=True))
    entries = [entry for paper, effort in pairs for entry in judge_paper(paper, found, effort)]
    drawings = [one for paper, effort in pairs for one in draw_what_there_is(paper.drawings, found, effort)]
    more = draw_what_there_is(BEYOND.drawings, found, request.scale) if request.beyond else ()
    return Reproduction(
        request.papers,
        request.scale,
        tuple(entries),
        tuple(drawings),
        tuple(more),
        {paper.name: _beside(paper, found, effort) for paper, effort in pairs},
        _about(request, swept, time.monotonic() - started),
        len(swept.failed),
    )


def judge_paper(paper: Paper, found: Results, effort: Any) -> list[Entry]:
    """A line for each claim of the paper; what cannot be measured at this scale says why."""
    stand_ins = paper.stand_ins(effort)
    entries = []
    for claim in claims().values():
        if claim.paper != paper.name:
            continue
        measured, why = _measure(paper, claim.id, found, effort)
        alone = [_measure(paper, claim.id, found, one)[0] for one in effort.alone()] if measured else []
        by_seed = [float(one.ours) for one in alone if one is not None]
        deviation = paper.deviations.get(claim.id)
        entries.append(judge(claim, measured, by_seed, deviation, stand_ins.get(claim.id, ""), why))
    return entries


def _measure(paper: Paper, claim_id: str, found: Results, effort: Any) -> tuple[Measured | None, str]:
    try:
        return paper.measures[claim_id](found, effort), ""
    except NotRun as missing:
        return None, str(missing)


def draw_what_there_is(drawings: Sequence[Callable[..., Drawing]], *arguments: Any) -> Iterator[Drawing]:
    """The figures whose cells there are; of the others the ledger says that they were not run."""
    for drawing in drawings:
        try:
            yield drawing(*arguments)
        except NotRun:
            continue


def tables_there_are(paper: Paper, found: Results, effort: Any) -> Iterator[Table]:
    """The tables up to the first whose cells were not run."""
    with suppress(NotRun):
        yield from paper.tables(found, effort)


def _beside(paper: Paper, found: Stored, effort: Any) -> Beside:
    declared = list(dict.fromkeys(paper.cells(effort)))
    there = [found.found[cell] for cell in declared if cell in found.found]
    done = [one for one in there if one.ok]
    work = Work(
        len(done), len(declared), len(there) - len(done), sum(one.seconds for one in done), paper.sampled(effort)
    )
    return Beside(work, tuple(tables_there_are(paper, found, effort)))


def _about(request: Request, swept: Swept, seconds: float) -> dict[str, Any]:
    return {
        "papers": list(request.papers),
        "scale": request.scale,
        "cells": len(swept.results),
        "cells_reused": swept.reused,
        "cells_failed": len(swept.failed),
        "cell_seconds": round(sum(one.seconds for one in swept.results), 1),
        "seconds": round(seconds, 1),
        "machine": machine(),
        "versions": versions(),
    }


def _made(found: Reproduction) -> str:
    seconds, cells = found.about.get("cell_seconds", 0.0), found.about.get("cells", 0)
    return f"Made by `omen reproduce --scale {found.scale}` from {cells:,} cells, {seconds:,.0f} s of work."


def write_reproduction(out: str | Path, found: Reproduction) -> list[Path]:
    """The ledger as a table, the figures with their data, and what was run. Figures need matplotlib."""
    folder = Path(out)
    written = [folder / "claims.csv"]
    write_table(written[0], ledger_columns(found.entries))
    write_text(folder / "claims.md", ledger_lines(found.entries, _made(found), found.beside))
    try:
        for drawing in (*found.drawings, *found.beyond):
            written += draw(folder / "figures", drawing)
    except MissingDependency:
        if written[1:]:
            raise
    CellTable(folder).describe(found.about | {"summary": found.summary})
    return written
