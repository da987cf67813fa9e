"""Where experiments have their numbers from: the table of a sweep, or cells run here and now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from omen.errors import OmenError
from omen.sweep.cells import Cell, CellResult, Value, WorkloadSpec, pairs
from omen.sweep.kinds import run_cell


class NotRun(OmenError):
    """A number is asked for whose cell was not run, or failed."""


class Results(Protocol):
    """What cells came to."""

    def of(self, *cells: Cell) -> CellResult:
        """The result of the first of these cells that there is; they differ only in what else they measure."""


@dataclass(frozen=True)
class Stored:
    """Results of a sweep."""

    found: Mapping[Cell, CellResult]

    def of(self, *cells: Cell) -> CellResult:
        present = [self.found[cell] for cell in cells if cell in self.found]
        for one in present:
            if one.ok:
                return one
        raise NotRun(present[0].error if present else "its cells were not run")


@dataclass(frozen=True)
class InProcess:
    """Runs a cell when it is first asked for, and remembers it."""

    found: dict[Cell, CellResult] = field(default_factory=dict)

    def of(self, *cells: Cell) -> CellResult:
        for cell in cells:
            if cell in self.found:
                return self.found[cell]
        result = run_cell(cells[0])
        if not result.ok:
            raise NotRun(result.error)
        self.found[cells[0]] = result
        return result


def design_cell(workload: WorkloadSpec, algorithm: str, diameters: bool = False, **options: Value) -> Cell:
    settings: dict[str, Value] = {"diameters": True} if diameters else {}
    return Cell("design", workload, algorithm, pairs(options), pairs(settings))


def value(found: Results, workload: WorkloadSpec, measure: str, algorithm: str, **options: Value) -> float:
    """One number about a designed overlay."""
    wide = measure.endswith("diameter")
    cells = [
        design_cell(workload, algorithm, diameters, **options) for diameters in ((True,) if wide else (False, True))
    ]
    return found.of(*cells).values[measure]


def mean(found: Results, those: Iterable[WorkloadSpec], measure: str, algorithm: str, **options: Value) -> float:
    """Its mean over workloads."""
    return fmean(value(found, one, measure, algorithm, **options) for one in those)


def spread(
    found: Results, those: Iterable[WorkloadSpec], measure: str, algorithm: str, **options: Value
) -> list[float]:
    return [value(found, one, measure, algorithm, **options) for one in those]


def shown(values: Iterable[float], digits: int = 2) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)
