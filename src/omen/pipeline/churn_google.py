"""Churn from the Google cluster trace of 2011, table machine_events.

OMen (Chen, Vitenberg, Jacobsen), 6.1: as many machines as there are nodes, drawn from those present at the start; ADD
is a join, REMOVE a crash; UPDATE says nothing of coming or going and is dropped. Times are in microseconds; events of
one time keep the order of the file. A machine is there after an ADD and gone after a REMOVE, so an event is impossible
just where the one before it, of the same machine, is of the same kind, or where a machine never seen is removed: such
an event is rejected and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from omen.errors import InvalidInput
from omen.pipeline import schemas
from omen.pipeline.folders import write_folder
from omen.pipeline.ingest import Counts, require_few_rejects, require_rows
from omen.pipeline.lines import as_rejected, bare, is_comment, is_not_text, number_rows, read_lines
from omen.pipeline.progress import announce_step
from omen.pipeline.reading import read_workload_tables
from omen.pipeline.social import keyed
from omen.tables.raw import NOT_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

TOO_FEW_COLUMNS = "fewer than three columns"
NO_TIME = "the time is not a number of microseconds, 0 or more"
NO_MACHINE = "no machine"
NO_EVENT = "the event is not 0 (ADD), 1 (REMOVE) or 2 (UPDATE)"
THERE_ALREADY = "added, but there already"
NOT_THERE = "removed, but not there"

ADD, REMOVE, UPDATE = 0, 1, 2
_MACHINES, _NODES = 3, 4  # what an order is for: drawing machines, handing them nodes


@dataclass(frozen=True)
class GoogleChurn:
    """What came of a trace."""

    rows: int
    machines: int  # present at the start
    nodes: int
    joins: int
    crashes: int
    updates: int  # dropped, of the machines drawn
    rejected: dict[str, int]
    duration_s: float


def write_google_churn(
    spark: SparkSession, machine_events: str, workload: str, seed: int, out: str, max_rejected: int | None = None
) -> GoogleChurn:
    """Write the table churn to `out`, and what was rejected to `out`.rejected."""
    tables = read_workload_tables(spark, workload)
    announce_step("reading machine events")
    lines = read_lines(spark, machine_events)
    parsed = number_rows(parse_machine_events(lines), lines).persist()
    try:
        malformed = _count_reasons(parsed)
        rows = parsed.count()
        require_rows(machine_events, Counts(rows, rows - sum(malformed.values()), 0, malformed))
        events = parsed.filter(F.col("reason").isNull())
        present = present_at_start(events)
        drawn = map_machines(present, tables.nodes, seed, machine_events)
        judged = judge_events(events.join(F.broadcast(drawn), "machine")).persist()
        rejected = malformed | _count_reasons(judged)
        require_few_rejects(Counts(rows, 0, 0, rejected), max_rejected, machine_events)
        trace = churn_table(judged, tables.interests.schema["topic"].dataType)
        announce_step("writing")
        write_folder(trace, out, ("seq",))
        bad = as_rejected(_bad(parsed).unionByName(_bad(judged)))
        write_folder(bad, f"{out}.rejected", ("source_file", "row"))
        kinds = {row["event"]: row["count"] for row in trace.groupBy("event").count().collect()}
        last = trace.agg(F.max("time_s")).collect()[0][0]
        updates = judged.filter(F.col("event") == UPDATE).count()
        judged.unpersist()
        return GoogleChurn(
            rows=rows,
            machines=present.count(),
            nodes=drawn.count(),
            joins=kinds.get("join", 0),
            crashes=kinds.get("crash", 0),
            updates=updates,
            rejected=dict(sorted(rejected.items())),
            duration_s=last or 0.0,
        )
    finally:
        parsed.unpersist()


def parse_machine_events(lines: DataFrame) -> DataFrame:
    """Each row's time (microseconds), machine and event, or a reason. Lines of no data, a header too, are left out."""
    text = bare(F.col("text"))
    header = text.rlike('^"?[A-Za-z][^,]*,[^,]*[A-Za-z]')  # words in the first two columns: neither time nor machine
    data = lines.filter(~is_comment(text) & ~header).withColumn("words", F.split(text, ","))
    time, machine, event = (F.trim(F.get("words", F.lit(place))) for place in (0, 1, 2))
    data = data.select("*", time.try_cast("double").alias("time"), machine.alias("machine"), event.alias("event"))
    finite = (F.col("time") >= 0) & (F.col("time") < float("inf"))
    reason = (
        F.when(is_not_text(F.col("text")), NOT_TEXT)
        .when(F.size("words") < 3, TOO_FEW_COLUMNS)
        .when(F.col("time").isNull() | ~finite, NO_TIME)
        .when(F.col("machine") == "", NO_MACHINE)
        .when(~F.col("event").isin("0", "1", "2"), NO_EVENT)
    )
    return data.withColumn("reason", reason).withColumn("event", F.col("event").try_cast("int")).drop("words")


