"""The tables of the pipeline, as Spark knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTEGER: DataType = LongType()
TEXT: DataType = StringType()

REJECTED = StructType(
    [
        StructField("source_file", TEXT),
        StructField("row", INTEGER),
        StructField("reason", TEXT),
        StructField("text", TEXT),
    ]
)


def churn(node: DataType, topic: DataType) -> StructType:
    """Topics are null throughout: each node has those of the workload."""
    return StructType(
        [
            StructField("seq", INTEGER),
            StructField("time_s", DoubleType()),
            StructField("event", TEXT),
            StructField("node", node),
            StructField("topics", ArrayType(topic)),
        ]
    )


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of the schema, in its order and of its types."""
    return frame.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema))
