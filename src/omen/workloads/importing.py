"""Subscriptions brought in from outside: tables with columns of any names, JSON lines, adjacency lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from omen.errors import InvalidInput, InvalidTable
from omen.interests import Interests
from omen.tables import NOT_TEXT, RejectedRow, column_of_words, count_reasons, read_accepting, read_text
from omen.tables.raw import UTF8, require_encoding

FORMATS = ("table", "adjacency")
NO_COUNT = "no count in front"
WRONG_COUNT = "the count in front is not the number of topics"

PADDED = r"^\s|\s$"
"""Labels with blanks around them; Java's and Python's (ASCII) expressions agree on it."""

_PADDED = re.compile(PADDED, re.ASCII)
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_BLANKS = re.compile(r"[ \t,]+")
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Imported:
    """What came in: the interests, the rows that did not, and the counts."""

    interests: Interests
    rejected: list[RejectedRow] = field(default_factory=list)
    rows: int = 0  # without header and empty lines
    duplicates: int = 0

    @property
    def padded(self) -> dict[str, int]:
        """How many nodes and topics have blanks around their names: likely the same as those without."""
        labels = {"nodes": self.interests.nodes, "topics": self.interests.topics}
        return {kind: sum(map(_is_padded, found.tolist())) for kind, found in labels.items() if found.dtype == object}

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows were rejected for each reason."""
        return count_reasons(self.rejected)


def import_subscriptions(
    path: str | Path,
    format: str = "table",
    node_column: str = "node",
    topic_column: str = "topic",
    encoding: str = UTF8,
) -> Imported:
    """The subscriptions in a file: bad rows are set aside with a reason, doubled ones merged.

    `table`: Parquet, CSV with a header or JSON lines, a row per subscription. `adjacency`: line n, from 0 on, holds
    the number of topics of node n, then the topics. `encoding`: of text, as Python calls it (latin-1, cp1252, utf-16).
    """
    encoding = require_encoding(encoding)
    if format not in FORMATS:
        raise InvalidInput(f"format {format!r} is not one of {', '.join(FORMATS)}")
    imported = (
        _import_adjacency(Path(path), encoding)
        if format == "adjacency"
        else _import_table(path, (node_column, topic_column), encoding)
    )
    if imported.rows == 0:
        raise InvalidTable(f"{path}: no rows in it")
    if imported.rows == len(imported.rejected):
        reasons = ", ".join(f"{reason}: {rows}" for reason, rows in imported.reasons.items())
        raise InvalidTable(f"{path}: none of its {imported.rows} rows can be used ({reasons})")
    return imported


def require_few_rejected(imported: Imported, path: str | Path, most: int | None) -> None:
    """Stop where more rows are bad than the caller accepts; None accepts any number."""
    rejected = len(imported.rejected)
    if most is not None and rejected > most:
        first = imported.rejected[0]
        raise InvalidTable(
            f"{path}: {rejected} of {imported.rows} rows are bad, more than the {most} of --max-rejected;"
            f" the first is row {first.row} of {first.source_file}: {first.reason}"
        )


def _is_padded(label: str) -> bool:
    return _PADDED.search(label) is not None


def _import_table(path: str | Path, names: tuple[str, str], encoding: str) -> Imported:
    columns, rejected = read_accepting(path, names, encoding)
    nodes, topics = (columns[name] for name in names)
    interests = Interests.from_codes(nodes.labels, topics.labels, nodes.codes, topics.codes)
    rows = nodes.codes.size
    return Imported(interests, rejected, rows + len(rejected), rows - interests.subscription_count)


def _import_adjacency(path: Path, encoding: str) -> Imported:
    """A rejected line leaves its number unused, so that the nodes after it keep theirs."""
    text, damaged = _read_lines(path, encoding)
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rejected: list[RejectedRow] = []
    nodes: list[int] = []
    sizes: list[int] = []
    words: list[str] = []
    for number, line in enumerate(lines):
        count, *topics = _BLANKS.split(line.strip(" \t,\r"))
        reason = _reason_against(line, count, len(topics), damaged)
        if reason:
            rejected.append(RejectedRow(str(path), number + 1, reason, line.removesuffix("\r")))
        else:
            nodes.append(number)
            sizes.append(len(topics))
            words.extend(topics)
    column = column_of_words(words)
    node_codes = np.repeat(np.arange(len(nodes), dtype=np.int64), sizes)
    labels = np.array(nodes, dtype=np.int64)
    interests = Interests.from_codes(labels, column.labels, node_codes, column.codes)
    return Imported(interests, rejected, len(lines), len(words) - interests.subscription_count)


def _read_lines(path: Path, encoding: str) -> tuple[str, bool]:
    try:
        if path.is_dir():
            raise InvalidTable(f"{path}: is a folder: adjacency lines stand in one file")
        if not path.exists():
            raise InvalidTable(f"{path}: no such file or folder")
    except (OSError, ValueError) as error:
        raise InvalidTable(f"{path}: cannot be read: {error}") from None
    return read_text(path, encoding)


def _reason_against(line: str, count: str, topics: int, damaged: bool) -> str | None:
    if damaged and _REPLACED in line:
        return NOT_TEXT
    if not _COUNT.fullmatch(count):
        return NO_COUNT
    return None if int(count) == topics else WRONG_COUNT
