"""Our own tables, read strictly on Spark: workload folders and overlays. A bad row is an error that says where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DataType, IntegerType, LongType, ShortType, StringType

from omen.errors import InvalidTable
from omen.pipeline import schemas
from omen.pipeline.lines import spark_path
from omen.pipeline.subscriptions import ingest_subscriptions
from omen.tables.parts import SUFFIXES, find_table, list_parts, locate_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class WorkloadTables:
    """A workload folder: interests (node, topic), and nodes (node), all of them."""

    interests: DataFrame
    nodes: DataFrame


def read_workload_tables(spark: SparkSession, folder: str) -> WorkloadTables:
    """A workload folder, on this machine or at an address Spark knows; or a table of interests alone."""
    interests_path, nodes_path = _find_tables(folder)
    interests = read_labels(spark, interests_path, ("node", "topic"))
    if nodes_path is None:
        return WorkloadTables(interests, interests.select("node").distinct())
    nodes = read_labels(spark, nodes_path, ("node",))
    kinds = {table.schema["node"].dataType for table in (interests, nodes)}
    if len(kinds) > 1:
        raise InvalidTable(f"{nodes_path}: nodes are numbers in one of nodes and interests, and text in the other")
    stray = interests.select("node").distinct().join(nodes, "node", "left_anti").orderBy("node").head(1)
    if stray:
        raise InvalidTable(f"{interests_path}: node {stray[0].node!r} is not in {nodes_path}")
    return WorkloadTables(interests, nodes)


def read_links(spark: SparkSession, path: str, node_type: DataType) -> DataFrame:
    """An overlay (u, v) whose ends must be labelled as the nodes are."""
    where = path if "://" in path else str(locate_table(Path(path), "overlay"))
    links = read_labels(spark, where, ("u", "v"), node_type)
    for end in ("u", "v"):
        kind = links.schema[end].dataType
        if kind != node_type:
            raise InvalidTable(
                f"{path}: column {end!r} is {_word(kind)}, but the workload's nodes are {_word(node_type)}"
            )
    loop = links.filter("u = v").select("u").head(1)
    if loop:
        raise InvalidTable(f"{path}: node {loop[0].u!r} is linked to itself")
    return links


def read_labels(spark: SparkSession, path: str, columns: tuple[str, ...], like: DataType | None = None) -> DataFrame:
    """Columns of labels, whole numbers or text. CSV that could be either is made `like` the labels it must match."""
    if _is_csv(path):
        return _read_csv(spark, path, columns, like)
    table = spark.read.parquet(spark_path(path))
    for column in columns:
        if column not in table.columns:
            raise InvalidTable(f"{path}: no column {column!r}: it has {', '.join(table.columns)}")
        kind = table.schema[column].dataType
        if not isinstance(kind, (*_WHOLE_NUMBERS, StringType)):
            raise InvalidTable(f"{path}: column {column!r} is {kind.simpleString()}: labels are whole numbers or text")
    missing = " or ".join(f"`{column}` is null or cast(`{column}` as string) = ''" for column in columns)
    bad = table.filter(missing).select("_metadata.file_name", "_metadata.row_index").head(1)
    if bad:
        raise InvalidTable(f"{path}: {bad[0][0]}, row {bad[0][1] + 1}: a value is missing in {' or '.join(columns)}")
    return table.select(*(_as_label(table, column).alias(column) for column in columns))


def _read_csv(spark: SparkSession, path: str, columns: tuple[str, ...], like: DataType | None) -> DataFrame:
    read = ingest_subscriptions(spark, path, columns[0], columns[-1], "csv", "text" if like == schemas.TEXT else "auto")
    if read.counts.rejects:
        row = read.rejected.orderBy("source_file", "row").head(1)[0]
        raise InvalidTable(f"{row.source_file}, row {row.row}: {row.reason}")
    return read.pairs.toDF(*columns) if len(columns) == 2 else read.pairs.select(F.col("node").alias(columns[0]))


def _find_tables(folder: str) -> tuple[str, str | None]:
    if "://" in folder:
        base = folder.rstrip("/")
        return f"{base}/interests", f"{base}/nodes"
    path = Path(folder)
    interests = locate_table(path, "interests")
    nodes = find_table(path, "nodes") if interests.parent == path else None
    return str(interests), str(nodes) if nodes else None


def _is_csv(path: str) -> bool:
    if "://" in path:
        return path.endswith(SUFFIXES[1:])
    return list_parts(Path(path))[0].format == "csv"


def _as_label(table: DataFrame, column: str) -> Column:
    text = isinstance(table.schema[column].dataType, StringType)
    return F.col(f"`{column}`").cast(schemas.TEXT if text else schemas.INTEGER)


def _word(kind: DataType) -> str:
    return "text" if isinstance(kind, StringType) else "numbers"