def present_at_start(events: DataFrame) -> DataFrame:
    """machine: those whose last event at time 0 is an ADD."""
    at_zero = events.filter((F.col("time") == 0) & (F.col("event") != UPDATE))
    last = at_zero.groupBy("machine").agg(F.max_by("event", F.struct("file", "row")).alias("event"))
    return last.filter(F.col("event") == ADD).select("machine")


def map_machines(machines: DataFrame, nodes: DataFrame, seed: int, where: str) -> DataFrame:
    """machine, node: as many machines as there are nodes, in random order, each for a node in random order."""
    wanted, available = nodes.count(), machines.count()
    if available < wanted:
        raise InvalidInput(
            f"{where}: {available} machines are present at time 0, fewer than the {wanted} nodes of the workload:"
            " take a workload with at most as many"
        )
    order = Window.orderBy(keyed(seed, _MACHINES, "machine"), "machine")
    drawn = machines.withColumn("place", F.row_number().over(order)).filter(F.col("place") <= wanted)
    order = Window.orderBy(keyed(seed, _NODES, "node"), "node")
    return drawn.join(nodes.withColumn("place", F.row_number().over(order)), "place").select("machine", "node")


def judge_events(events: DataFrame) -> DataFrame:
    """`events` with a reason where one is impossible."""
    in_order = Window.partitionBy("machine", F.col("event") == UPDATE).orderBy("time", "file", "row")
    before = F.coalesce(F.lag("event").over(in_order), F.lit(REMOVE))
    twice = F.when(F.col("event") == ADD, THERE_ALREADY).otherwise(NOT_THERE)
    reason = F.when((F.col("event") != UPDATE) & (before == F.col("event")), twice)
    return events.withColumn("reason", reason)


def churn_table(judged: DataFrame, topic: DataType) -> DataFrame:
    """The table churn: what happens after time 0, numbered from 0. Topics are null: those of the workload."""
    kept = judged.filter(F.col("reason").isNull() & (F.col("event") != UPDATE) & (F.col("time") > 0))
    number = F.row_number().over(Window.orderBy("time", "file", "row")).cast(schemas.INTEGER) - 1
    columns = {
        "seq": number,
        "time_s": F.col("time") / 1e6,
        "event": F.when(F.col("event") == ADD, "join").otherwise("crash"),
        "node": F.col("node"),
        "topics": F.lit(None),
    }
    schema = schemas.churn(judged.schema["node"].dataType, topic)
    return schemas.conform(kept.select(*(column.alias(name) for name, column in columns.items())), schema)


def _bad(frame: DataFrame) -> DataFrame:
    return frame.filter(F.col("reason").isNotNull()).select("file", "row", "reason", "text")


def _count_reasons(frame: DataFrame) -> dict[str, int]:
    rows = _bad(frame).groupBy("reason").count().collect()
    return {row["reason"]: row["count"] for row in rows}
