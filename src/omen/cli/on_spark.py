"""What `check`, `design` and `workload synth` do where they run on Spark: the same results, for any size."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.cli.output import say
from omen.cli.spark_options import spark_options
from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.design import Algorithm
    from omen.pipeline.evaluate import Evaluation
    from omen.quality import Check


PER_TOPIC = ("ring-pt", "cycle-pt", "harary-pt")
IMPORT_FROM_BYTES = 500_000_000


def check_overlay(arguments: argparse.Namespace) -> tuple[Check, dict[str, Any]]:
    """The verdict and what `check --json` prints. The first broken topics are listed, all are counted."""
    from omen.pipeline.session import spark_session
    from omen.quality import Check

    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.evaluate import EXACT_UP_TO, evaluate_overlay

        if arguments.diameters:
            say(f"diameters are exact for topics of up to {EXACT_UP_TO:,} subscribers, and bounded above")
        found = evaluate_overlay(
            spark, arguments.workload, arguments.overlay, arguments.k, arguments.diameters, arguments.tables
        )
    verdict = Check(found.k, found.holds, found.topic_connected, found.topics, found.failing)
    return verdict, _as_result(found)


def design_overlay(arguments: argparse.Namespace, algorithm: Algorithm, options: Mapping[str, Any]) -> dict[str, Any]:
    """Builds the overlay into the folder `--out`, judges it, and returns what `design --json` prints."""
    from omen.pipeline.session import spark_session

    if algorithm.name not in PER_TOPIC:
        raise InvalidInput(
            f"{algorithm.name} is not built on Spark: {', '.join(PER_TOPIC)} are, the rest on one machine"
        )
    if not arguments.out:
        raise InvalidInput("--engine spark needs --out: a folder for the links")
    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.evaluate import evaluate_overlay
        from omen.pipeline.folders import write_folder
        from omen.pipeline.per_topic import design_per_topic
        from omen.pipeline.progress import announce_step
        from omen.pipeline.reading import read_workload_tables

        tables = read_workload_tables(spark, arguments.workload)
        announce_step(f"designing with {algorithm.name}")
        links = design_per_topic(tables.interests, algorithm.name, options)
        started = time.perf_counter()
        write_folder(links, arguments.out, ("u", "v"))
        seconds = time.perf_counter() - started
        found = evaluate_overlay(spark, arguments.workload, arguments.out)
    return {
        "algorithm": algorithm.name,
        "options": dict(options),
        "nodes": found.nodes,
        "topics": found.topics,
        "edges": found.edges,
        "avg_degree": found.avg_degree,
        "max_degree": found.max_degree,
        "topic_connected": found.topic_connected,
        "k_promised": algorithm.promise(options),
        "design_s": seconds,
        "out": arguments.out,
    }


def synthesise(arguments: argparse.Namespace, info: dict[str, Any]) -> dict[str, int] | None:
    """Writes the workload and returns its counts; None where it is so small that one machine does better."""
    from omen.pipeline.synth import SPARK_FROM_ROWS, Synthesis, synthesise_workload
    from omen.workloads import Popularity, Sizes
    from omen.workloads.synthetic import check_synthesis

    popularity, sizes = Popularity.parse(arguments.popularity), Sizes.parse(arguments.sizes)
    asked = Synthesis(arguments.nodes, arguments.topics, popularity, sizes, arguments.seed)
    check_synthesis(asked.nodes, asked.topics, sizes, asked.seed)
    if not _wants_spark(arguments.engine, asked.expected_rows >= SPARK_FROM_ROWS):
        return None
    from omen.pipeline.session import spark_session

    with spark_session(spark_options(arguments)) as spark:
        return synthesise_workload(spark, asked, arguments.out, info)


def import_table(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Writes the workload and returns what `workload import --json` prints; None where one machine does better."""
    from omen.pipeline.session import spark_session

    if not _wants_spark(arguments.engine, _bytes_of(arguments.table) >= IMPORT_FROM_BYTES):
        return None

    with spark_session(spark_options(arguments)) as spark:
        from omen.pipeline.importing import import_workload

        return import_workload(
            spark,
            arguments.table,
            arguments.out,
            arguments.format,
            arguments.node_column,
            arguments.topic_column,
            arguments.max_rejected,
        )


def _wants_spark(engine: str, large: bool) -> bool:
    """Whether to start Spark: as told, or by itself where it pays and is installed."""
    return engine == "spark" or (engine == "auto" and large and find_spec("pyspark") is not None)


def _bytes_of(path: str) -> float:
    if "://" in path:
        return inf
    files = Path(path).rglob("*") if Path(path).is_dir() else [Path(path)]
    return sum(file.stat().st_size for file in files if file.is_file())


def _as_result(found: Evaluation) -> dict[str, Any]:
    result: dict[str, Any] = {
        "holds": found.holds,
        "k": found.k,
        "topic_connected": found.topic_connected,
        "nodes": found.nodes,
        "topics": found.topics,
        "edges": found.edges,
        "avg_degree": found.avg_degree,
        "max_degree": found.max_degree,
        "degree_histogram": found.degree_histogram,
        "broken_topics": found.failing_topics,
        "broken": [asdict(topic) for topic in found.failing],
    }
    if found.mean_diameter is not None and found.max_diameter is not None:
        result |= {"mean_diameter": found.mean_diameter[1], "max_diameter": found.max_diameter[1]}
        if found.bounded_topics:
            result |= {
                "mean_diameter_low": found.mean_diameter[0],
                "max_diameter_low": found.max_diameter[0],
                "bounded_topics": found.bounded_topics,
            }
    return result
