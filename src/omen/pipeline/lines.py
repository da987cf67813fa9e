"""Text files as lines that know where they stand.

Spark reads a file in blocks, in any order, so a line's number is not known while it is read. What is known is its block
(file and first byte) and its place among the lines of that block. The lines of all blocks are counted in one more,
cheap pass, whose result is as long as the list of blocks; a line's number is then the lines of the blocks before its
own plus its place: the true number in the file, from 1, whatever the partitions. Only lines that need it pay for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from omen.pipeline import schemas
from omen.workloads.edge_files import LONGEST_REJECT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GLOB = str.maketrans({character: f"\\{character}" for character in "[]{}*?"})


def spark_path(path: str) -> str:
    """The path as Spark must be told it: a file that exists by this very name is no pattern."""
    return path.translate(_GLOB) if "://" not in path and Path(path).exists() else path


def read_lines(spark: SparkSession, path: str, without: str = "") -> DataFrame:
    """file, block, place, text: the lines of a text file, folder or pattern, compressed ones too, none left out.

    `without`: lines of nothing but these characters, or of nothing at all, are left out, so that they do not count.
    """
    lines = spark.read.text(spark_path(path))
    lines = lines.filter(F.trim("value", F.lit(without)) != "") if without else lines
    return lines.select(
        F.input_file_name().alias("file"),
        F.input_file_block_start().alias("block"),
        F.monotonically_increasing_id().alias("place"),
        F.col("value").alias("text"),
    )


def number_rows(chosen: DataFrame, lines: DataFrame) -> DataFrame:
    """`chosen`, lines of `lines` with more columns, each with its number in the file as `row`."""
    blocks = lines.groupBy("file", "block").agg(F.min("place").alias("first"), F.count("*").alias("lines"))
    before = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    blocks = blocks.withColumn("before", F.coalesce(F.sum("lines").over(before), F.lit(0)))
    numbered = chosen.join(F.broadcast(blocks), ["file", "block"])
    return numbered.withColumn("row", F.col("place") - F.col("first") + F.col("before") + 1).drop(
        "first", "lines", "before"
    )


def bare(text: Column) -> Column:
    """A line without blanks at either end, or the mark that some programs put before the first."""
    return F.trim(text, F.lit(" \t\ufeff"))


def is_comment(text: Column) -> Column:
    """Lines of no data: comments as SNAP (#) and KONECT (%) write them, and empty ones."""
    return text.startswith("#") | text.startswith("%") | (text == "")


def is_not_text(text: Column) -> Column:
    return ~F.is_valid_utf8(text) | text.contains("\0")


def as_rejected(numbered: DataFrame) -> DataFrame:
    """The table `rejected` of numbered lines with a reason."""
    text = F.substring(F.make_valid_utf8("text"), 1, LONGEST_REJECT)
    printable = F.translate(text, "\0", "\ufffd").alias("text")
    file = plain_path(F.col("file")).alias("source_file")
    return schemas.conform(numbered.select(file, "row", "reason", printable), schemas.REJECTED)


def plain_path(address: Column) -> Column:
    """file:///a%20b as /a b; addresses of other file systems stay."""
    decoded = F.url_decode(F.replace(address, F.lit("+"), F.lit("%2B")))
    return F.when(address.startswith("file:"), F.regexp_replace(decoded, "^file:/*", "/")).otherwise(address)
