"""Rounds on Spark against those of one machine, on 1, 2, 5 and 13 partitions: some minutes, so not a part of CI.

python -m tests.spark.rounds_everywhere
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from omen.design.rounds import Rounds, design_in_rounds
from omen.design.schedule import rho_of
from omen.pipeline.reading import WorkloadTables
from omen.pipeline.rounds import Job, design_tables
from omen.pipeline.session import SparkOptions, spark_session
from spark.instances import as_tables, random_instance
from spark.test_rounds import partitioned

CASES = [("gm", "m3,m2"), ("low-oda", "auto"), ("minmax-oda", "r4c2,m2c5"), ("low-oda", "m3u5,r2k5,jk5")]


def main() -> int:
    """Each case on each number of partitions; 1 where any overlay differs."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    differ = 0
    with spark_session(SparkOptions(master="local[2]", driver_memory="1g", quick_start=True)) as spark:
        for algorithm, schedule in CASES:
            interests, overlay = random_instance(3, text=algorithm == "minmax-oda")
            rows, nodes, _ = as_tables(spark, interests, overlay)
            settings = Rounds(rho_of(algorithm, {"rho": 3.0}), part_nodes=16, seed=5)
            expected = design_in_rounds(interests, settings, schedule).overlay.links()
            for partitions in (1, 2, 5, 13):
                with tempfile.TemporaryDirectory() as folder, partitioned(spark, partitions):
                    job = Job("w", settings, schedule, folder)
                    links, _ = design_tables(spark, WorkloadTables(rows, nodes), job)
                    same = sorted(map(tuple, links.collect())) == expected
                differ += not same
                print(
                    f"{algorithm} {schedule}, {partitions} partitions: {'the same' if same else 'DIFFERS'}", flush=True
                )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
