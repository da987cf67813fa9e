"""The table of a sweep: a folder of Parquet parts, each written whole or not at all. A part more is an append."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omen.errors import CannotWrite, InvalidTable
from omen.sweep.cells import Cell, CellResult
from omen.tables import replace_file, require_replaceable, write_text

MARKER = "sweep.json"
SCHEMA = pa.schema(
    [
        pa.field("cell", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("spec", pa.string(), nullable=False),  # the whole cell as JSON
        pa.field("error", pa.string(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("values", pa.map_(pa.string(), pa.float64()), nullable=False),
        pa.field("series", pa.map_(pa.string(), pa.list_(pa.float64())), nullable=False),
    ]
)
DDL = (
    "cell string, kind string, name string, spec string, error string, seconds double,"
    " values map<string,double>, series map<string,array<double>>"
)


class CellTable:
    """The results of a sweep on disk. The last result of a cell counts: one that failed may be run again."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"

    @contextmanager
    def opened(self, alone: bool = True) -> Iterator[None]:
        """Holds the folder for the block: a second sweep into it is refused. A killed one lets go by dying.

        Not `alone`: for who only reads, whether or not there is a sweep under way.
        """
        require_replaceable(self.folder, MARKER)
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
            marker = self.folder / MARKER
            if not marker.exists():
                write_text(marker, ["{}"])
            if not alone:
                yield
                return
            with (self.folder / ".lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise CannotWrite(
                        f"{self.folder}: another sweep is writing there: wait for it or stop it"
                    ) from None
                self._sweep_leftovers()
                yield
        except OSError as error:
            raise CannotWrite(f"{self.folder}: cannot be written: {error.strerror or error}") from None

    def append(self, results: Iterable[CellResult]) -> None:
        rows = to_arrow(results)
        number = max((int(path.name[5:11]) for path in self._parts()), default=0) + 1
        with replace_file(self.cells / f"part-{number:06}.parquet") as aside:
            pq.write_table(rows, aside, compression="zstd", version="2.6")

    def read(self) -> dict[str, CellResult]:
        """By id of cell. A part that cannot be read is an error that names it: it was not written by a sweep."""
        found: dict[str, CellResult] = {}
        for path in self._parts():
            try:
                rows = pq.ParquetFile(path).read(columns=["cell", "spec", "error", "seconds", "values", "series"])
            except (pa.ArrowException, OSError, KeyError) as error:
                raise InvalidTable(f"{path}: not a part of a sweep's table: {str(error).splitlines()[0]}") from None
            for row in rows.to_pylist():
                found[row["cell"]] = _result(row)
        return found

    def describe(self, about: Mapping[str, Any]) -> None:
        write_text(self.folder / MARKER, json.dumps(about, indent=1, sort_keys=True, default=str).splitlines())

    def _parts(self) -> list[Path]:
        return sorted(self.cells.glob("part-??????.parquet")) if self.cells.is_dir() else []

    def _sweep_leftovers(self) -> None:
        """What a killed sweep was writing aside."""
        for path in self.cells.glob(".part-*.new-*"):
            path.unlink(missing_ok=True)


def to_arrow(results: Iterable[CellResult]) -> Any:
    rows = [
        {
            "cell": one.cell.id,
            "kind": one.cell.kind,
            "name": one.cell.name,
            "spec": json.dumps(one.cell.to_plain(), sort_keys=True),
            "error": one.error,
            "seconds": one.seconds,
            "values": list(one.values.items()),
            "series": list(one.series.items()),
        }
        for one in results
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_arrow(table: Any) -> list[CellResult]:
    return [_result(row) for row in table.to_pylist()]


def _result(row: Mapping[str, Any]) -> CellResult:
    cell = Cell.from_plain(json.loads(row["spec"]))
    return CellResult(cell, dict(row["values"]), dict(row["series"]), row["seconds"], row["error"])


def wide_columns(results: Iterable[CellResult]) -> dict[str, list[Any]]:
    """A column per setting, option and number: what a spreadsheet or a figure wants. Sorted by setting."""
    rows = [flat_row(one) for one in results]
    names = dict.fromkeys(name for row in rows for name in row)
    rows.sort(key=lambda row: json.dumps([row.get(name, "") for name in names if name not in ("cell", "seconds")]))
    return {name: [row.get(name) for row in rows] for name in names}


def flat_row(one: CellResult) -> dict[str, Any]:
    cell = one.cell
    workload = {name: value for name, value in vars(cell.workload).items() if value or name == "seed"}
    if "nodes" not in workload:
        workload["nodes"] = one.values.get("nodes")
    numbers = {name: value for name, value in one.values.items() if name not in ("nodes", "topics")}
    return {
        "cell": cell.id,
        "kind": cell.kind,
        "name": cell.name,
        **workload,
        **{name.rstrip("_"): value for name, value in cell.options},
        **dict(cell.settings),
        "seconds": one.seconds,
        "error": one.error,
        **numbers,
    }
