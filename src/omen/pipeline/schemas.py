"""The tables of the pipeline, as Spark knows them."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

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

CCDF = StructType(
    [
        StructField("graph", TEXT),  # original or sample
        StructField("count_of", TEXT),  # followers or followees
        StructField("degree", INTEGER),
        StructField("users", INTEGER),  # with exactly this degree
        StructField("fraction", DoubleType()),  # of the users with this degree or more
    ]
)


def graph(label: DataType) -> StructType:
    return StructType([StructField("source", label), StructField("target", label)])


def interests(node: DataType, topic: DataType) -> StructType:
    return StructType([StructField("node", node), StructField("topic", topic)])


def nodes(node: DataType) -> StructType:
    return StructType([StructField("node", node)])


def churn(node: DataType, topic: DataType) -> StructType:
    return StructType(
        [
            StructField("seq", INTEGER),
            StructField("time_s", DoubleType()),
            StructField("event", TEXT),
            StructField("node", node),
            StructField("topics", ArrayType(topic)),
        ]
    )
