from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType

from omen.design import ALGORITHMS
from omen.errors import InvalidInput
from omen.interests import Interests
from omen.overlay import Overlay
from omen.pipeline.evaluate import (
    distinct_links,
    evaluate_degrees,
    evaluate_topics,
    require_known_nodes,
    summarise,
)
from omen.pipeline.reading import read_links, read_workload_tables
from omen.quality import (
    check_overlay,
    degree_summary,
    diameter_summary,
    topic_components,
    topic_connectivity,
    topic_diameters,
    topic_link_counts,
)
from omen.tables import write_overlay, write_workload
from spark.instances import as_tables, random_instance

pytestmark = pytest.mark.spark


def columns_of(table: DataFrame) -> dict[str, list[Any]]:
    return table.orderBy(table.columns[0]).toArrow().to_pydict()


def assert_equals_quality(spark: SparkSession, interests: Interests, overlay: Overlay, k: int) -> None:
    interest_rows, nodes, rows = as_tables(spark, interests, overlay)
    links = distinct_links(rows)
    table = evaluate_topics(interest_rows, links, k, diameters=True).cache()
    exact = topic_diameters(interests, overlay)
    assert columns_of(table) == {
        "topic": interests.topics.tolist(),
        "subscribers": np.diff(interests.topic_offsets).tolist(),
        "links": topic_link_counts(interests, overlay).tolist(),
        "components": topic_components(interests, overlay).tolist(),
        "connectivity": topic_connectivity(interests, overlay, k).tolist(),
        "diameter_low": exact.tolist(),
        "diameter_high": exact.tolist(),
    }
    degrees = evaluate_degrees(nodes, links)
    assert columns_of(degrees)["degree"] == overlay.degrees.tolist()
    summary, verdict = summarise(table, degrees, k), check_overlay(interests, overlay, k)
    table.unpersist()
    assert (summary.holds, summary.topic_connected, summary.topics) == (
        verdict.holds,
        verdict.topic_connected,
        verdict.topics,
    )
    assert summary.failing == verdict.failing
    assert summary.failing_topics == len(verdict.failing)
    expected = degree_summary(overlay)
    assert (summary.avg_degree, summary.max_degree, summary.degree_histogram) == (
        expected.average,
        expected.maximum,
        expected.histogram,
    )
    diameters = diameter_summary(interests, exact)
    assert summary.mean_diameter == (pytest.approx(diameters.mean), pytest.approx(diameters.mean))
    assert summary.max_diameter == (diameters.maximum, diameters.maximum)
    assert summary.bounded_topics == 0


@pytest.mark.parametrize(("seed", "text", "k"), [(1, False, 1), (2, True, 3)])
def test_spark_judges_random_overlays_as_quality_does(spark: SparkSession, seed: int, text: bool, k: int) -> None:
    assert_equals_quality(spark, *random_instance(seed, text=text), k)


def test_spark_sees_one_needed_link_taken_away(spark: SparkSession) -> None:
    interests, _ = random_instance(3)
    whole = ALGORITHMS["harary-pt"].build(interests, k=1)
    assert check_overlay(interests, whole).holds
    assert_equals_quality(spark, interests, whole, 1)
    broken = Overlay(whole.nodes, whole.u[1:], whole.v[1:])
    assert not check_overlay(interests, broken).holds
    assert_equals_quality(spark, interests, broken, 1)


def test_an_overlay_without_links_is_judged(spark: SparkSession) -> None:
    interests, _ = random_instance(4, nodes=8, topics=3)
    assert_equals_quality(spark, interests, Overlay.from_links(interests.nodes, []), 2)


def test_evaluation_is_the_same_for_any_partitions(spark: SparkSession) -> None:
    interests, overlay = random_instance(5)
    interest_rows, _, rows = as_tables(spark, interests, overlay)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    found = []
    try:
        for partitions in (1, 3, 16):
            spark.conf.set("spark.sql.shuffle.partitions", partitions)
            links = distinct_links(rows.repartition(partitions))
            table = evaluate_topics(interest_rows.repartition(partitions), links, 1, diameters=True, exact_up_to=5)
            found.append(columns_of(table))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert found[0] == found[1] == found[2]
    exact = topic_diameters(interests, overlay)
    assert (np.array(found[0]["diameter_low"]) <= exact).all()
    assert (exact <= np.array(found[0]["diameter_high"])).all()


def test_links_given_twice_or_backwards_count_once(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 2), (2, 1), (1, 2), (2, 3)], "u bigint, v bigint")
    assert sorted(map(tuple, distinct_links(rows).collect())) == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("links", "kind", "said"),
    [
        ([(1, 1)], "bigint", "node 1 is linked to itself"),
        ([(2, 1), (1, None)], "bigint", "row 2: a value is missing in u or v"),
        ([("1", "2")], "string", "column 'u' is text, but the workload's nodes are numbers"),
        ([(1.5, 2.5)], "double", "labels are whole numbers or text"),
        ([(1, 9)], "bigint", "names node 9, which is not among"),
    ],
)
def test_bad_links_are_refused(spark: SparkSession, tmp_path: Path, links: list[Any], kind: str, said: str) -> None:
    nodes = spark.createDataFrame([(1,), (2,)], "node bigint")
    spark.createDataFrame(links, f"u {kind}, v {kind}").coalesce(1).write.parquet(str(tmp_path / "o"))
    with pytest.raises(InvalidInput, match=said):
        overlay = read_links(spark, str(tmp_path / "o"), LongType())
        require_known_nodes(evaluate_degrees(nodes, distinct_links(overlay)), "o")


def test_workload_folders_of_either_engine_are_read(spark: SparkSession, tmp_path: Path) -> None:
    interests, overlay = random_instance(8, text=True)
    write_workload(tmp_path / "w", interests, {})
    write_overlay(tmp_path / "o.csv", overlay)
    tables = read_workload_tables(spark, str(tmp_path / "w"))
    assert sorted(map(tuple, tables.interests.collect())) == interests.pairs()
    assert sorted(row.node for row in tables.nodes.collect()) == interests.nodes.tolist()
    links = read_links(spark, str(tmp_path / "o"), tables.nodes.schema["node"].dataType)
    assert sorted(map(tuple, links.collect())) == overlay.links()


def test_a_node_with_topics_that_is_not_listed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "interests.csv").write_text("node,topic\n1,5\n2,5\n")
    (tmp_path / "nodes.csv").write_text("node\n1\n")
    with pytest.raises(InvalidInput, match="node 2 is not in"):
        read_workload_tables(spark, str(tmp_path))
