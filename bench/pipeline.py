"""How fast the pipeline is, and how it grows: python bench/pipeline.py --json FILE [--scale 0.01] [--only synth].

Each job runs at a few sizes; the largest is the one a target is set for. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from measure import machine_facts
from omen.pipeline.evaluate import distinct_links, evaluate_degrees, evaluate_topics, summarise
from omen.pipeline.folders import write_folder
from omen.pipeline.ingest import ingest_edges
from omen.pipeline.per_topic import design_per_topic
from omen.pipeline.session import SparkOptions, spark_session
from omen.pipeline.social import edges_among, sample_users
from omen.pipeline.synth import Synthesis, synthesise_nodes, synthesise_rows
from omen.workloads import Popularity, Sizes

SHARES = (0.1, 0.3, 1.0)  # of the full size
WARM_UP = 0.02  # run first and not told: the JVM compiles what it runs often while it runs it
TOPICS_A_GROUP = 5
GROUPS_A_NODE = 4


@dataclass(frozen=True)
class Measurement:
    """One run: `size` counts what the rate is in."""

    job: str
    size: int
    unit: str
    clock: Clock
    target: str
    details: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "size": self.size,
            "unit": self.unit,
            "seconds": self.clock.seconds,
            "rate": self.size / self.clock.seconds,
            "target": self.target,
            "details": {"processor s": round(self.clock.processor_s, 1), **self.details},
        }


class Clock:
    """What the measured block took, without what prepares it: seconds, and processor seconds of all processes below."""

    seconds = 0.0
    processor_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        started, spent = time.perf_counter(), processor_seconds()
        yield
        self.seconds += time.perf_counter() - started
        self.processor_s += processor_seconds() - spent


def synth(spark: SparkSession, folder: Path, share: float) -> Measurement:
    """Rows drawn and written as Parquet."""
    nodes = int(5_000_000 * share)
    asked = Synthesis(nodes, 100_000, Popularity.parse("zipf:1"), Sizes.parse("20"), 7)
    clock = Clock()
    with clock.running():
        write_folder(synthesise_rows(spark, asked), str(folder / "rows"), ())
    rows = spark.read.parquet(str(folder / "rows")).count()
    return Measurement("synth", rows, "rows", clock, "3 M rows/s", {"nodes": nodes, "topics": 100_000})


def ingest(spark: SparkSession, folder: Path, share: float) -> Measurement:
    """Lines of text parsed, validated, merged where equal, and written as Parquet."""
    asked = Synthesis(int(1_000_000 * share), 1_000_000, Popularity.parse("zipf:0.8"), Sizes.parse("20"), 7)
    rows = synthesise_rows(spark, asked).filter("node <> topic")
    rows.select(F.concat_ws("\t", "node", "topic")).write.text(str(folder / "text"))
    lines = spark.read.text(str(folder / "text")).count()
    clock = Clock()
    with clock.running():
        read = ingest_edges(spark, str(folder / "text"))
        write_folder(read.pairs, str(folder / "edges"), ())
        read.release()
    return Measurement("ingest", lines, "lines", clock, "1 M rows/s", {"kept": read.counts.kept})


def sample(spark: SparkSession, folder: Path, share: float) -> Measurement:
    """Users reached breadth first in a follower graph of 20 edges a user, and all edges among them."""
    users = int(5_000_000 * share)
    asked = Synthesis(users, users, Popularity.parse("zipf:0.8"), Sizes.parse("20"), 7)
    graph = synthesise_rows(spark, asked).filter("node <> topic").toDF("source", "target")
    write_folder(graph, str(folder / "graph"), ())
    edges = spark.read.parquet(str(folder / "graph"))
    wanted = users // 5
    clock = Clock()
    with clock.running():
        write_folder(edges_among(edges, sample_users(edges, wanted, seed=7)), str(folder / "sample"), ())
    kept = spark.read.parquet(str(folder / "sample")).count()
    details = {"users": users, "users sampled": wanted, "edges among them": kept}
    return Measurement("sample", edges.count(), "edges", clock, "at most 180 s, driver at most 4 GB", details)


def evaluate(spark: SparkSession, folder: Path, share: float) -> Measurement:
    """Components of every topic and degree of every node, for a topic-connected overlay.

    A node wants 4 groups of 5 topics. The links are a ring through each group, which serves its 5 topics, and a quarter
    of another ring through it: 4 M and 1 M of them at full size.
    """
    nodes = int(1_000_000 * share)
    groups_asked = Synthesis(
        nodes, max(nodes // 20, 20), Popularity.parse("zipf:0.5"), Sizes.parse(str(GROUPS_A_NODE)), 7
    )
    groups = synthesise_rows(spark, groups_asked)
    topics = F.explode(
        F.sequence(F.col("topic") * TOPICS_A_GROUP, F.col("topic") * TOPICS_A_GROUP + TOPICS_A_GROUP - 1)
    )
    groups.select("node", topics.alias("topic")).write.parquet(str(folder / "interests"))
    rings = design_per_topic(groups, "ring-pt").union(
        design_per_topic(groups, "cycle-pt").filter(F.pmod(F.xxhash64("u", "v"), F.lit(4)) == 0)
    )
    rings.dropDuplicates().write.parquet(str(folder / "overlay"))
    interests, overlay = (spark.read.parquet(str(folder / name)) for name in ("interests", "overlay"))
    clock = Clock()
    with clock.running():
        links = distinct_links(overlay)
        evaluate_topics(interests, links).write.parquet(str(folder / "topics"))
        evaluate_degrees(synthesise_nodes(spark, groups_asked), links).write.parquet(str(folder / "degrees"))
        found = summarise(spark.read.parquet(str(folder / "topics")), spark.read.parquet(str(folder / "degrees")))
    assert found.topic_connected
    shared = spark.read.parquet(str(folder / "topics")).agg(F.sum("links")).first()
    details = {
        "nodes": nodes,
        "topics": found.topics,
        "links": found.edges,
        "links over topics": shared[0] if shared else 0,
    }
    return Measurement("evaluate", found.subscriptions, "subscriptions", clock, "at most 240 s", details)


JOBS: dict[str, Callable[[SparkSession, Path, float], Measurement]] = {
    "synth": synth,
    "ingest": ingest,
    "sample": sample,
    "evaluate": evaluate,
}


def measure(name: str, scale: float) -> Iterator[Measurement]:
    """One job at all sizes, in one session; each in a folder of its own that is removed after it."""
    with spark_session(SparkOptions(driver_memory="3g")) as spark:
        for share in (WARM_UP, *SHARES):
            folder = Path(tempfile.mkdtemp(prefix="omen-bench-"))
            try:
                found = JOBS[name](spark, folder, share * scale)
                found.details["driver peak MB"] = driver_peak_mb()
                if share != WARM_UP:
                    yield found
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def measure_apart(name: str, scale: float) -> list[dict[str, Any]]:
    """The same in a process of its own, so that the memory of its driver is its own too."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--only", name, "--scale", str(scale), "--json", f"{folder}/found.json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found: list[dict[str, Any]] = json.loads(Path(folder, "found.json").read_text())["results"]
        return found


