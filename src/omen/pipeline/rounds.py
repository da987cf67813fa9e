"""Designs in rounds for workloads that do not fit one machine: the links that `omen.design.rounds` chooses, each once.

A round is a few Spark jobs over tables of codes: rows (node, topic, label, alone), nodes (node, degree), topics (topic,
pieces). Parts are keyed by (seed, round, node) and sized by part_nodes, so partitions do not matter. Every round ends
as tables in a folder, its facts last: a job that is started again goes on after the last round that has them.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Window
from pyspark.sql import functions as F

from omen.design.rounds import (
    HUBS,
    SAMPLE_LARGE,
    SAMPLE_NODES,
    SAMPLE_STEP,
    UNLIMITED,
    Rounds,
    has_hubs,
    next_cap,
    part_rows_of,
    plan_rounds,
    profile_sample,
    round_seed,
    with_part_nodes,
)
from omen.design.schedule import Profile, RoundFacts, Step
from omen.pipeline.evaluate import Evaluation, evaluate_overlay
from omen.pipeline.folders import write_folder
from omen.pipeline.progress import announce_step
from omen.pipeline.ranks import ranked
from omen.pipeline.reading import WorkloadTables, read_workload_tables
from omen.pipeline.round_tasks import CONNECTED, LINK, MERGE, RELABEL, TOPIC, Engine, Keys, Merges, Proposals, begins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEYS = "node int, first bigint, second bigint"
_CHOSEN = "kind int, a int, b int, c int"
_MERGED = "kind int, topic int, label int, into int"
_PROPOSED = "u int, v int, word bigint"


@dataclass(frozen=True)
class State:
    """The tables between two rounds, and the facts of those so far; `last` are the sub-rounds of the last stage."""

    rows: DataFrame
    nodes: DataFrame
    topics: DataFrame
    left: int
    links: int
    rounds: tuple[RoundFacts, ...] = ()
    last: tuple[RoundFacts, ...] = ()

    @property
    def max_degree(self) -> int:
        """Of all nodes."""
        facts = (*self.rounds, *self.last)
        return facts[-1].max_degree if facts else 0

    @property
    def number(self) -> int:
        """How many rounds and sub-rounds there were."""
        return len(self.rounds) + len(self.last)

    def facts(self) -> dict[str, Any]:
        """What is written of it beside the tables."""
        rounds, last = ([asdict(facts) for facts in several] for several in (self.rounds, self.last))
        return {"left": self.left, "links": self.links, "rounds": rounds, "last": last}


class RoundTables:
    """The folder in which the tables of all rounds stand."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder if "://" in folder else Path(folder).resolve().as_uri()

    def keep(self, number: int, name: str, table: DataFrame) -> DataFrame:
        """Write a table of a round; what was left of an interrupted attempt goes."""
        path = f"{self._folder}/round-{number}/{name}"
        table.write.mode("overwrite").parquet(path)
        return self._spark.read.parquet(path)

    def read(self, number: int, name: str) -> DataFrame:
        return self._spark.read.parquet(f"{self._folder}/round-{number}/{name}")

    def close(self, number: int, facts: dict[str, Any]) -> None:
        """The round is complete: its facts are written last."""
        self.keep(number, "facts", self._spark.createDataFrame([(json.dumps(facts),)], "facts string"))

    def facts(self, number: int) -> dict[str, Any] | None:
        """The facts of a round, None where it is not complete."""
        from pyspark.errors import AnalysisException

        try:
            found = self.read(number, "facts").first()
        except AnalysisException:  # there is no such folder
            return None
        return None if found is None else json.loads(found.facts)


@dataclass(frozen=True)
class Job:
    """A design: of which workload, how, and in which folder the tables of its rounds stand."""

    workload: str
    settings: Rounds
    schedule: str
    folder: str

    def describe(self) -> dict[str, Any]:
        """What must be the same for a folder of rounds to be gone on with."""
        told = asdict(self.settings) | {"rho": str(self.settings.rho), "schedule": self.schedule}
        return told | {"workload": self.workload, "workers": 0}


