"""Who wants what, from tables (CSV with a header, JSON lines, Parquet) and from adjacency lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StringType

from omen.errors import InvalidTable
from omen.pipeline import schemas
from omen.pipeline.ingest import (
    Counts,
    Ingested,
    Kinds,
    bad_rows,
    is_parquet,
    merge_columns,
    merge_lines,
    require_rows,
    settle,
)
from omen.pipeline.line_readers import parse_lines
from omen.pipeline.lines import as_rejected, is_not_text, number_rows, read_lines, spark_path
from omen.pipeline.table_lines import find_csv_header, find_json_names, require_columns
from omen.tables.raw import NOT_TEXT, missing
from omen.workloads.edge_files import LabelKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TableFormat = Literal["auto", "csv", "json", "parquet"]

NO_COUNT = "no count in front"
WRONG_COUNT = "the count in front is not the number of topics"

_WHOLE = (ByteType, ShortType, IntegerType, LongType)


def ingest_subscriptions(
    spark: SparkSession,
    path: str,
    node_column: str = "node",
    topic_column: str = "topic",
    table_format: TableFormat = "auto",
    labels: LabelKind = "auto",
) -> Ingested:
    """node, topic from a table with columns of any names. A CSV field cannot hold a line break."""
    columns = (node_column, topic_column)
    both: Kinds = (labels, labels)
    kind = _format_of(path) if table_format == "auto" else table_format
    if kind == "parquet":
        parsed = read_parquet_pairs(spark, path, columns)
        both = declared_kinds(parsed, both)
        rejected = as_rejected(bad_rows(parsed, both))
        return settle(merge_columns(parsed, both), rejected, ("node", "topic"), path, both)
    lines = read_lines(spark, path, without=" \t\r" if kind == "json" else "\r")
    reader = find_json_names(lines, columns, path) if kind == "json" else find_csv_header(lines, columns, path)
    bad = number_rows(bad_rows(parse_lines(lines, reader, keep=("file", "block", "place")), both), lines)
    if kind == "csv":
        bad = bad.withColumn("row", F.col("row") - 1)  # the header is no row
    return settle(merge_lines(lines, reader, both), as_rejected(bad), ("node", "topic"), path, both)


def read_parquet_pairs(spark: SparkSession, path: str, columns: tuple[str, str], by_place: bool = False) -> DataFrame:
    """file, row, text, left, right, reason from two columns of a Parquet table, or its first two (`by_place`)."""
    table = spark.read.parquet(spark_path(path))
    if by_place and not set(columns) <= set(table.columns) and len(table.columns) >= 2:
        columns = (table.columns[0], table.columns[1])
    require_columns(table.columns, columns, path)
    for column in columns:
        kind = table.schema[column].dataType
        if not isinstance(kind, (*_WHOLE, StringType)):
            raise InvalidTable(
                f"{path}: column {column!r} is {kind.simpleString()}: labels must be whole numbers or text"
            )
    left, right = (F.col(f"`{column}`") for column in columns)
    empty = (left.isNull() | (left.cast(schemas.TEXT) == ""), right.isNull() | (right.cast(schemas.TEXT) == ""))
    return table.select(
        F.input_file_name().alias("file"),
        (F.col("_metadata.row_index") + 1).alias("row"),
        _as_object(table, columns).alias("text"),
        left.alias("left"),
        right.alias("right"),
        F.when(empty[0], missing(columns[0])).when(empty[1], missing(columns[1])).alias("reason"),
    )


def declared_kinds(parsed: DataFrame, labels: Kinds) -> Kinds:
    """Columns that a table declares as text are text, even where all of it looks like numbers."""
    left, right = (
        "text" if kind == "auto" and parsed.schema[side].dataType == schemas.TEXT else kind
        for side, kind in zip(("left", "right"), labels, strict=True)
    )
    return left, right


def ingest_adjacency(spark: SparkSession, path: str, labels: LabelKind = "auto") -> tuple[Ingested, DataFrame]:
    """node, topic from lines of a count and that many topics; line n, from 0, is node n. Also all nodes, as a table.

    A rejected line leaves its number unused, so that the nodes after it keep theirs.
    """
    lines = read_lines(spark, path)
    numbered = _without_last_blanks(number_rows(parse_adjacency(lines), lines), path)
    numbered = numbered.withColumn("node", F.col("row") - 1)
    good = numbered.filter(F.col("reason").isNull())
    pairs = good.select(F.col("node").alias("left"), F.explode("topics").alias("right"))
    pairs = pairs.withColumn("reason", F.lit(None).cast(schemas.TEXT))
    reasons = {row["reason"]: row["count"] for row in numbered.groupBy("reason").count().collect()}
    usable = reasons.pop(None, 0)
    counts = Counts(usable + sum(reasons.values()), usable, 0, dict(sorted(reasons.items())))
    require_rows(path, counts)
    rejected = as_rejected(numbered.filter(F.col("reason").isNotNull()))
    merge = merge_columns(pairs, ("integer", labels))
    read = settle(merge, rejected, ("node", "topic"), path, ("integer", labels))
    counts = Counts(counts.rows, read.counts.kept, read.counts.duplicates, counts.rejected)
    return Ingested(read.pairs, rejected, counts, read.cached), good.select("node")


def parse_adjacency(lines: DataFrame) -> DataFrame:
    """Each line's `topics`, or a `reason`. Comments are refused here: every line counts."""
    text = F.trim("text", F.lit(" \t,\r\ufeff"))
    data = lines.withColumn("words", F.split(text, "[ \t,]+"))
    word = F.get("words", F.lit(0))
    count = F.when(word.rlike("^[0-9]{1,18}$"), word.cast(schemas.INTEGER))
    topics = F.slice("words", 2, F.greatest(F.size("words") - 1, F.lit(0)))
    reason = (
        F.when(is_not_text(text), NOT_TEXT).when(count.isNull(), NO_COUNT).when(count != F.size(topics), WRONG_COUNT)
    )
    return data.select("*", topics.alias("topics"), reason.alias("reason")).drop("words")


def _without_last_blanks(numbered: DataFrame, path: str) -> DataFrame:
    """Empty lines stand for nodes, rejected ones; but not those that end the file."""
    last = numbered.filter(F.trim("text", F.lit(" \t\r")) != "").agg(F.max("row")).collect()[0][0]
    if last is None:
        raise InvalidTable(f"{path}: no rows in it")
    return numbered.filter(F.col("row") <= last)


def _as_object(table: DataFrame, columns: tuple[str, str]) -> Column:
    """A row as JSON, spaced as one machine writes it."""
    pieces = []
    for name in columns:
        value = F.col(f"`{name}`")
        if table.schema[name].dataType == schemas.TEXT:
            shown = F.regexp_extract(F.to_json(F.struct(value.alias("x"))), r'(?s)^\{"x":(.*)\}$', 1)
        else:
            shown = value.cast(schemas.TEXT)
        pieces.append(
            F.concat(
                F.lit(f"{json.dumps(name, ensure_ascii=False)}: "), F.when(value.isNull(), "null").otherwise(shown)
            )
        )
    return F.concat(F.lit("{"), F.concat_ws(", ", *pieces), F.lit("}"))


def _format_of(path: str) -> TableFormat:
    if is_parquet(path):
        return "parquet"
    bare_name = path.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
    return "json" if bare_name.endswith((".json", ".jsonl", ".ndjson")) else "csv"
