"""Label columns: whether they hold numbers or text, and their values as codes into sorted labels.

A column is numeric only if every value in it is a whole number of 64 bits. Where a file does not say (CSV), a column
that looks numeric is kept as text if the labels it must match are text; where it does (Parquet), the wrong kind is an
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omen.errors import InvalidTable
from omen.interests import Labels, encode
from omen.tables.arrow_arrays import from_words, to_numpy
from omen.tables.parts import shown
from omen.tables.raw import RawPart

Kind = Literal["numbers", "text"]

_WHOLE_NUMBER = r"\A[+-]?[0-9]+\z"


@dataclass(frozen=True, eq=False)
class Column:
    """Value i is labels[codes[i]]; labels sorted, without doubles."""

    labels: Labels
    codes: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column over all parts of a table, bad rows left out or refused before."""

    name: str
    parts: Sequence[RawPart]
    arrays: Sequence[Any]  # pyarrow.ChunkedArray, a part each

    @property
    def rows(self) -> int:
        return sum(len(array) for array in self.arrays)

    def where(self, place: int) -> str:
        """File and row of a value; only where no rows were left out."""
        for part, array in zip(self.parts, self.arrays, strict=True):
            if place < len(array):
                return f"{shown(part.path)}, row {part.row_number(place)}"
            place -= len(array)
        raise IndexError(place)

    def kind(self) -> Kind | None:
        """What the column holds by itself; None without values."""
        filled = [(part, array) for part, array in zip(self.parts, self.arrays, strict=True) if len(array)]
        if not filled:
            return None
        kinds = {_declared(part, self.name, array) for part, array in filled}
        if kinds == {"numbers", "text"}:
            raise InvalidTable(
                f"{shown(filled[0][0].path.parent)}: column {self.name!r} holds numbers in one part and text in another"
            )
        if kinds <= {"open", "numbers"}:
            return "numbers" if all(_as_numbers(array) is not None for _, array in filled) else "text"
        return "text"

    def may_be_text(self) -> bool:
        return not any(pa.types.is_integer(array.type) for array in self.arrays if len(array))

    def to_column(self, kind: Kind | None) -> Column:
        """The values as that kind, which the column must allow."""
        if kind == "text":
            return _encode_text([array.cast(pa.large_string()) for array in self.arrays])
        numbers = [_as_numbers(array) for array in self.arrays if len(array)]
        values = [to_numpy(array) for array in numbers if array is not None]
        joined = np.concatenate(values) if values else np.empty(0, dtype=np.int64)
        labels, codes = np.unique(joined, return_inverse=True)
        return Column(labels, codes.astype(np.int64))


def kind_of_labels(labels: Labels) -> Kind | None:
    """None where there are none."""
    if labels.size == 0:
        return None
    return "text" if labels.dtype == object else "numbers"


def agree(columns: Sequence[RawColumn], expected: Kind | None = None, matched: str = "") -> Kind | None:
    """The kind that columns with the same labels have in common: `expected`, or text if any of them is text."""
    kinds = [column.kind() for column in columns]
    wanted = expected or ("text" if "text" in kinds else "numbers" if "numbers" in kinds else None)
    for column, kind in zip(columns, kinds, strict=True):
        if kind is None or kind == wanted:
            continue
        other = matched or next(shown(other.parts[0].path) for other in columns if other is not column)
        if wanted == "numbers":
            place, value = _first_text(column)
            raise InvalidTable(
                f"{column.where(place)}: {column.name} {shown(value)!r} is text, but the labels of {other} are numbers"
            )
        if not column.may_be_text():
            raise InvalidTable(
                f"{shown(column.parts[0].path)}: column {column.name!r} holds numbers,"
                f" but the labels of {other} are text"
            )
    return wanted


def column_of_words(words: Sequence[str], may_be_numbers: bool = True) -> Column:
    """A column from words of a text file."""
    array = pa.chunked_array([from_words(words)])
    numbers = _as_numbers(array) if may_be_numbers else None
    if numbers is None:
        return _encode_text([array])
    labels, codes = np.unique(to_numpy(numbers), return_inverse=True)
    return Column(labels, codes.astype(np.int64))


def codes_in(labels: Labels, column: Column) -> npt.NDArray[np.int64]:
    """The codes of a column's values among other labels, -1 for those not there."""
    if column.labels.size == 0:
        return np.empty(0, dtype=np.int64)
    return encode(labels, column.labels)[column.codes]


def _declared(part: RawPart, name: str, array: Any) -> Kind | Literal["open"]:
    if name in part.open:
        return "open"
    return "numbers" if pa.types.is_integer(array.type) else "text"


def _as_numbers(array: Any) -> Any | None:
    """The values as int64, None if one of them is not."""
    if pa.types.is_integer(array.type):
        return array
    if not pc.all(pc.match_substring_regex(array, _WHOLE_NUMBER), min_count=0).as_py():
        return None
    try:
        return pc.replace_substring_regex(array, r"\A\+", "").cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def _first_text(column: RawColumn) -> tuple[int, str]:
    """The first value that is not a whole number of 64 bits, else, in a column declared as text, the first."""
    place = 0
    for array in column.arrays:
        if len(array) and not pa.types.is_integer(array.type):
            odd = np.flatnonzero(~to_numpy(pc.match_substring_regex(array, _WHOLE_NUMBER)))
            if odd.size == 0 and _as_numbers(array) is None:
                odd = np.array([i for i in range(len(array)) if _as_numbers(array.slice(i, 1)) is None])
            if odd.size or column.name not in column.parts[0].open:
                first = int(odd[0]) if odd.size else 0
                return place + first, str(array[first].as_py())
        place += len(array)
    raise AssertionError("a column of numbers holds no text")


def _encode_text(arrays: Sequence[Any]) -> Column:
    chunks = [chunk for array in arrays for chunk in array.chunks]
    encoded = pa.chunked_array(chunks, pa.large_string()).combine_chunks()
    encoded = (encoded if isinstance(encoded, pa.Array) else pa.concat_arrays(encoded.chunks)).dictionary_encode()
    words = np.empty(len(encoded.dictionary), dtype=object)
    words[:] = encoded.dictionary.to_pylist()
    order = to_numpy(pc.array_sort_indices(encoded.dictionary))  # by UTF-8 bytes, which is by code point
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = np.arange(order.size)
    codes = to_numpy(encoded.indices)
    return Column(words[order], ranks[codes] if codes.size else np.empty(0, dtype=np.int64))
