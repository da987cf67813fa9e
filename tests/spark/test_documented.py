"""The commands of the documentation that start Spark, in the session of the tests, on smaller inputs."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from documented import PAGES, commands
from omen.cli.main import main

pytestmark = pytest.mark.spark

SMALLER = {
    "--nodes 5000000 --topics 100000": "--nodes 200 --topics 40 --engine local",
    "--undirected --nodes 1000": "--undirected --nodes 60",
    "--seeds 2000000..2099999": "--seeds 2000000..2000001",
}
SYNTH = "workload synth --nodes 60 --topics 8 --sizes 3 --seed 7"


READ = ("--workload", "--overlay", "--edges", "--machine-events")
WRITTEN = ("--out", "--figure", "--table", "--tables", "--keep")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Where the commands are run: a social graph, a cluster's machines, and a workload for pages that have one."""
    with gzip.open(tmp_path / "facebook_combined.txt.gz", "wt") as edges:
        edges.writelines(f"{user} {(user + step) % 200}\n" for user in range(200) for step in (1, 7, 31))
    with gzip.open(tmp_path / "machine_events.csv.gz", "wt") as machines:
        machines.writelines(f"0,{machine},0,p,0.5,0.25\n" for machine in range(80))
        machines.writelines(f"{machine}000000,{machine},1,p,,\n" for machine in range(1, 80, 3))
        machines.writelines(f"{machine}900000000,{machine},0,p,0.5,0.25\n" for machine in range(1, 80, 3))
    assert main([*SYNTH.split(), "--out", str(tmp_path / "w")]) == 0
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(one.starts_spark and not one.is_usage for one in commands(page))]
)
def test_the_commands_of_a_page_do_what_they_say(
    spark: SparkSession, page: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [one for one in commands(page) if one.text.startswith("omen ") and not one.is_usage]
    whole = page in ("docs/evaluation.md", "docs/pipeline.md")
    for command in (one for one in told if whole or one.starts_spark):
        text = command.text
        for large, small in SMALLER.items():
            text = text.replace(large, small)
        words = shlex.split(text, comments=True)[1:]
        for place, option in enumerate(words[:-1]):
            if option in (*READ, *WRITTEN):  # Spark was started elsewhere
                words[place + 1] = str(desk / words[place + 1])
        capsys.readouterr()
        assert main(words) == 0, f"{command}\n{capsys.readouterr().err}"
        for option in WRITTEN:
            if option in words:
                assert Path(words[words.index(option) + 1]).exists(), command
