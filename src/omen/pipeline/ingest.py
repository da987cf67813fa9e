"""Pairs of labels from raw files: edge lists here, tables of subscriptions and adjacency lines in `subscriptions`.

Every reader says of each line either its two words or why it has none. What follows is the same for all: equal pairs
are merged and counted, labels become whole numbers if every one of a column is, bad lines are counted by reason and
kept with their file and number. A file is parsed once for the pairs, and once more only if it has bad lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from omen.errors import InvalidInput, InvalidTable
from omen.pipeline import schemas
from omen.pipeline.lines import as_rejected, bare, is_comment, number_rows, read_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LabelKind = Literal["auto", "integer", "text"]

NOT_TEXT = "not text"
TOO_FEW_COLUMNS = "fewer than two columns"
WORDS_AFTER_PAIR = "more than two words, the rest not numbers"
SELF_LOOP = "self-loop"
NOT_A_WHOLE_NUMBER = "not a whole number of 64 bits"

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PARSED = [StructField(name, schemas.TEXT) for name in ("left", "right", "reason")]
_PARSED += [StructField(name, schemas.INTEGER) for name in ("left_number", "right_number")]
_HEADER_NAMES = """
    source target src dst from to head tail user users friend follower followee following followed
    node node1 node2 node_1 node_2 id id1 id2 id_1 id_2 user1 user2 user_a user_b user_id friend_id follower_id
    followee_id fromnodeid tonodeid from_node to_node from_node_id to_node_id source_id target_id subscriber publisher
