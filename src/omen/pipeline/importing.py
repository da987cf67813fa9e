"""`workload import` on Spark: subscription tables and adjacency lines of any size, into a workload folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from omen.pipeline import schemas
from omen.pipeline.engines import require_readable
from omen.pipeline.folders import write_workload_folder
from omen.pipeline.ingest import require_few_rejects
from omen.pipeline.subscriptions import ingest_adjacency, ingest_subscriptions
from omen.workloads.importing import PADDED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def import_workload(
    spark: SparkSession,
    table: str,
    out: str,
    table_format: str = "table",
    node_column: str = "node",
    topic_column: str = "topic",
    max_rejected: int | None = None,
) -> dict[str, Any]:
    """Write the workload; returns how it was made and its counts, as `workload import --json` prints them."""
    require_readable(table)
    if table_format == "adjacency":
        read, nodes = ingest_adjacency(spark, table)
    else:
        read = ingest_subscriptions(spark, table, node_column, topic_column)
        nodes = read.pairs.select("node").distinct()
    try:
        padded = _count_padded(read.pairs)
        require_few_rejects(read.counts, max_rejected, table)
        info = {
            "made": "import",
            "table": table,
            "format": table_format,
            "rows": read.counts.rows,
            "duplicates": read.counts.duplicates,
            "rejected": read.counts.rejected,
        }
        counts = write_workload_folder(
            out,
            read.pairs.repartitionByRange("node", "topic").sortWithinPartitions("node", "topic"),
            nodes.repartitionByRange("node").sortWithinPartitions("node"),
            info,
            read.rejected if read.counts.rejects else None,
        )
    finally:
        read.release()
    reasons = {"rejected": read.counts.rejects, "rejected_by_reason": read.counts.rejected}
    return info | counts | reasons | {"padded": padded, "out": out}


def _count_padded(pairs: DataFrame) -> dict[str, int]:
    """How many nodes and topics have blanks around their names, for columns of text."""
    words = [name for name in ("node", "topic") if pairs.schema[name].dataType == schemas.TEXT]
    if not words:
        return {}
    counts = [F.count_distinct(F.when(F.col(name).rlike(PADDED), F.col(name))).alias(f"{name}s") for name in words]
    return pairs.agg(*counts).collect()[0].asDict()