def design_workload(spark: SparkSession, job: Job, out: str) -> tuple[Evaluation, State, float]:
    """Build the overlay of a workload into the folder `out`, and judge it; also the seconds the building took."""
    started = time.perf_counter()
    links, state = design_tables(spark, read_workload_tables(spark, job.workload), job)
    announce_step("writing")
    write_folder(links, out, ("u", "v"))
    seconds = time.perf_counter() - started
    found = evaluate_overlay(spark, job.workload, out)
    if "://" not in job.folder:
        shutil.rmtree(job.folder)
    return found, state, seconds


def design_tables(
    spark: SparkSession,
    tables: WorkloadTables,
    job: Job,
    tell: Callable[[RoundFacts], None] = lambda facts: None,
) -> tuple[DataFrame, State]:
    """(u, v): the links, each once, u < v; and what the rounds came to."""
    kept = RoundTables(spark, job.folder)
    state = _resume(kept, job) or _begin(kept, tables, job)
    settings = _with_part_nodes(kept, job.settings)
    plan = plan_rounds(job.schedule, settings, lambda: profile_tables(kept, settings))
    while state.left:
        step = None if state.last else plan.next_step(state.rounds)
        if step is not None:
            run = _run_last if step.joins else _run_round
            state = _update(kept, state, step, *run(kept, state, step, settings))
        else:
            step = Step(1, next_cap(state.rounds, state.last, settings))
            state = _update(kept, state, step, *_run_last(kept, state, step, settings), last=True)
        kept.close(state.number, state.facts() | {"job": job.describe()})
        tell((*state.rounds, *state.last)[-1])
    return _labelled(kept, state), state


def _labelled(kept: RoundTables, state: State) -> DataFrame:
    """The links of all rounds by label; codes are in label order, so u < v stays."""
    codes = kept.read(0, "codes")
    links = kept.read(0, "links")
    for number in range(1, state.number + 1):
        links = links.union(kept.read(number, "links"))
    for end in ("u", "v"):
        named = codes.select(F.col("code").alias(end), F.col("node").alias(f"{end}_label"))
        links = links.join(named, end)
    return links.select(F.col("u_label").alias("u"), F.col("v_label").alias("v"))


def _begin(kept: RoundTables, tables: WorkloadTables, job: Job) -> State:
    """Codes in label order, as one machine gives them, and every subscriber its own component."""
    announce_step("numbering nodes and topics")
    interests = tables.interests.dropDuplicates()
    nodes, _ = ranked(tables.nodes.select("node").distinct(), "node")
    topics, _ = ranked(interests.select("topic").distinct(), "topic")
    codes = kept.keep(0, "codes", nodes.select("node", F.col("rank").cast("int").alias("code")))
    topic_codes = kept.keep(0, "topic-codes", topics.select("topic", F.col("rank").cast("int").alias("code")))
    coded = interests.join(codes, "node").select("topic", F.col("code").alias("node"))
    coded = coded.join(topic_codes, "topic").select("node", F.col("code").alias("topic"))
    pieces = coded.groupBy("topic").agg(F.count("*").cast("int").alias("pieces")).filter("pieces > 1")
    kept_topics = kept.keep(0, "topics", pieces)
    rows = coded.join(kept_topics, "topic").select(
        "node", "topic", F.col("node").alias("label"), F.lit(True).alias("alone")
    )
    state = State(
        kept.keep(0, "rows", rows),
        kept.keep(0, "nodes", codes.select(F.col("code").alias("node"), F.lit(0).alias("degree"))),
        kept_topics,
        _count_left(kept_topics),
        0,
    )
    kept.keep(0, "links", codes.select(F.col("code").alias("u"), F.col("code").alias("v")).limit(0))
    kept.close(0, state.facts() | {"job": job.describe()})
    return state


def _resume(kept: RoundTables, job: Job) -> State | None:
    """The state after the last complete round of the same design, None where there is none."""
    first = kept.facts(0)
    if first is None or first["job"] != job.describe():
        return None
    number, found = 0, first
    while (later := kept.facts(number + 1)) is not None and later["job"] == first["job"]:
        number, found = number + 1, later
    return State(
        kept.read(number, "rows"),
        kept.read(number, "nodes"),
        kept.read(number, "topics"),
        found["left"],
        found["links"],
        tuple(map(_read_facts, found["rounds"])),
        tuple(map(_read_facts, found["last"])),
    )


