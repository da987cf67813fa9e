"""An edge list of one file, read by one machine: what `pipeline.ingest` makes of it, for files that fit into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omen.errors import InvalidInput, InvalidTable
from omen.kernels.edge_lines_small import LOOP, ODD, PLAIN
from omen.tables.raw import REPLACED, RejectedRow, read_bytes
from omen.workloads.edge_lists import SELF_LOOP, header_among, read_edge_line, read_plain, whole_number

LabelKind = Literal["auto", "integer", "text"]

NOT_A_WHOLE_NUMBER = "not a whole number of 64 bits"
LONGEST_REJECT = 1000
"""Characters kept of a rejected row."""
SMALL_BYTES = 8_000_000
"""Text up to here is read without a compiled kernel, which takes 0.7 s to load."""

_LINE_END = 10


@dataclass(frozen=True, eq=False)
class Edges:
    """The pairs of an edge list, each once, as codes into sorted labels; and what became of the rows."""

    users: npt.NDArray[Any]  # int64, or str objects
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    rows: int  # without comments, empty lines and headers
    duplicates: int
    header: str | None
    rejected: list[RejectedRow] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows were rejected for each reason."""
        return dict(sorted(Counter(row.reason for row in self.rejected).items()))


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines without their ends, one after the other, and where each begins."""

    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int32]

    def __getitem__(self, place: int) -> bytes:
        return self.text[self.offsets[place] : self.offsets[place + 1]].tobytes()


def read_edges(
    path: str,
    labels: LabelKind = "auto",
    either_way: bool = False,
    target_first: bool = False,
    small_bytes: int = SMALL_BYTES,
) -> Edges:
    """The edges of a text file, gzipped or not. `either_way`: (a, b) and (b, a) are one; `target_first`: b follows."""
    lines = _lines_of(read_bytes(Path(path)))
    header = _find_header(lines)
    left, right, spans, kinds = read_plain(lines.text, lines.offsets, lines.text.size <= small_bytes)
    odd = {int(place): read_edge_line(lines[int(place)], header) for place in np.flatnonzero(kinds == ODD)}
    reasons = {place: found[2] for place, found in odd.items() if found and found[2] is not None}
    reasons |= dict.fromkeys(np.flatnonzero(kinds == LOOP).tolist(), SELF_LOOP)
    plain = np.flatnonzero(kinds == PLAIN)
    words = {place: (str(found[0]), str(found[1])) for place, found in odd.items() if found and found[2] is None}
    numbers = {place: (whole_number(one), whole_number(other)) for place, (one, other) in words.items()}
    strangers = [place for place, pair in numbers.items() if None in pair]
    if labels == "integer":
        reasons |= dict.fromkeys(strangers, NOT_A_WHOLE_NUMBER)
        numbers = {place: pair for place, pair in numbers.items() if None not in pair}
    as_text = labels == "text" or (labels == "auto" and bool(strangers))
    sides: list[Any] = []
    for side, found in enumerate((left, right)):
        if as_text:
            cut = [bytes(lines.text[a:b]).decode() for a, b in spans[plain, 2 * side : 2 * side + 2].tolist()]
            sides.append([*cut, *(pair[side] for pair in words.values())])
        else:
            more = np.array([pair[side] for pair in numbers.values()], dtype=np.int64)
            sides.append(np.concatenate([found[plain], more]))
    rejected = _rejected(path, lines, reasons)
    _require_rows(path, len(sides[0]), rejected)
    return _merged(sides, as_text, (either_way, target_first), header, rejected)


def _merged(
    ends: Sequence[Any], as_text: bool, ways: tuple[bool, bool], header: str | None, rejected: list[RejectedRow]
) -> Edges:
    """Labels as codes, and equal pairs once."""
    either_way, target_first = ways
    if as_text:
        users = np.array(sorted({*ends[0], *ends[1]}), dtype=object)
        code = {label: place for place, label in enumerate(users.tolist())}
        left, right = (np.array([code[label] for label in side], dtype=np.int64) for side in ends)
    else:
        users, codes = np.unique(np.concatenate(ends), return_inverse=True)
        left, right = codes[: len(ends[0])].astype(np.int64), codes[len(ends[0]) :].astype(np.int64)
    if either_way:
        left, right = np.minimum(left, right), np.maximum(left, right)
    if target_first:
        left, right = right, left
    source, target = np.divmod(np.unique(left * users.size + right), users.size)
    good = len(ends[0])
    return Edges(users, source, target, good + len(rejected), good - source.size, header, rejected)


def _lines_of(data: bytes) -> _Lines:
    """Lines end as text files' do anywhere: LF, CR LF, CR."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if data and not data.endswith(b"\n"):
        data += b"\n"
    letters = np.frombuffer(data, np.uint8)
    is_end = letters == _LINE_END
    ends = np.flatnonzero(is_end)
    offsets = np.zeros(ends.size + 1, np.int32)
    offsets[1:] = ends - np.arange(ends.size)
    return _Lines(letters[~is_end], offsets)


def _find_header(lines: _Lines) -> str | None:
    first: list[str] = []
    for place in range(lines.offsets.size - 1):
        text = lines[place].decode(errors="replace").strip(" \t\ufeff")
        if text and text[0] not in "#%":
            first.append(text)
        if len(first) == 2:
            break
    return header_among(first)


def _rejected(path: str, lines: _Lines, reasons: dict[int, str]) -> list[RejectedRow]:
    file = str(Path(path).absolute())
    texts = {place: lines[place].decode(errors="replace").replace("\0", REPLACED) for place in reasons}
    return [
        RejectedRow(file, place + 1, reasons[place], texts[place][:LONGEST_REJECT].removeprefix("\ufeff"))
        for place in sorted(reasons)
    ]


def _require_rows(path: str, good: int, rejected: Sequence[RejectedRow]) -> None:
    if not good and not rejected:
        raise InvalidTable(f"{path}: no rows in it")
    if not good:
        found = Counter(row.reason for row in rejected)
        reasons = ", ".join(f"{reason}: {rows}" for reason, rows in sorted(found.items()))
        raise InvalidTable(f"{path}: none of its {len(rejected)} rows can be used ({reasons})")


def require_few_bad(edges: Edges, most: int | None, path: str) -> None:
    """Stop where more rows are bad than the user allows."""
    bad = len(edges.rejected)
    if most is not None and bad > most:
        reasons = ", ".join(f"{reason}: {rows}" for reason, rows in edges.reasons.items())
        raise InvalidInput(f"{path}: {bad} rows rejected ({reasons}), --max-rejected is {most}")
