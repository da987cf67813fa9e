"""Rounds on Spark choose the links of the rounds of one machine, whatever the partitions, and after a kill.

More algorithms, schedules and numbers of partitions: python -m tests.spark.rounds_everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omen.cli.main import main
from omen.design.rounds import LocalRounds, Rounds, design_in_rounds
from omen.design.schedule import RoundFacts
from omen.interests import Interests
from omen.pipeline.ranks import ranked
from omen.pipeline.reading import WorkloadTables
from omen.pipeline.rounds import Job, RoundTables, design_tables, profile_tables
from omen.tables import read_overlay, write_workload
from spark.instances import as_tables, random_instance

pytestmark = pytest.mark.spark


@contextmanager
def partitioned(spark: SparkSession, partitions: int) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")}
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # or small tables would end up in one partition
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def tables_of(spark: SparkSession, text: bool) -> tuple[WorkloadTables, Interests]:
    interests, overlay = random_instance(3, text=text)
    rows, nodes, _ = as_tables(spark, interests, overlay)
    return WorkloadTables(rows, nodes), interests


def test_a_job_killed_in_round_3_goes_on_and_ends_with_the_same_overlay(spark: SparkSession, tmp_path: Path) -> None:
    tables, interests = tables_of(spark, text=False)
    settings = Rounds(3.0, part_nodes=16)
    job = Job("w", settings, "m4u9c8,r2k9,jk9,m2u2", str(tmp_path / "rounds"))
    told: list[RoundFacts] = []

    def kill(facts: RoundFacts) -> None:
        told.append(facts)
        if len(told) == 2:
            raise KeyboardInterrupt

    with partitioned(spark, 2), pytest.raises(KeyboardInterrupt):
        design_tables(spark, tables, job, kill)
    (tmp_path / "rounds" / "round-3" / "rows").mkdir(parents=True)  # what an interrupted round leaves
    again: list[RoundFacts] = []
    with partitioned(spark, 5):
        links, _ = design_tables(spark, tables, job, again.append)
        found = sorted(map(tuple, links.collect()))
        profile = profile_tables(RoundTables(spark, job.folder), settings)
    expected = design_in_rounds(interests, settings, job.schedule)
    assert found == expected.overlay.links()
    assert (*told, *again) == (*expected.rounds, *expected.last)
    assert profile == LocalRounds(interests, settings).profile()


def test_ranks_are_those_of_the_order_on_any_number_of_partitions(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(f"x{(k * 37) % 101:03}",) for k in range(101)], "name string")
    for partitions in (1, 7):
        with partitioned(spark, partitions):
            found, count = ranked(rows.repartition(partitions), "name")
            assert count == 101
            assert {row.name: row.rank for row in found.collect()} == {f"x{k:03}": k for k in range(101)}
    assert ranked(rows.limit(0), "name")[1] == 0


def test_the_command_builds_the_links_of_one_machine_and_leaves_no_tables(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, interests = tables_of(spark, text=False)
    write_workload(tmp_path / "w", interests, {})
    design = f"design --workload {tmp_path}/w --algorithm low-oda --rounds m2c6 --json"
    told = []
    for where in ("--out", "--engine spark --out"):
        assert main([*design.split(), *where.split(), str(tmp_path / f"o{len(told)}.parquet")]) == 0
        told.append(json.loads(capsys.readouterr().out))
    for result in told:
        del result["design_s"], result["out"]
    assert told[0] == told[1]
    here, there = (read_overlay(tmp_path / f"o{k}.parquet", interests) for k in range(2))
    assert here == there
    assert not list(tmp_path.glob("*.rounds"))
