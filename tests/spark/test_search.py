"""What Spark does in a search: the same worlds come to the same, and what dies takes only its own world with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omen.cli.main import main
from omen.pipeline import search as engine
from omen.pipeline.session import SparkOptions
from omen.sim.reading import parse_scenario
from omen.sim.search import KILLED, Search, World, run_scenario_once, run_worlds

pytestmark = pytest.mark.spark

SEEDS = range(900_000, 900_008)


def timeless(worlds: list[World]) -> list[World]:
    """In order of seeds, without how long they took."""
    return sorted((replace(world, seconds=0) for world in worlds), key=lambda world: world.seed)


def on_spark(search: Search, folder: Path) -> engine.SparkSearch:
    return engine.SparkSearch(search, SparkOptions(), folder)


def test_worlds_on_spark_come_to_what_they_come_to_here(spark: SparkSession, tmp_path: Path) -> None:
    search = Search("plain")
    alone = list(run_worlds(search, SEEDS))
    assert timeless(list(run_worlds(search, SEEDS, run=on_spark(search, tmp_path).run))) == timeless(alone)


def test_a_search_that_was_stopped_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, keep = Search("plain"), tmp_path / "kept.jsonl"
    first = run_worlds(search, SEEDS, keep=keep, run=on_spark(search, tmp_path).run)
    begun = [next(first) for _ in range(3)]
    first.close()  # as a kill does: what was told is kept
    asked: list[int] = []
    run_on_spark = engine.run_on_spark

    def note(session: SparkSession, looked_for: Search, seeds: list[int]) -> list[engine.Found]:
        asked.extend(seeds)
        return run_on_spark(session, looked_for, seeds)

    monkeypatch.setattr(engine, "run_on_spark", note)
    both = list(run_worlds(search, SEEDS, keep=keep, run=on_spark(search, tmp_path).run))
    assert sorted(world.seed for world in both) == list(SEEDS)
    assert sorted(asked) == sorted(set(SEEDS) - {world.seed for world in begun})
    assert len(keep.read_text().splitlines()) == len(SEEDS)


def test_what_fails_is_shrunk_in_its_task_and_written_down(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--search", "--worlds", "plain", "--without", "former_neighbours_report", "--stop", "--json"]
    code = main([*words, "--seeds", "40..59", "--engine", "spark", "--failures", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert code == 1
    [shrunk] = found["shrunk"]
    [path] = tmp_path.glob("*.toml")
    seed = int(shrunk["replay"].split("--seed ")[1].split()[0])
    assert not run_scenario_once(parse_scenario(path.read_text()), seed).went_well


def test_a_task_that_dies_costs_only_the_world_that_killed_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deadly(engine._SeedsRunner):
        def __call__(self, batches):  # type: ignore[no-untyped-def]
            if SEEDS[1] in self.seeds:
                raise SystemExit("the worker is gone")
            yield from super().__call__(batches)

    monkeypatch.setattr(engine, "_SeedsRunner", Deadly)
    found = engine.run_on_spark(spark, Search("plain"), SEEDS[:3])
    assert [one.world.raised for one in found] == ["", KILLED, ""]


def test_options_of_spark_without_spark_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--search", "--master", "local[2]"]) == 2
    assert "--master: only with --engine spark" in capsys.readouterr().err
    assert main(["simulate", "--search", "--engine", "spark", "--workers", "2"]) == 2
    assert "--workers" in capsys.readouterr().err