def _read_facts(told: dict[str, Any]) -> RoundFacts:
    return RoundFacts(**{**told, "step": Step(**told["step"])})


def _count_left(topics: DataFrame) -> int:
    found = topics.agg(F.coalesce(F.sum(F.col("pieces") - 1), F.lit(0)).alias("left")).first()
    assert found is not None
    return int(found.left)


def _with_part_nodes(kept: RoundTables, settings: Rounds) -> Rounds:
    """The settings with a part size, chosen as on one machine where none is given."""
    if settings.part_nodes:
        return settings
    held = F.col("pieces").cast("bigint")
    found = kept.read(0, "topics").agg(F.sum(held).alias("held"), F.sum(held * held).alias("squares")).first()
    assert found is not None
    return with_part_nodes(settings, kept.read(0, "nodes").count(), found.held or 0, found.squares or 0)


def profile_tables(kept: RoundTables, settings: Rounds) -> Profile:
    """The sample comes to the driver: its size does not grow with the workload."""
    rows, nodes = kept.read(0, "rows"), kept.read(0, "nodes")
    order, _ = _divide(rows, SAMPLE_STEP, settings, 0)
    alike = order.filter(F.col("rank") < SAMPLE_NODES).select("node")
    sample = alike.union(_largest(rows, SAMPLE_LARGE)).distinct()
    found = rows.join(sample, "node").select("node", "topic").orderBy("node", "topic").toArrow()
    node, topic = (found.column(name).to_numpy() for name in ("node", "topic"))
    offsets = begins(node) if node.size else np.zeros(1, np.int64)
    names, codes = np.unique(topic, return_inverse=True)
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets)).astype(np.int32)
    everyone = np.arange(offsets.size - 1, dtype=np.int32)
    part = part_rows_of(everyone, offsets, codes.astype(np.int32), owner, names.size)
    return profile_sample(part, everyone.size, nodes.count(), settings)


def _divide(rows: DataFrame, step: Step, settings: Rounds, number: int) -> tuple[DataFrame, int]:
    """(node, rank) in the order in which nodes are cut into parts, and how many nodes there are."""
    keys = Keys(int(round_seed(settings.seed, number)), step.alike)
    words = rows.select("node", "topic").repartition("node").mapInArrow(keys, _KEYS)
    order, count = ranked(words, "first", "second", "node")
    return order.select("node", "rank"), count


def _largest(rows: DataFrame, count: int) -> DataFrame:
    """(node): those of the most open topics, the lowest where they tie."""
    held = rows.groupBy("node").agg(F.count("*").alias("held"))
    return held.orderBy(F.desc("held"), "node").limit(count).select("node")


