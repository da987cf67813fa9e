"""Pairs of labels from raw files: edge lists here, tables of subscriptions and adjacency lines in `subscriptions`.

Every reader says of each line either its two labels or why it has none. What follows is the same for all: equal pairs
are merged and counted, labels become whole numbers if every one of a column is, bad lines are counted by reason and
kept with their file and number. A file is parsed once for the pairs, once more if labels turn out to be text, and once
more if it has bad lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from omen.errors import InvalidInput, InvalidTable
from omen.pipeline import schemas
from omen.pipeline.edge_lists import EdgeReader, find_header
from omen.pipeline.line_readers import LineReader, Sides, as_batches, parse_lines
from omen.pipeline.lines import as_rejected, number_rows, read_lines
from omen.pipeline.merging import merge_numbers, merge_words, pairs_of
from omen.workloads.edge_files import NOT_A_WHOLE_NUMBER, LabelKind
from omen.workloads.edge_lists import SELF_LOOP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Kinds = tuple[LabelKind, LabelKind]
Merge = Callable[[Sides], "DataFrame"]
"""Merged pairs, as `merge_numbers` gives them, by whether the left and the right label are text."""


@dataclass(frozen=True)
class Counts:
    """What became of the rows of an input."""

    rows: int  # without comments, empty lines and headers
    kept: int
    duplicates: int
    rejected: dict[str, int] = field(default_factory=dict)  # by reason

    @property
    def rejects(self) -> int:
        return sum(self.rejected.values())


@dataclass(frozen=True)
class Ingested:
    """Good pairs, each once; the bad rows; and how many of each.

    What `pairs` are taken from is cached: call `release` when done. Taking them costs; who reads them more than a few
    times had better cache them too.
    """

    pairs: DataFrame
    rejected: DataFrame
    counts: Counts
    cached: DataFrame
    header: str | None = None  # the line that was taken for one

    def release(self) -> None:
        self.cached.unpersist()


def ingest_edges(
    spark: SparkSession,
    path: str,
    labels: LabelKind = "auto",
    either_way: bool = False,
    target_first: bool = False,
) -> Ingested:
    """source, target from an edge list: two columns apart by blanks, tabs or commas, more columns ignored.

    Comments (# and %), a header and compression are recognised; a Parquet table is read by its columns source and
    target, or else its first two. Both columns hold users, so they are numbers together or text together. `either_way`:
    (a, b) and (b, a) are one edge, kept as the smaller first. `target_first`: the columns stand the other way round.
    """
    names = ("target", "source") if target_first else ("source", "target")
    both: Kinds = (labels, labels)
    if is_parquet(path):
        from omen.pipeline.subscriptions import declared_kinds, read_parquet_pairs

        parsed = read_parquet_pairs(spark, path, names, by_place=True)
        both = declared_kinds(parsed, both)
        loop = F.when(F.col("left").cast(schemas.TEXT) == F.col("right").cast(schemas.TEXT), SELF_LOOP)
        parsed = parsed.withColumn("reason", F.coalesce("reason", loop))
        merge = merge_columns(parsed, both, either_way)
        return settle(merge, as_rejected(bad_rows(parsed, both)), names, path, both, together=True)
    lines = read_lines(spark, path)
    reader = EdgeReader(header=find_header(lines))
    placed = parse_lines(lines, reader, keep=("file", "block", "place", "text"))
    rejected = as_rejected(number_rows(bad_rows(placed, both), lines))
    read = settle(merge_lines(lines, reader, both, either_way), rejected, names, path, both, together=True)
    return replace(read, header=reader.header)


def merge_lines(lines: DataFrame, reader: LineReader, labels: Kinds, either_way: bool = False) -> Merge:
    """For lines that a reader makes pairs of."""

    def merge(as_text: Sides) -> DataFrame:
        if any(as_text):
            return merge_words(_turned(parse_lines(lines, replace(reader, as_text=as_text)), either_way))
        return merge_numbers(as_batches(lines), reader, either_way, _demanded(labels))

    return merge


def merge_columns(parsed: DataFrame, labels: Kinds, either_way: bool = False) -> Merge:
    """For rows whose left, right and reason are columns already."""
    parsed = _demand_numbers(parsed, labels)
    good = F.col("reason").isNull()

    def merge(as_text: Sides) -> DataFrame:
        read = [
            F.col(side).cast(schemas.TEXT) if text else _number_of(parsed, side)
            for side, text in zip(("left", "right"), as_text, strict=True)
        ]
        left, right = (F.when(good, label) for label in read)
        rows = parsed.select(left.alias("left"), right.alias("right"), "reason")
        if any(as_text):
            return merge_words(_turned(rows, either_way))
        return merge_numbers(rows, either_way=either_way, demanded=_demanded(labels))

    return merge


def bad_rows(parsed: DataFrame, labels: Kinds) -> DataFrame:
    """The rows that have a reason against them, labels that must be numbers and are not among the reasons."""
    return _demand_numbers(parsed, labels).filter(F.col("reason").isNotNull())


def settle(
    merge: Merge,
    rejected: DataFrame,
    names: tuple[str, str],
    path: str,
    labels: Kinds = ("auto", "auto"),
    together: bool = False,
) -> Ingested:
    """Decide whether labels are numbers or text, and count. `rejected` is the table of the bad rows.

    Costs one pass and one shuffle of the pairs; another where a column turns out to be text.
    """
    as_text = (labels[0] == "text", labels[1] == "text")
    if together:
        as_text = (any(as_text), any(as_text))
    merged = merge(as_text).persist()
    totals = _count(merged, as_text)
    found = (totals.left_text, totals.right_text)
    if together:
        found = (any(found), any(found))
    if found != as_text:
        merged.unpersist()
        merged = merge(found).persist()
        totals = _count(merged, found)
    pairs = pairs_of(merged).toDF(*names)
    counts = Counts(totals.rows, totals.kept, totals.good - totals.kept, totals.rejected)
    require_rows(path, counts)
    return Ingested(pairs, rejected, counts, merged)


def require_few_rejects(counts: Counts, most: int | None, path: str) -> None:
    """Stop where more rows are bad than the user allows."""
    if most is not None and counts.rejects > most:
        raise InvalidInput(f"{path}: {counts.rejects} rows rejected ({say_reasons(counts)}), --max-rejected is {most}")


def say_reasons(counts: Counts) -> str:
    return ", ".join(f"{reason}: {rows}" for reason, rows in sorted(counts.rejected.items()))


def whole_number(word: Column) -> Column:
    """The word as a number of 64 bits, null where it is none. What cannot be one is not tried: failing is dear."""
    return F.when(word.rlike("^[+-]?[0-9]{1,19}$"), word.try_cast(schemas.INTEGER))


def is_parquet(path: str) -> bool:
    """A Parquet file by its name, or a folder of Spark's that holds some."""
    name = path.rstrip("/")
    if name.endswith((".parquet", ".parq")):
        return True
    return "://" not in path and Path(path).is_dir() and any(Path(path).glob("*.parquet"))


@dataclass
class _Totals:
    left_text: bool
    right_text: bool
    rows: int = 0
    good: int = 0
    kept: int = 0
    rejected: dict[str, int] = field(default_factory=dict)


def _count(merged: DataFrame, as_text: Sides) -> _Totals:
    by_reason = merged.groupBy("reason").agg(
        F.sum("rows").alias("rows"),
        F.sum("kept").alias("kept"),
        F.max(F.col("left").isNull()).alias("left_text"),  # among good rows: a word that is no number
        F.max(F.col("right").isNull()).alias("right_text"),
    )
    totals = _Totals(*as_text)
    for row in sorted(by_reason.collect(), key=lambda row: row["reason"] or ""):
        totals.rows += row["rows"]
        if row["reason"] is None:
            totals.good, totals.kept = row["rows"], row["kept"]
            totals.left_text |= row["left_text"]
            totals.right_text |= row["right_text"]
        else:
            totals.rejected[row["reason"]] = row["rows"]
    return totals


def _turned(rows: DataFrame, either_way: bool) -> DataFrame:
    """With the smaller of the two labels first, if either way is the same."""
    if not either_way:
        return rows
    turned, left, right = F.col("left") > F.col("right"), F.col("left"), F.col("right")
    first, second = F.when(turned, right).otherwise(left), F.when(turned, left).otherwise(right)
    return rows.select(first.alias("left"), second.alias("right"), "reason")


def _demanded(labels: Kinds) -> Sides:
    return labels[0] == "integer", labels[1] == "integer"


def _demand_numbers(parsed: DataFrame, labels: Kinds) -> DataFrame:
    for side, kind in zip(("left", "right"), labels, strict=True):
        if kind == "integer":
            bad = F.col("reason").isNull() & _number_of(parsed, side).isNull()
            parsed = parsed.withColumn("reason", F.when(bad, NOT_A_WHOLE_NUMBER).otherwise(F.col("reason")))
    return parsed


def _number_of(parsed: DataFrame, side: str) -> Column:
    is_text = parsed.schema[side].dataType == schemas.TEXT
    return whole_number(F.col(side)) if is_text else F.col(side).cast(schemas.INTEGER)


def require_rows(path: str, counts: Counts) -> None:
    if counts.rows == 0:
        raise InvalidTable(f"{path}: no rows in it")
    if counts.kept == 0:
        raise InvalidTable(f"{path}: none of its {counts.rows} rows can be used ({say_reasons(counts)})")
