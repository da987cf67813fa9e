from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from omen.pipeline.profile import profile_tables
from omen.workloads.profile import profile_workload
from spark.instances import as_tables, random_instance

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("seed", "text", "partitions"), [(1, False, 3), (2, True, 1)])
def test_spark_finds_the_profile_of_the_single_machine(
    spark: SparkSession, seed: int, text: bool, partitions: int
) -> None:
    interests, overlay = random_instance(seed, text=text)
    rows, nodes, _ = as_tables(spark, interests, overlay)
    options = {"closest": 4, "sample": 25, "seed": seed, "largest": 5}
    found = profile_tables(rows.repartition(partitions), nodes.repartition(partitions), **options)
    assert found == profile_workload(interests, **options)
    assert found.likeness.sampled == 25
    assert found.nodes_without_topics >= 3
