"""Lines of tables, CSV with a header and JSON, read by Spark's workers as `omen.tables` reads them on one machine.

The same rows are good, the others are bad for the same reasons, and a rejected row reads the same. One thing differs: a
line is a row here, so a quote has to be closed in the line it is opened in.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from omen.errors import InvalidTable
from omen.pipeline.line_readers import LineReader
from omen.tables.csv_parts import TOO_FEW_FIELDS, TOO_MANY_FIELDS
from omen.tables.json_lines import NOT_A_LABEL, NOT_JSON
from omen.tables.parts import shown
from omen.tables.raw import NOT_TEXT, REPLACED, missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPEN_QUOTE = "a quote is opened and not closed in the line"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_PLAIN_NUMBER = r"\A-?[0-9]{1,18}\z"
_LONGEST_NUMBER = 4000  # Python refuses to read more digits
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # how such bytes come out of a decoder that lets them through
_BYTE_ORDER_MARK = "\ufeff"
_LONGEST_FIELD = 1 << 30

Row = tuple[str | int | None, str | int | None, str | None, str]
"""left, right, the reason where there is no pair, and the row as text."""


@dataclass(frozen=True)
class TableReader(LineReader):
    """With `keep`, each line also comes out as `text`, as it is shown where it is rejected."""

    words_may_be_numbers: bool = True  # the format does not tell them apart

    @property
    def columns(self) -> tuple[str, ...]:
        return ("left", "right", "reason", "text") if self.keep else ("left", "right", "reason")

    def read(self, lines: pa.Array) -> tuple[npt.NDArray[np.bool_], list[Any]]:
        texts = [line.decode(errors="surrogateescape").removeprefix(_BYTE_ORDER_MARK) for line in lines.to_pylist()]
        rows = self.read_rows(texts)
        filled = [row or (None, None, None, "") for row in rows]
        columns: list[Any] = []
        for side, text in enumerate(self.as_text):
            labels: list[Any] = [row[side] for row in filled]
            columns.append(_as_words(labels) if text else _as_numbers(labels, self.words_may_be_numbers))
        columns.append(pa.array([row[2] for row in filled], pa.string()))
        if "text" in self.columns:
            columns.append(pa.array([_shown(row[3]) for row in filled], pa.string()))
        return np.fromiter((row is not None for row in rows), bool, len(rows)), columns

    def read_rows(self, texts: list[str]) -> list[Row | None]:
        """The row in each line; None where it is no data."""
        raise NotImplementedError


@dataclass(frozen=True)
class CsvReader(TableReader):
    """`header` is the whole first line, `names` its fields, `places` where the two columns stand among them."""

    header: str = ""
    names: tuple[str, ...] = ()
    separator: str = ","
    places: tuple[int, int] = (0, 1)

    def read_rows(self, texts: list[str]) -> list[Row | None]:
        csv.field_size_limit(_LONGEST_FIELD)
        reader = csv.reader([*texts, ""], delimiter=self.separator)
        split: list[list[str] | None] = list(islice(reader, len(texts)))
        if reader.line_num != len(texts):  # a quote has swallowed lines
            split = [_split_line(text, self.separator) for text in texts]
        return [self._judge(fields, text) for fields, text in zip(split, texts, strict=True)]

    def _judge(self, fields: list[str] | None, text: str) -> Row | None:
        if text in ("", self.header):
            return None
        if fields is None:
            return None, None, NOT_TEXT if is_damaged(text) else OPEN_QUOTE, text
        if len(fields) != len(self.names):
            misfit = TOO_FEW_FIELDS if len(fields) < len(self.names) else TOO_MANY_FIELDS
            return None, None, NOT_TEXT if is_damaged(text) else misfit, text
        left, right = (fields[place] for place in self.places)
        reason = self._reason_against(left, right)
        return (None, None, reason, _joined(fields, self.separator)) if reason else (left, right, None, text)

    def _reason_against(self, left: str, right: str) -> str | None:
        if is_damaged(left) or is_damaged(right):
            return NOT_TEXT
        if left and right:
            return None
        return missing(self.names[self.places[1 if left else 0]])


@dataclass(frozen=True)
class JsonReader(TableReader):
    """`names` are the two columns. A number in quotes is text."""

    words_may_be_numbers: bool = False
    names: tuple[str, str] = ("node", "topic")

    def read_rows(self, texts: list[str]) -> list[Row | None]:
        return [self._judge(text) if text.strip() else None for text in texts]

    def _judge(self, text: str) -> Row:
        if is_damaged(text):
            return None, None, NOT_TEXT, text
        found = parse_object(text)
        if found is None:
            return None, None, NOT_JSON, text
        left, right = (found.get(name) for name in self.names)
        reason = next(filter(None, map(_reason_against, self.names, (left, right))), None)
        return (None, None, reason, text) if reason else (left, right, None, text)


def find_csv_header(lines: DataFrame, columns: Sequence[str], path: str) -> CsvReader:
    """A reader for the table these lines are."""
    first = lines.filter("text != ''").select("text").limit(1).collect()
    if not first:
        raise InvalidTable(f"{path}: no rows in it")
    header = first[0][0].removeprefix(_BYTE_ORDER_MARK)
    separator = next((mark for mark in (",", "\t", ";", "|") if mark in header), ",")
    names = next(csv.reader([header], delimiter=separator))
    require_columns(names, columns, path)
    places = (names.index(columns[0]), names.index(columns[1]))
    return CsvReader(header=header, names=tuple(names), separator=separator, places=places)


def find_json_names(lines: DataFrame, columns: tuple[str, str], path: str) -> JsonReader:
    """A reader for the table these lines are; its first object must have the columns."""
    objects = lines.filter(F.trim("text").startswith("{")).select("text").limit(100).collect()
    known = [found for found in (parse_object(row[0]) for row in objects) if found is not None]
    if known:
        require_columns(list(dict.fromkeys(name for found in known for name in found)), columns, path)
    return JsonReader(names=columns)


def is_damaged(text: str) -> bool:
    """Whether bytes of it were not UTF-8."""
    return not text.isascii() and _NOT_UTF8.search(text) is not None


def require_columns(names: list[str], columns: Sequence[str], path: str) -> None:
    for column in columns:
        if names.count(column) > 1:
            raise InvalidTable(f"{path}: has the column {column!r} twice")
        if column not in names and any(not name.isprintable() or REPLACED in name for name in names):
            raise InvalidTable(f"{path}: is neither Parquet nor text with a header")
        if column not in names:
            raise InvalidTable(f"{path}: no column {column!r}: it has {shown(', '.join(names))}")


def parse_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _reason_against(name: str, value: object) -> str | None:
    if value is None or value == "":
        return missing(name)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return NOT_A_LABEL
    if isinstance(value, str) and not _is_utf8(value):
        return NOT_TEXT
    return None


def _is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace") if is_damaged(text) else text


def _split_line(text: str, separator: str) -> list[str] | None:
    """The fields of one line, None where a quote stays open."""
    reader = csv.reader([text, '"'], delimiter=separator)
    fields = next(reader, [])
    return fields if reader.line_num == 1 else None


def _joined(fields: list[str], separator: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(fields)
    return line.getvalue()


def _as_words(labels: list[str | int | None]) -> pa.Array:
    return pa.array([None if label is None else str(label) for label in labels], pa.string())


def _as_numbers(labels: list[str | int | None], words_may_be: bool) -> pa.Array:
    """Those of 64 bits, null for all other labels; words that look like numbers only if they may be some."""
    if words_may_be:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            words = pa.array(labels, pa.string())
            if pc.all(pc.match_substring_regex(words, _PLAIN_NUMBER), min_count=0).as_py():
                return words.cast(pa.int64())
    return pa.array([_number(label, words_may_be) for label in labels], pa.int64())


def _number(label: str | int | None, words_may_be: bool) -> int | None:
    if isinstance(label, str):
        label = int(label) if words_may_be and _WHOLE_NUMBER.fullmatch(label) and len(label) < _LONGEST_NUMBER else None
    return label if label is not None and -(2**63) <= label < 2**63 else None
