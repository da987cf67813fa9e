from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from omen.design import ALGORITHMS
from omen.errors import InvalidInput
from omen.pipeline.per_topic import design_per_topic
from spark.instances import as_tables, random_instance

pytestmark = pytest.mark.spark

CASES = [("ring-pt", {}), ("cycle-pt", {"seed": 5}), ("harary-pt", {"k": 1}), ("harary-pt", {"k": 5})]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(("algorithm", "options"), CASES)
def test_spark_builds_the_links_of_the_single_machine(
    spark: SparkSession, algorithm: str, options: dict[str, Any], text: bool
) -> None:
    interests, overlay = random_instance(6, text=text)
    rows, _, _ = as_tables(spark, interests, overlay)
    found = sorted(tuple(row) for row in design_per_topic(rows, algorithm, options).collect())
    assert found == ALGORITHMS[algorithm].build(interests, **options).links()


def test_links_are_the_same_for_any_partitions(spark: SparkSession) -> None:
    interests, overlay = random_instance(7)
    rows, _, _ = as_tables(spark, interests, overlay)
    found = [
        sorted(map(tuple, design_per_topic(rows.repartition(partitions), "cycle-pt").collect()))
        for partitions in (1, 3, 16)
    ]
    assert found[0] == found[1] == found[2]


def test_other_algorithms_and_options_are_refused(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 1)], "node bigint, topic bigint")
    with pytest.raises(InvalidInput, match="gm is not built on Spark"):
        design_per_topic(rows, "gm")
    with pytest.raises(InvalidInput, match="k"):
        design_per_topic(rows, "harary-pt", {"k": 0})