def _run_round(kept: RoundTables, state: State, step: Step, settings: Rounds) -> tuple[DataFrame, DataFrame]:
    """The links and merges that the engine chooses in all parts."""
    announce_step(f"round {state.number + 1} ({step}), {state.left:,} components left")
    order, count = _divide(state.rows, step, settings, state.number)
    size = settings.size_at(step)
    parts = math.ceil(count / size)
    assigned = order.select("node", F.floor(F.col("rank") / size).cast("int").alias("part"))
    if parts > 1 and has_hubs(settings):
        every = state.rows.sparkSession.range(parts).select(F.col("id").cast("int").alias("part"))
        assigned = assigned.union(_largest(state.rows, size // HUBS).crossJoin(every)).distinct()
    rows = state.rows.join(assigned.join(state.nodes, "node"), "node")
    rows = rows.select("part", "node", "degree", "topic", "label", "alone").repartition("part")
    chosen = kept.keep(state.number + 1, "chosen", rows.mapInArrow(Engine(step, settings, state.max_degree), _CHOSEN))
    links = chosen.filter(F.col("kind") == LINK).select(F.col("a").alias("u"), F.col("b").alias("v")).distinct()
    merges = chosen.filter(F.col("kind") == MERGE).select(
        F.col("a").alias("topic"), F.col("b").alias("label"), F.col("c").alias("into")
    )
    return links, merges


def _run_last(kept: RoundTables, state: State, step: Step, settings: Rounds) -> tuple[DataFrame, DataFrame]:
    """One sub-round of the last stage, or one that joins pieces before it: topics propose, nodes accept."""
    told = f"round {state.number + 1} ({step})" if step.joins else f"last stage, sub-round {len(state.last) + 1}"
    announce_step(f"{told}, {state.left:,} components left")
    seed = int(round_seed(settings.seed, state.number))
    alone = state.rows.groupBy("node").agg(F.count_if("alone").cast("int").alias("lonely"))
    nodes = alone.join(state.nodes, "node").select("node", "degree", _room(step, settings).alias("room"))
    members = state.rows.join(nodes, "node").select("topic", "node", "label", "degree", "room").repartition("topic")
    proposed = kept.keep(
        state.number + 1, "proposed", members.mapInArrow(Proposals(seed), _PROPOSED).dropDuplicates(["u", "v"])
    )
    ends = proposed.select(F.explode(F.array("u", "v")).alias("node"), "u", "v", "word").join(nodes, "node")
    turn = F.row_number().over(Window.partitionBy("node").orderBy("word", "u", "v"))
    refused = ends.select("u", "v", (turn > F.col("room")).alias("refused")).filter("refused").select("u", "v")
    links = kept.keep(
        state.number + 1, "accepted", proposed.select("u", "v").join(refused.distinct(), ["u", "v"], "left_anti")
    )
    of_u = state.rows.select(F.col("node").alias("u"), "topic", "label")
    of_v = state.rows.select(F.col("node").alias("v"), "topic", F.col("label").alias("into"))
    merges = links.join(of_u, "u").join(of_v, ["v", "topic"]).filter("label != into")
    return links, merges.select("topic", "label", "into")


def _room(step: Step, settings: Rounds) -> Any:
    """`last_room` of the rounds of one machine."""
    degree, lonely = F.col("degree"), F.col("lonely")
    cap = F.lit(UNLIMITED if step.cap is None else step.cap)
    caps = F.greatest(degree if step.joins else degree + lonely, cap - lonely if step.keeps else cap)
    if settings.most_links:
        caps = F.least(caps, F.lit(settings.most_links if step.joins else max(settings.most_links, step.cap or 0)))
    return F.greatest(caps - degree, F.lit(0)).cast("int")


def _update(
    kept: RoundTables, state: State, step: Step, links: DataFrame, merges: DataFrame, last: bool = False
) -> State:
    """The tables after these links, written as those of the next round."""
    number, none = state.number + 1, F.lit(0)
    marks = state.topics.select("topic", none.alias("label"), none.alias("into"), "pieces")
    given = merges.select("topic", "label", "into", none.alias("pieces")).unionByName(marks).repartition("topic")
    merged = kept.keep(number, "merged", given.mapInArrow(Merges(), _MERGED))
    topics = merged.filter((F.col("kind") == TOPIC) & (F.col("into") > 1))
    topics = kept.keep(number, "topics", topics.select("topic", F.col("into").alias("pieces")))
    changed = merged.filter(F.col("kind") == RELABEL).select("topic", "label", F.col("into").alias("to"))
    rows = state.rows.join(changed, ["topic", "label"], "left").filter(f"to is null or to != {CONNECTED}")
    alone = (F.col("alone") & F.col("to").isNull()).alias("alone")
    rows = kept.keep(number, "rows", rows.select("node", "topic", F.coalesce("to", "label").alias("label"), alone))
    new = kept.keep(number, "links", links)
    ends = new.select(F.explode(F.array("u", "v")).alias("node")).groupBy("node").agg(F.count("*").alias("new"))
    degree = (F.col("degree") + F.coalesce("new", none)).cast("int").alias("degree")
    nodes = kept.keep(number, "nodes", state.nodes.join(ends, "node", "left").select("node", degree))
    lonely = rows.filter("alone").groupBy("node").agg(F.count("*").alias("lonely"))
    needed = F.max(F.col("degree") + F.coalesce("lonely", none)).alias("needed")
    most = nodes.join(lonely, "node", "left").agg(F.max("degree").alias("degree"), needed).first()
    assert most is not None
    left, count = _count_left(topics), new.count()
    told = RoundFacts(step, count, state.links + count, state.left - left, left, most.degree, most.needed)
    rounds, sub_rounds = (state.rounds, (*state.last, told)) if last else ((*state.rounds, told), state.last)
    return State(rows, nodes, topics, left, told.links, rounds, sub_rounds)
