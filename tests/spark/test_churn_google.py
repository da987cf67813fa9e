from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omen.errors import InvalidInput, InvalidTable
from omen.interests import Interests
from omen.pipeline import churn_google
from omen.pipeline.churn_google import (
    map_machines,
    parse_machine_events,
    present_at_start,
    write_google_churn,
)
from omen.pipeline.lines import number_rows, read_lines
from omen.pipeline.reading import read_workload_tables
from omen.tables import write_workload

TRACE = "google2011_machine_events.csv.gz"
SMALL = """\
0,1,0,p,0.5,0.2
0,2,0,p,0.5,0.2
0,3,0,p,0.5,0.2
2.1E+12,1,1,p,0.5,0.2
2.1E+12,1,0,p,0.5,0.2
5000000,2,2,p,0.5,0.2
6000000,2,0,p,0.5,0.2
7000000,3,1,p,,
7000000,3,1,p,,
8000000,9,1
soon,1,1
9000000,1
9000000,,1
9000000,1,7
-1,1,1
"""


def make_workload(folder: Path, nodes: int) -> Path:
    write_workload(folder, Interests.from_pairs([(n, n % 7) for n in range(nodes)]), {})
    return folder


def events_in(spark: SparkSession, path: Path) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.read.parquet(str(path)).orderBy("seq").collect()]


@pytest.mark.parametrize("header", ["", "#Time stamp,Machine ID,Event\n", "time,machine ID,event type,platform\n"])
def test_joins_and_crashes_stand_in_order_and_the_impossible_is_rejected(
    spark: SparkSession, tmp_path: Path, header: str
) -> None:
    (tmp_path / "events.csv").write_text(header + SMALL)
    workload = make_workload(tmp_path / "w", 3)
    made = write_google_churn(spark, str(tmp_path / "events.csv"), str(workload), 1, str(tmp_path / "c"))
    events = events_in(spark, tmp_path / "c")
    assert [row[:3] for row in events] == [(0, 7.0, "crash"), (1, 2.1e6, "crash"), (2, 2.1e6, "join")]
    assert events[1][3] == events[2][3] != events[0][3]
    assert all(row[4] is None for row in events)
    assert (made.rows, made.machines, made.nodes, made.joins, made.crashes, made.updates) == (15, 3, 3, 1, 2, 1)
    first = 1 + bool(header)
    rejected = {row["row"] - first: row["reason"] for row in spark.read.parquet(str(tmp_path / "c.rejected")).collect()}
    assert rejected == {
        6: churn_google.THERE_ALREADY,
        8: churn_google.NOT_THERE,
        10: churn_google.NO_TIME,
        11: churn_google.TOO_FEW_COLUMNS,
        12: churn_google.NO_MACHINE,
        13: churn_google.NO_EVENT,
        14: churn_google.NO_TIME,
    }


def test_more_nodes_than_machines_and_files_of_nothing_are_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(SMALL)
    (tmp_path / "junk.csv").write_bytes(bytes(range(256)) * 20)
    workload = str(make_workload(tmp_path / "w", 4))
    with pytest.raises(InvalidInput, match="3 machines are present at time 0, fewer than the 4 nodes"):
        write_google_churn(spark, str(tmp_path / "events.csv"), workload, 1, str(tmp_path / "c"))
    with pytest.raises(InvalidTable, match="none of its"):
        write_google_churn(spark, str(tmp_path / "junk.csv"), workload, 1, str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("nodes", [1000, 10_000])
def test_the_google_trace_is_what_a_slow_reader_makes_of_it(
    spark: SparkSession, data: Path, tmp_path: Path, nodes: int
) -> None:
    workload = str(make_workload(tmp_path / "w", nodes))
    made = write_google_churn(spark, str(data / TRACE), workload, 7, str(tmp_path / "c"))
    assert (made.rows, made.machines, made.nodes) == (37_780, 12_477, nodes)
    lines = read_lines(spark, str(data / TRACE))
    parsed = number_rows(parse_machine_events(lines), lines)
    tables = read_workload_tables(spark, workload)
    drawn = map_machines(present_at_start(parsed), tables.nodes, 7, TRACE).toArrow()
    node_of = dict(zip(drawn["machine"].to_pylist(), drawn["node"].to_pylist(), strict=True))
    assert sorted(node_of.values()) == list(range(nodes))
    expected, updates = slowly_replay(data / TRACE, node_of)
    assert [(row[1], row[2], row[3]) for row in events_in(spark, tmp_path / "c")] == expected
    assert (made.updates, made.joins + made.crashes) == (updates, len(expected))


def slowly_replay(path: Path, node_of: dict[str, int]) -> tuple[list[tuple[float, str, int]], int]:
    """Machine by machine in the order of the file, with a set of who is there."""
    with gzip.open(path, "rt") as lines:
        rows = [row for row in csv.reader(lines) if not row[0].startswith("#")]
    there: set[str] = set()
    events, updates = [], 0
    for time, machine, kind in sorted(((float(r[0]), r[1], r[2]) for r in rows), key=lambda row: row[0]):
        if machine not in node_of:
            continue
        if kind == "2":
            updates += 1
            continue
        possible = (machine in there) == (kind == "1")
        if possible and time > 0:
            events.append((time / 1e6, "join" if kind == "0" else "crash", node_of[machine]))
        there = there | {machine} if kind == "0" else there - {machine}
    return events, updates
