"""The commands on Spark say what they say on one machine. They use the session of the tests, which is active."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from omen.cli.main import main
from omen.tables import read_overlay, read_workload

pytestmark = pytest.mark.spark

SYNTH = "workload synth --nodes 300 --topics 20 --popularity zipf:1 --sizes uniform:1:6 --seed 3"


def run(capsys: pytest.CaptureFixture[str], command: str, status: int = 0) -> Any:
    assert main([*command.split(), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_a_workload_is_synthesised_designed_and_checked_alike_on_both_engines(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {}
    for engine in ("local", "spark"):
        made[engine] = run(capsys, f"{SYNTH} --engine {engine} --out {tmp_path}/{engine}")
        assert made[engine].pop("out").endswith(engine)
        assert made[engine].pop("engine") == engine
    assert made["local"] == made["spark"]
    here, there = (read_workload(tmp_path / engine) for engine in ("local", "spark"))
    assert here.interests == there.interests
    assert here.info == there.info

    design = f"design --workload {tmp_path}/spark --algorithm cycle-pt --seed 4"
    ours = run(capsys, f"{design} --out {tmp_path}/o.parquet")
    theirs = run(capsys, f"{design} --engine spark --out {tmp_path}/links")
    for result in (ours, theirs):
        del result["design_s"], result["out"]
    assert ours == theirs
    assert read_overlay(tmp_path / "o.parquet", here.interests) == read_overlay(tmp_path / "links", here.interests)

    for k, status in ((2, 0), (3, 1)):
        check = f"check --workload {tmp_path}/local --overlay {tmp_path}/links --k {k} --diameters"
        assert run(capsys, check, status) == run(capsys, f"{check} --engine spark --tables {tmp_path}/tables", status)
    assert spark.read.parquet(f"{tmp_path}/tables/topics").count() == here.interests.topic_count
    assert spark.read.parquet(f"{tmp_path}/tables/degrees").count() == 300

    profile = f"workload profile --workload {tmp_path}/spark --sample 50 --closest 5"
    assert run(capsys, profile) == run(capsys, f"{profile} --engine spark")


def test_tables_are_imported_alike_on_both_engines(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "wants.csv"
    table.write_text("user,what\nann,tea\nbob,tea\nbob,\nbob,rum\nann,tea\n")
    found = {}
    for engine in ("local", "spark"):
        command = f"workload import --table {table} --node-column user --topic-column what"
        found[engine] = run(capsys, f"{command} --engine {engine} --out {tmp_path}/{engine}")
        assert found[engine]["rejected"] == 1
        assert found[engine]["duplicates"] == 1
    here, there = (read_workload(tmp_path / engine).interests for engine in ("local", "spark"))
    assert here == there
    counts = ("rows", "nodes", "topics", "subscriptions")
    assert [found["local"][name] for name in counts] == [found["spark"][name] for name in counts]
    rejected = spark.read.parquet(f"{tmp_path}/spark/rejected").collect()
    assert [row.text for row in rejected] == ["bob,"]


def test_citeulike_is_imported_as_its_readme_counts_it(
    spark: SparkSession, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = data / "citeulike-a_users.dat.gz"
    if not source.is_file():
        pytest.skip(f"{source} is not there")
    command = f"workload import --table {source} --format adjacency --engine spark --out {tmp_path}/w"
    found = run(capsys, command)
    assert (found["nodes"], found["topics"], found["subscriptions"]) == (5551, 16980, 204986)
    interests = read_workload(tmp_path / "w").interests
    with gzip.open(source, "rt") as lines:
        expected = {(node, int(topic)) for node, line in enumerate(lines) for topic in line.split()[1:]}
    assert set(interests.pairs()) == expected


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("design --workload {w} --algorithm low-oda --engine spark --out {w}/o", "give --rounds auto"),
        ("design --workload {w} --algorithm ring-pt --engine spark", "needs --out"),
        ("check --workload {w} --overlay {w}/none --engine spark", "no such file or folder"),
        ("check --workload {w} --overlay {w}/bad.csv --engine spark", "names node 77, which is not among"),
        ("check --workload {w}/none --overlay {w}/bad.csv --engine spark", "no such file or folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, said: str
) -> None:
    (tmp_path / "interests.csv").write_text("node,topic\n1,1\n2,1\n")
    (tmp_path / "bad.csv").write_text("u,v\n1,77\n")
    assert main(command.format(w=tmp_path).split()) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1


def test_a_folder_of_links_is_replaced_whole(spark: SparkSession, tmp_path: Path) -> None:
    from omen.pipeline.folders import write_folder

    for rows in ([(1, 2), (2, 3)], [(5, 6)]):
        frame = spark.createDataFrame(rows, "u bigint, v bigint")
        write_folder(frame, str(tmp_path / "o"), ("u", "v"))
        assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "o")).collect())) == rows
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]
    broken = spark.createDataFrame([(1, 0)], "u bigint, v bigint").selectExpr("u div v as u", "v")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        write_folder(broken, str(tmp_path / "o"), ("u",))
    assert [tuple(row) for row in spark.read.parquet(str(tmp_path / "o")).collect()] == [(5, 6)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]
