"""Who wants what, from tables (CSV with a header, JSON lines, Parquet) and from adjacency lines."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StringType

from omen.errors import InvalidTable
from omen.pipeline import schemas
from omen.pipeline.ingest import (
    NOT_TEXT,
    Counts,
    Ingested,
    LabelKind,
    bad_rows,
    is_parquet,
    require_rows,
    settle,
    whole_number,
)
from omen.pipeline.lines import as_rejected, bare, is_not_text, number_rows, read_lines, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TableFormat = Literal["auto", "csv", "json", "parquet"]

NO_NODE = "no node"
NO_TOPIC = "no topic"
NOT_JSON = "not a JSON object"
TOO_MANY_FIELDS = "more fields than the header"
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
    kind = _format_of(path) if table_format == "auto" else table_format
    if kind == "parquet":
        parsed = read_parquet_pairs(spark, path, columns)
        bad = bad_rows(parsed, (labels, labels))
    else:
        lines = read_lines(spark, path)
        parsed = parse_json(lines, columns, path) if kind == "json" else parse_csv(lines, columns, path)
        bad = number_rows(bad_rows(parsed, (labels, labels)), lines)
        if kind == "csv":
            bad = bad.withColumn("row", F.col("row") - 1)  # the header is no row
    return settle(parsed, as_rejected(bad), ("node", "topic"), path, (labels, labels))


def parse_csv(lines: DataFrame, columns: tuple[str, str], path: str) -> DataFrame:
    """The rows under the header, each with its fields `left` and `right`, or a `reason`."""
    header = lines.select(bare(F.col("text")).alias("text")).filter("text != ''").limit(1).collect()
    if not header:
        raise InvalidTable(f"{path}: no rows in it")
    separator = next((mark for mark in (",", "\t", ";", "|") if mark in header[0][0]), ",")
    names = [name.strip() for name in next(csv.reader([header[0][0]], delimiter=separator))]
    _require_columns(names, columns, path)
    schema = ", ".join(f"c{place} string" for place in range(len(names) + 1))
    text = bare(F.col("text"))
    data = lines.filter((text != "") & (text != header[0][0]))
    options = {"sep": separator, "escape": '"'}
    data = data.withColumn("fields", F.from_csv("text", schema, options))
    left, right = (F.col(f"fields.c{names.index(column)}") for column in columns)
    reason = (
        F.when(is_not_text(text), NOT_TEXT)
        .when(F.col(f"fields.c{len(names)}").isNotNull(), TOO_MANY_FIELDS)
        .when(left.isNull() | (left == ""), NO_NODE)
        .when(right.isNull() | (right == ""), NO_TOPIC)
    )
    return data.select("*", left.alias("left"), right.alias("right"), reason.alias("reason")).drop("fields")


def parse_json(lines: DataFrame, columns: tuple[str, str], path: str) -> DataFrame:
    """A JSON object a line, each with its values `left` and `right`, or a `reason`."""
    text = bare(F.col("text"))
    data = lines.filter(text != "")
    fields = F.from_json("text", "map<string,string>")
    known = data.select(F.map_keys(fields).alias("names")).filter("names is not null").limit(1).collect()
    if known:
        _require_columns(known[0][0], columns, path)
    data = data.withColumn("fields", fields)
    left, right = (F.try_element_at("fields", F.lit(column)) for column in columns)
    reason = (
        F.when(is_not_text(text), NOT_TEXT)
        .when(F.col("fields").isNull(), NOT_JSON)
        .when(left.isNull() | (left == ""), NO_NODE)
        .when(right.isNull() | (right == ""), NO_TOPIC)
    )
    return data.select("*", left.alias("left"), right.alias("right"), reason.alias("reason")).drop("fields")


def read_parquet_pairs(spark: SparkSession, path: str, columns: tuple[str, str], by_place: bool = False) -> DataFrame:
    """file, row, text, left, right, reason from two columns of a Parquet table, or its first two (`by_place`)."""
    table = spark.read.parquet(spark_path(path))
    if by_place and not set(columns) <= set(table.columns) and len(table.columns) >= 2:
        columns = (table.columns[0], table.columns[1])
    _require_columns(table.columns, columns, path)
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
        F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns))).alias("text"),
        left.alias("left"),
        right.alias("right"),
        F.when(empty[0], NO_NODE).when(empty[1], NO_TOPIC).alias("reason"),
    )


def ingest_adjacency(spark: SparkSession, path: str, labels: LabelKind = "auto") -> tuple[Ingested, DataFrame]:
    """node, topic from lines of a count and that many topics; line n, from 0, is node n. Also all nodes, as a table.

    A rejected line leaves its number unused, so that the nodes after it keep theirs.
    """
    lines = read_lines(spark, path)
    parsed = parse_adjacency(lines)
    numbered = number_rows(parsed, lines).withColumn("node", F.col("row") - 1)
    good = numbered.filter(F.col("reason").isNull())
    pairs = good.select(F.col("node").alias("left"), F.explode("topics").alias("right"))
    pairs = pairs.withColumn("reason", F.lit(None).cast(schemas.TEXT))
    reasons = {row["reason"]: row["count"] for row in parsed.groupBy("reason").count().collect()}
    usable = reasons.pop(None, 0)
    counts = Counts(usable + sum(reasons.values()), usable, 0, dict(sorted(reasons.items())))
    require_rows(path, counts)
    rejected = as_rejected(numbered.filter(F.col("reason").isNotNull()))
    read = settle(pairs, rejected, ("node", "topic"), path, ("integer", labels))
    counts = Counts(counts.rows, read.counts.kept, read.counts.duplicates, counts.rejected)
    return Ingested(read.pairs, rejected, counts, read.cached), good.select("node")


def parse_adjacency(lines: DataFrame) -> DataFrame:
    """Each line's `topics`, or a `reason`. Comments are refused here: every line counts."""
    text = bare(F.col("text"))
    words = F.split(text, "[ \t,]+")
    data = lines.withColumn("words", words)
    count = whole_number(F.get("words", F.lit(0)))
    topics = F.slice("words", 2, F.greatest(F.size("words") - 1, F.lit(0)))
    reason = (
        F.when(is_not_text(text), NOT_TEXT).when(count.isNull(), NO_COUNT).when(count != F.size(topics), WRONG_COUNT)
    )
    return data.select("*", topics.alias("topics"), reason.alias("reason")).drop("words")


def _format_of(path: str) -> TableFormat:
    if is_parquet(path):
        return "parquet"
    bare_name = path.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
    return "json" if bare_name.endswith((".json", ".jsonl", ".ndjson")) else "csv"


def _require_columns(names: list[str], columns: tuple[str, str], path: str) -> None:
    for column in columns:
        if column not in names:
            raise InvalidTable(f"{path}: no column {column!r}: it has {', '.join(names)}")
