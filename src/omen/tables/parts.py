"""Where a table is: one file, a folder of parts as Spark leaves it, or a name inside a workload folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from omen.errors import InvalidTable

Format = Literal["parquet", "csv", "json"]

SUFFIXES = (".parquet", ".csv", ".csv.gz")
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True, slots=True)
class Part:
    """A file that holds a table, or some of its rows."""

    path: Path
    format: Format
    encoding: str = "utf-8"  # of text


def find_table(folder: Path, name: str) -> Path | None:
    """The table of that name in a folder, under whichever suffix; None where there is none."""
    try:
        found = [folder / (name + suffix) for suffix in ("", *SUFFIXES) if (folder / (name + suffix)).exists()]
    except (OSError, ValueError) as error:
        raise unreadable(folder, error) from None
    if len(found) > 1:
        raise InvalidTable(f"{shown(folder)} holds {' and '.join(path.name for path in found)}: keep one of them")
    return found[0] if found else None


def locate_table(path: Path, name: str | None = None) -> Path:
    """The file or folder meant by `path`: itself, or with a suffix, or the table `name` in the folder it is."""
    try:
        if path.is_dir():
            inside = find_table(path, name) if name else None
            return inside or path
        if path.exists():
            return path
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    found = find_table(path.parent, path.name) if path.name else None
    if found is None:
        raise InvalidTable(f"{shown(path)}: no such file or folder")
    return found


def list_parts(path: Path, json_lines: bool = False, encoding: str = "utf-8") -> list[Part]:
    """The files of a table in order of name. Hidden files and those starting with _ are Spark's own and left out."""
    try:
        if not path.is_dir():
            return [Part(path, format_of(path, json_lines), encoding)]
        entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith(("_", ".")))
        folders = [entry for entry in entries if entry.is_dir()]
        parts = [Part(entry, format_of(entry, json_lines), encoding) for entry in entries if not entry.is_dir()]
        filled = [part for part in parts if part.path.stat().st_size > 0]
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if folders:
        raise InvalidTable(f"{shown(path)}: holds the folder {folders[0].name!r}: a table has its parts in one folder")
    if len({part.format for part in parts}) > 1:
        raise InvalidTable(
            f"{shown(path)}: holds parts of different formats: {', '.join(p.path.name for p in parts[:5])}"
        )
    if not filled:
        raise InvalidTable(f"{shown(path)}: a folder without a table: no Parquet or CSV parts in it")
    return filled


def format_of(path: Path, json_lines: bool = False) -> Format:
    """By name, else by the first bytes."""
    name = path.name.lower()
    if name.endswith((".parquet", ".parq")):
        return "parquet"
    if json_lines and name.endswith(_JSON_SUFFIXES):
        return "json"
    if name.endswith(SUFFIXES[1:]):
        return "csv"
    with path.open("rb") as file:
        return "parquet" if file.read(4) == b"PAR1" else "csv"


def shown(what: object) -> str:
    """A path or a value from a file as one printable line, cut where it is long."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in str(what))
    return text if len(text) <= 200 else text[:197] + "..."


def unreadable(path: Path, error: BaseException) -> InvalidTable:
    """What to raise where the system or a library could not read a file."""
    reason = getattr(error, "strerror", None) or str(error).split("\n")[0] or type(error).__name__
    return InvalidTable(f"{shown(path)}: cannot be read: {shown(reason)}")