"""
_HEADER_WORDS = frozenset(_HEADER_NAMES.split())


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
    """Good pairs, each once; the bad rows; and how many of each. `pairs` is cached: call `release` when done."""

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
    both, header = (labels, labels), None
    if is_parquet(path):
        from omen.pipeline.subscriptions import read_parquet_pairs

        parsed = read_parquet_pairs(spark, path, names, by_place=True)
        loop = F.when(F.col("left").cast(schemas.TEXT) == F.col("right").cast(schemas.TEXT), SELF_LOOP)
        parsed = parsed.withColumn("reason", F.coalesce("reason", loop))
        rejected = as_rejected(bad_rows(parsed, both))
    else:
        lines = read_lines(spark, path)
        header, separator = find_shape(lines)
        parsed = parse_edges(lines, header, separator)
        placed = parse_edges(lines, header, separator, keep=("file", "block", "place", "text"))
        rejected = as_rejected(number_rows(bad_rows(placed, both), lines))
    read = settle(parsed, rejected, names, path, both, together=True, either_way=either_way)
    return replace(read, header=header)


def parse_edges(
    lines: DataFrame, header: str | None = None, separator: str | None = " ", keep: Sequence[str] = ()
) -> DataFrame:
    """The lines that are data, each with its words `left` and `right`, also as numbers, or a `reason`.

    Nearly every line of a large file begins with two numbers apart by `separator`. Such lines are told by two cheap
    cuts; the others go to `read_edge_line`, one by one, as all do where there is no separator to cut at. `keep` names
    columns of `lines` to carry along.
    """
    if separator is None:
        return _read_odd(lines, header, keep)
    cut = lines.withColumn("cut", F.instr("text", separator))
    after = F.substring_index(F.expr("substring(text, cut + 1)"), separator, 1)
    cut = cut.withColumns({"left": F.expr("substring(text, 1, cut - 1)"), "right": after})
    # A cast that fails is twenty times as dear as one that does not: none is tried that is bound to.
    cut = cut.withColumn("left_number", F.when(F.col("cut") > 1, F.col("left").try_cast(schemas.INTEGER)))
    number = F.when(F.col("left_number").isNotNull(), F.col("right").try_cast(schemas.INTEGER))
    cut = cut.withColumn("right_number", number)
    is_plain = F.coalesce(F.col("left_number") != F.col("right_number"), F.lit(False))
    reason = F.lit(None).cast(schemas.TEXT).alias("reason")
    words = (F.trim("left").alias("left"), F.trim("right").alias("right"))
    plain = cut.filter(is_plain).select(*keep, *words, "left_number", "right_number", reason)
    return plain.unionByName(_read_odd(cut.filter(~is_plain), header, keep))


def _read_odd(lines: DataFrame, header: str | None, keep: Sequence[str]) -> DataFrame:
    kept = [StructField(name, lines.schema[name].dataType) for name in keep]
    read = partial(_read_odd_lines, header=header, keep=tuple(keep))
    odd = lines.select(*keep, F.col("text").cast("binary").alias("line"))
    return odd.mapInArrow(read, StructType([*kept, *_PARSED]))


def read_edge_line(line: bytes, header: str | None = None) -> tuple[str | None, str | None, str | None] | None:
    """left, right and reason of a line of any shape; None where it is no data at all."""
    try:
        text = line.decode().strip(" \t\ufeff")
    except UnicodeDecodeError:
        return None, None, NOT_TEXT
    if not text or text[0] in "#%" or text == header:
        return None
    if "\0" in text:
        return None, None, NOT_TEXT
    by_comma = "," in text
    words = [word.strip('" \t') for word in text.split(",")] if by_comma else text.replace("\t", " ").split()
    left, right = [*words, "", ""][:2]
    if not left or not right:
        return None, None, TOO_FEW_COLUMNS
    numbers = is_integer(left) and is_integer(right)
    if not numbers and not by_comma and not all(map(is_number, words[2:])):
        return None, None, WORDS_AFTER_PAIR
    if left == right or (numbers and int(left) == int(right)):
        return None, None, SELF_LOOP
    return left, right, None


def _read_odd_lines(
    batches: Iterable[pa.RecordBatch], header: str | None, keep: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    names = [field.name for field in _PARSED]
    for batch in batches:
        seen = [read_edge_line(line, header) for line in batch.column("line").to_pylist()]
        places = [place for place, outcome in enumerate(seen) if outcome is not None]
        columns = [batch.column(name).take(pa.array(places, pa.int64())) for name in keep]
        left, right, reason = ([outcome[side] for outcome in seen if outcome is not None] for side in range(3))
        columns += [pa.array(words, pa.string()) for words in (left, right, reason)]
        columns += [pa.array([_number(word) for word in words], pa.int64()) for words in (left, right)]
        yield pa.RecordBatch.from_arrays(columns, names=[*keep, *names])


def _number(word: str | None) -> int | None:
    if word is None or not is_integer(word):
        return None
    number = int(word)
    return number if -(2**63) <= number < 2**63 else None


def find_shape(lines: DataFrame) -> tuple[str | None, str | None]:
    """The header of an edge list, None without one, and what stands between its columns, None if they are no numbers.

    A header is a first line whose words name columns (no single letters: users may be called so), or are words where
    the next line has numbers. A line equal to it anywhere is no data either: files put together from several repeat
    theirs.
    """
    text = bare(F.col("text"))
    first = [row[0] for row in lines.filter(~is_comment(text)).select(text).limit(2).collect()]
    split = [[word.strip('" \t') for word in (row.split(",") if "," in row else row.split())][:2] for row in first]
    numbers = [len(words) == 2 and all(map(is_integer, words)) for words in split]
    separator = next((mark for mark in (",", "\t") if first and mark in first[-1]), " ") if any(numbers) else None
    if not split or len(split[0]) < 2 or any(is_integer(word) for word in split[0]):
        return None, separator
    named = all(word.lower() in _HEADER_WORDS for word in split[0])
    return (first[0] if named or numbers[-1] else None), separator


def bad_rows(parsed: DataFrame, labels: tuple[LabelKind, LabelKind]) -> DataFrame:
    """The rows that have a reason against them, labels that must be numbers and are not among the reasons."""
    return _demand_numbers(parsed, labels).filter(F.col("reason").isNotNull())


def settle(
    parsed: DataFrame,
    rejected: DataFrame,
    names: tuple[str, str],
    path: str,
    labels: tuple[LabelKind, LabelKind] = ("auto", "auto"),
    together: bool = False,
    either_way: bool = False,
) -> Ingested:
    """Merge equal pairs, decide whether labels are numbers or text, count.

    `parsed` has left, right and reason; `rejected` is the table of the bad ones. Costs one pass and one shuffle of the
    pairs; another where a column turns out to be text.
    """
    parsed = _demand_numbers(parsed, labels)
    as_text = (labels[0] == "text", labels[1] == "text")
    merged, totals = _merge(parsed, as_text, either_way)
    found = (totals.left_text, totals.right_text)
    if together:
        found = (any(found), any(found))
    if found != as_text:
        merged.unpersist()
        merged, totals = _merge(parsed, found, either_way)
    pairs = merged.filter(F.col("reason").isNull()).select(
        F.col("left").alias(names[0]), F.col("right").alias(names[1])
    )
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


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_integer(word: str) -> bool:
    return _INTEGER.fullmatch(word) is not None


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


def _merge(parsed: DataFrame, as_text: tuple[bool, bool], either_way: bool) -> tuple[DataFrame, _Totals]:
    """Distinct pairs with how often each came, cached, and the totals. Bad rows fall into one pair a reason."""
    good = F.col("reason").isNull()
    labels = [
        F.col(side).cast(schemas.TEXT) if text else _number_of(parsed, side)
        for side, text in zip(("left", "right"), as_text, strict=True)
    ]
    left, right = (F.when(good, label) for label in labels)
    if either_way:
        turned = left > right
        left, right = F.when(turned, right).otherwise(left), F.when(turned, left).otherwise(right)
    rows = parsed.select(left.alias("left"), right.alias("right"), "reason")
    merged = rows.groupBy("left", "right", "reason").agg(F.count("*").alias("rows")).persist()
    by_reason = merged.groupBy("reason").agg(
        F.sum("rows").alias("rows"),
        F.count("*").alias("pairs"),
        F.max(F.col("left").isNull()).alias("left_text"),  # among good rows: a word that is no number
        F.max(F.col("right").isNull()).alias("right_text"),
    )
    totals = _Totals(*as_text)
    for row in sorted(by_reason.collect(), key=lambda row: row["reason"] or ""):
        totals.rows += row["rows"]
        if row["reason"] is None:
            totals.good, totals.kept = row["rows"], row["pairs"]
            totals.left_text |= row["left_text"]
            totals.right_text |= row["right_text"]
        else:
            totals.rejected[row["reason"]] = row["rows"]
    return merged, totals


def _demand_numbers(parsed: DataFrame, labels: tuple[LabelKind, LabelKind]) -> DataFrame:
    for side, kind in zip(("left", "right"), labels, strict=True):
        if kind == "integer":
            bad = F.col("reason").isNull() & _number_of(parsed, side).isNull()
            parsed = parsed.withColumn("reason", F.when(bad, NOT_A_WHOLE_NUMBER).otherwise(F.col("reason")))
    return parsed


def _number_of(parsed: DataFrame, side: str) -> Column:
    if f"{side}_number" in parsed.columns:
        return F.col(f"{side}_number")
    is_text = parsed.schema[side].dataType == schemas.TEXT
    return whole_number(F.col(side)) if is_text else F.col(side).cast(schemas.INTEGER)


def require_rows(path: str, counts: Counts) -> None:
    if counts.rows == 0:
        raise InvalidTable(f"{path}: no rows in it")
    if counts.kept == 0:
        raise InvalidTable(f"{path}: none of its {counts.rows} rows can be used ({say_reasons(counts)})")