def driver_peak_mb() -> int | None:
    """The most memory the driver's JVM has had so far, where the system says."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if facts.get("Name", "").strip() == "java" and int(facts["PPid"]) == os.getpid():
            return int(facts["VmHWM"].split()[0]) // 1024
    return None


def processor_seconds() -> float:
    """Of this process and all below it: what a job costs, whoever else is on the machine. 0 where nothing tells."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        process = int(stat.parent.name)
        parents[process], spent[process] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    for _ in range(8):  # generations
        ours |= {process for process, parent in parents.items() if parent in ours}
    return sum(spent.get(process, 0.0) for process in ours)


def as_markdown(found: list[dict[str, Any]]) -> str:
    lines = ["| job | size | seconds | per second | target (full size) | |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for one in found:
        details = ", ".join(f"{name} {value:,}" for name, value in one["details"].items() if value is not None)
        size = f"{one['size']:,} {one['unit']}"
        lines.append(
            f"| {one['job']} | {size} | {one['seconds']:.1f} | {one['rate']:,.0f} | {one['target']} | {details} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the pipeline on Spark.")
    parser.add_argument("--json", metavar="FILE", help="where to write the results as JSON")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the size the targets are set for (1)")
    parser.add_argument("--only", choices=tuple(JOBS), help="this job alone")
    arguments = parser.parse_args()
    before = machine_facts()
    found: list[dict[str, Any]] = []
    if arguments.only:
        for one in measure(arguments.only, arguments.scale):
            found.append(one.as_dict())
            took = f"{one.clock.seconds:.1f} s ({one.clock.processor_s:.1f} processor s)"
            print(f"{one.job}: {one.size:,} {one.unit} in {took}", file=sys.stderr, flush=True)
    else:
        for name in JOBS:
            found += measure_apart(name, arguments.scale)
    if arguments.json:
        facts = {**before, "load_average_after": machine_facts()["load_average"]}
        Path(arguments.json).write_text(json.dumps({"machine": facts, "results": found}, indent=1) + "\n")
    print(as_markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
