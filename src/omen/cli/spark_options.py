"""The options of every command that can run on Spark."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from omen.cli.arguments import at_least

if TYPE_CHECKING:
    from omen.pipeline.session import SparkOptions


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", metavar="URL", help="cluster to run on (what is configured, else this machine)")
    group.add_argument("--remote", metavar="URL", help="Spark Connect server to run on, as in sc://host")
    group.add_argument("--driver-memory", metavar="SIZE", help="memory of the driver, as in 4g")
    group.add_argument("--partitions", metavar="P", type=at_least(1), help="parts in which tables are shuffled")


def asked_engine(arguments: argparse.Namespace) -> str:
    """The engine that was asked for. Where a cluster is named, or spark-submit runs the command, it is Spark."""
    from omen.pipeline.session import under_spark_submit

    names_cluster = arguments.master is not None or arguments.remote is not None or under_spark_submit()
    return "spark" if arguments.engine == "auto" and names_cluster else str(arguments.engine)


def require_cluster(arguments: argparse.Namespace) -> None:
    """Refuse a cluster at which nothing listens at once: what a command loads, or compiles, before it asks for a
    session may take longer than one waits for an answer.
    """
    from omen.pipeline.reaching import require_reachable

    is_one = not (arguments.remote and arguments.master)  # of both the session says that they exclude each other
    if is_one and getattr(arguments, "engine", "spark") in ("auto", "spark"):
        require_reachable(arguments.remote or arguments.master or "")


def spark_options(arguments: argparse.Namespace) -> SparkOptions:
    from omen.pipeline.session import SparkOptions

    return SparkOptions(
        master=arguments.master,
        remote=arguments.remote,
        driver_memory=arguments.driver_memory,
        partitions=arguments.partitions,
    )
