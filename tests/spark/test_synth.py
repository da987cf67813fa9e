from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from omen.errors import InvalidInput
from omen.pipeline.synth import Synthesis, mean_size, synthesise_nodes, synthesise_rows
from omen.workloads import Popularity, Sizes, generate_interests

pytestmark = pytest.mark.spark


def asked(sizes: str = "uniform:0:9", seed: int = 7) -> Synthesis:
    return Synthesis(501, 40, Popularity.parse("zipf:1"), Sizes.parse(sizes), seed)


def test_rows_are_those_of_the_single_machine_for_any_partitions(spark: SparkSession) -> None:
    expected = generate_interests(501, 40, "zipf:1", "uniform:0:9", 7)
    for partitions in (1, 3, 16):
        rows = synthesise_rows(spark, asked(), partitions, block_rows=100)
        table = rows.toArrow()
        assert list(zip(*table.to_pydict().values(), strict=True)) == expected.pairs()
        nodes = synthesise_nodes(spark, asked(), partitions).toArrow()
        assert nodes.column("node").to_pylist() == expected.nodes.tolist()


def test_another_seed_gives_other_rows(spark: SparkSession) -> None:
    one, other = (synthesise_rows(spark, asked(seed=seed)).toArrow() for seed in (1, 2))
    assert one != other


def test_what_cannot_be_made_is_refused_before_a_job_runs(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="cannot want 41"):
        synthesise_rows(spark, asked(sizes="41"))


@pytest.mark.parametrize(("sizes", "mean"), [("5", 5.0), ("uniform:2:4", 3.0), ("powerlaw:1:2:1", 4 / 3)])
def test_expected_rows_follow_the_sizes(sizes: str, mean: float) -> None:
    assert mean_size(Sizes.parse(sizes)) == pytest.approx(mean)
