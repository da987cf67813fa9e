"""What every reader of lines is: batches of lines in, batches of pairs and reasons out, inside Spark's workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from omen.pipeline import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Sides = tuple[bool, bool]
"""Something said of the left and of the right label."""


@dataclass(frozen=True)
class LineReader(ABC):
    """Labels come out as text where `as_text` says so, else as numbers, null where the word is none.

    `keep` names columns that are carried along.
    """

    as_text: Sides = (False, False)
    keep: tuple[str, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_data, columns = self.read(batch.column("line").cast(pa.binary()))
            kept = [batch.column(name) for name in self.keep]
            found = pa.RecordBatch.from_arrays([*kept, *columns], names=[*self.keep, *self.columns])
            yield found if is_data.all() else found.filter(pa.array(is_data))

    @property
    def columns(self) -> tuple[str, ...]:
        return ("left", "right", "reason")

    @abstractmethod
    def read(self, lines: pa.Array) -> tuple[npt.NDArray[np.bool_], list[Any]]:
        """Which of the lines, as bytes, are data at all; and `columns`, a value for every line."""


def as_batches(lines: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
    """What a reader takes: lines as they stand, be they text or not; a cast to bytes would copy each."""
    return lines.select(*keep, F.col("text").alias("line"))


def parse_lines(lines: DataFrame, reader: LineReader, keep: Sequence[str] = ()) -> DataFrame:
    """The lines that are data, each with its labels `left` and `right`, or a `reason`."""
    reader = replace(reader, keep=tuple(keep))
    is_text = dict(zip(("left", "right"), reader.as_text, strict=True))
    fields = [StructField(name, lines.schema[name].dataType) for name in keep]
    fields += [
        StructField(name, schemas.TEXT if is_text.get(name, True) else schemas.INTEGER) for name in reader.columns
    ]
    return as_batches(lines, keep).mapInArrow(reader, StructType(fields))
