"""The grid of a sweep, read from TOML: wherever a list stands, every one of its values is combined with all others.

seeds = 5                                   # 0..4, or a list

[workload]                                  # [[workload]] for several; folder = "w" for one on disk
nodes = [100, 200]
topics = 100
popularity = ["uniform", "zipf:2"]
sizes = 10

[[run]]
algorithm = ["gm", "low-oda"]
diameters = true

[[run]]
system = "shadow"
lambda = [1, 3]                             # options stand by their own names
rounds = 100

[[figure]]                                  # any number, or none: then one is drawn by the setting that varies most
x = "nodes"
y = "avg_degree"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from omen.design.options import suggest
from omen.errors import InvalidInput
from omen.sweep.cells import Cell, WorkloadSpec, pairs
from omen.sweep.kinds import KINDS, check_cell
from omen.systems import find_algorithm, find_system

TOP_KEYS = ("name", "seeds", "workload", "run", "figure")
SYNTHETIC_KEYS = ("nodes", "topics", "popularity", "sizes")
FIGURE_KEYS = ("name", "title", "x", "y", "by", "where")
MOST_CELLS = 1_000_000
_A = {"algorithm": "an algorithm", "system": "a system"}


@dataclass(frozen=True)
class FigureSpec:
    """A figure of a grid: lines of y over x, one for each combination of what else varies, means over seeds."""

    name: str
    x: str
    y: str
    by: tuple[str, ...] = ()
    title: str = ""
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Grid:
    name: str
    cells: tuple[Cell, ...]
    figures: tuple[FigureSpec, ...]


def read_grid(path: str | Path) -> Grid:
    """The grid in a file, every cell of it checked."""
    try:
        plain = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: is a folder; a grid is a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not TOML: {error}") from None
    try:
        return make_grid(plain, Path(path).stem, Path(path).parent)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def make_grid(plain: Mapping[str, Any], name: str = "sweep", folder: Path | None = None) -> Grid:
    """The grid a TOML table describes; folders and traces in it are meant from `folder`."""
    _refuse_unknown(plain, TOP_KEYS, "a grid")
    seeds = _seeds(plain.get("seeds", 1))
    workloads = [one for table in _tables(plain, "workload") for one in _workloads(table, seeds, folder)]
    runs = _tables(plain, "run")
    count = len(workloads) * sum(_combinations(table) for table in runs)
    if count > MOST_CELLS:
        raise InvalidInput(f"{count:,} cells are too many: a grid has at most {MOST_CELLS:,}")
    cells = dict.fromkeys(cell for table in runs for cell in _cells(table, workloads, folder))
    for cell in _representatives(cells):
        check_cell(cell)
    figures = _tables(plain, "figure", required=False)
    return Grid(str(plain.get("name", name)), tuple(cells), tuple(_figure(one, at) for at, one in enumerate(figures)))


def _seeds(given: Any) -> list[int]:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return list(range(given))
    if isinstance(given, list) and given and all(isinstance(one, int) and one >= 0 for one in given):
        return given
    raise InvalidInput(f"seeds must be how many (1 or more) or a list of whole numbers, not {given!r}")


def _tables(plain: Mapping[str, Any], name: str, required: bool = True) -> list[Mapping[str, Any]]:
    given = plain.get(name, [])
    found = [given] if isinstance(given, Mapping) else given
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise InvalidInput(f"{name} must be a table, [{name}], or several, [[{name}]]")
    if required and not found:
        raise InvalidInput(f"there is no [{name}]: a grid has at least one")
    return found


def _workloads(table: Mapping[str, Any], seeds: Sequence[int], folder: Path | None) -> Iterator[WorkloadSpec]:
    if "folder" in table:
        _refuse_unknown(table, ("folder",), "a workload on disk")
        for path in _listed(table["folder"]):
            yield from (WorkloadSpec(seed=seed, folder=_from(folder, path)) for seed in seeds)
        return
    _refuse_unknown(table, SYNTHETIC_KEYS, "a workload")
    for key in ("nodes", "topics", "sizes"):
        if key not in table:
            raise InvalidInput(f"a workload needs {key} (or folder, for one on disk)")
    values = [_listed(table.get(key, "uniform")) for key in SYNTHETIC_KEYS]
    for nodes, topics, popularity, sizes in product(*values):
        for count, key in ((nodes, "nodes"), (topics, "topics")):
            if not isinstance(count, int) or isinstance(count, bool):
                raise InvalidInput(f"{key} must be a whole number, not {count!r}")
        yield from (WorkloadSpec(nodes, topics, str(popularity), str(sizes), seed) for seed in seeds)


def _cells(table: Mapping[str, Any], workloads: Sequence[WorkloadSpec], folder: Path | None) -> Iterator[Cell]:
    kind, word = _kind_of(table)
    known = KINDS[kind].settings
    for name in _listed(table[word]):
        entry = find_algorithm(name) if word == "algorithm" else find_system(name)
        options = {option.name for option in entry.options}
        chosen = {key: _listed(value) for key, value in table.items() if key not in ("kind", word)}
        given = {key.rstrip("_").replace("-", "_"): values for key, values in chosen.items()}
        for key in given:
            if key not in options and key not in known:
                takes = ", ".join([*sorted(options), *known])
                raise InvalidInput(f"run of {name}: there is no {key!r}{suggest(key, [*options, *known])} ({takes})")
            if key not in options:
                _check_setting(f"run of {name}: {key}", given[key], known[key])
        for values in product(*given.values()):
            one = dict(zip(given, values, strict=True))
            if "trace" in one:
                one["trace"] = _from(folder, one["trace"])
            told = pairs({key: value for key, value in one.items() if key in options})
            settings = pairs({key: value for key, value in one.items() if key not in options})
            yield from (Cell(kind, workload, name, told, settings) for workload in workloads)


def _check_setting(what: str, values: Sequence[Any], default: Any) -> None:
    """A setting is of the kind its default is of; counts and times are not negative."""
    words = "true or false" if isinstance(default, bool) else "a text"
    for value in values:
        if isinstance(default, (bool, str)):
            fits = isinstance(value, type(default))
        else:
            words = "a number, 0 or more" if isinstance(default, float) else "a whole number, 0 or more"
            fits = isinstance(value, (int, type(default))) and not isinstance(value, bool) and value >= 0
        if not fits:
            raise InvalidInput(f"{what} must be {words}, not {value!r}")


def _kind_of(table: Mapping[str, Any]) -> tuple[str, str]:
    words = [word for word in ("algorithm", "system") if word in table]
    if len(words) != 1:
        raise InvalidInput("a run names an algorithm or a system, and not both")
    kind = str(table.get("kind", "design" if words[0] == "algorithm" else "replay"))
    if kind not in KINDS:
        raise InvalidInput(f"there is no kind of run {kind!r}{suggest(kind, KINDS)} (there are {', '.join(KINDS)})")
    if KINDS[kind].runs != words[0]:
        raise InvalidInput(f"a run of kind {kind!r} names {_A[KINDS[kind].runs]}, not {_A[words[0]]}")
    return kind, words[0]


def _combinations(table: Mapping[str, Any]) -> int:
    count = 1
    for value in table.values():
        count *= len(_listed(value))
    return count


def _representatives(cells: Mapping[Cell, None]) -> list[Cell]:
    """A cell for each workload setting and each run: what one of them may be told, all may."""
    seen: dict[Any, Cell] = {}
    for cell in cells:
        workload = WorkloadSpec(**{**vars(cell.workload), "seed": 0})
        seen.setdefault(workload, cell)
        seen.setdefault((cell.kind, cell.name, cell.options), cell)
    return list(dict.fromkeys(seen.values()))


def _figure(table: Mapping[str, Any], place: int) -> FigureSpec:
    _refuse_unknown(table, FIGURE_KEYS, "a figure")
    for key in ("x", "y"):
        if not isinstance(table.get(key), str):
            raise InvalidInput(f"a figure needs {key}: the name of a column")
    by = tuple(str(one) for one in _listed(table["by"])) if "by" in table else ()
    where = table.get("where", {})
    if not isinstance(where, Mapping):
        raise InvalidInput("where of a figure is a table of settings and their values")
    name = str(table.get("name", f"figure-{place + 1}"))
    if not name.replace("-", "").replace("_", "").isalnum():
        raise InvalidInput(f"a figure's name becomes a file's: letters, digits, - and _, not {name!r}")
    return FigureSpec(name, table["x"], table["y"], by, str(table.get("title", "")), tuple(where.items()))


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in table:
        if key not in known:
            raise InvalidInput(f"{what} has no key {key!r}{suggest(key, known)} (it has {', '.join(known)})")


def _listed(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InvalidInput("a list stands for each of its values; an empty one leaves nothing to run")
    for one in values:
        if not isinstance(one, (int, float, str, bool)):
            raise InvalidInput(f"{one!r} is no number, text, or list of these")
    return values


def _from(folder: Path | None, path: Any) -> str:
    return str((folder or Path()) / str(path)) if path else ""
