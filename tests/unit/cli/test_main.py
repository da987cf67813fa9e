"""The words of the command line, what it prints and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import networkx
import pytest

import omen
from commands import run, run_json
from omen.cli.main import main
from omen.systems import ALGORITHMS

SYNTH = "workload synth --nodes 60 --topics 12 --popularity zipf:1 --sizes uniform:1:6 --seed 3"
COMMANDS = (
    *("demo", "workload", "workload synth", "workload import", "design", "check", "simulate", "export", "compile"),
    *(
        "node",
        "pub",
        "sub",
        "cluster",
        "cluster up",
        "cluster start",
        "cluster kill",
        "cluster down",
        "status",
        "watch",
    ),
)


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "w"
    assert run(SYNTH, "--out", folder) == 0
    return folder


@pytest.fixture(scope="module")
def overlay(workload: Path) -> Path:
    path = workload.parent / "o.parquet"
    assert run("design --algorithm low-oda --rho 3 --workload", workload, "--out", path) == 0
    return path


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(command, "--help")
    assert ended.value.code == 0
    assert f"example:\n  omen {command}".rstrip() in capsys.readouterr().out


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"omen {omen.__version__}\n"


def test_synth_writes_a_workload_that_depends_on_the_seed_alone(
    tmp_path: Path, workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = run_json(capsys, SYNTH, "--out", tmp_path / "again")
    assert (told["nodes"], told["seed"], told["popularity"]) == (60, 3, "zipf:1")
    for file in ("interests.parquet", "nodes.parquet", "workload.json"):
        assert (tmp_path / "again" / file).read_bytes() == (workload / file).read_bytes()
    run_json(capsys, SYNTH.replace("--seed 3", "--seed 4"), "--out", tmp_path / "other")
    assert (tmp_path / "other" / "interests.parquet").read_bytes() != (workload / "interests.parquet").read_bytes()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_design_tells_what_scripts_depend_on(
    algorithm: str, workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "o.parquet"
    told = run_json(capsys, "design --workload", workload, "--algorithm", algorithm, "--out", path)
    interests = omen.read_workload(workload).interests
    links = omen.read_overlay(path, interests)
    assert told["algorithm"] == algorithm
    assert told["nodes"] == interests.node_count == 60
    assert told["topics"] == interests.topic_count
    assert told["edges"] == links.link_count
    assert told["avg_degree"] == pytest.approx(2 * links.link_count / 60)
    assert told["max_degree"] == links.degrees.max()
    assert told["topic_connected"] is omen.check_overlay(interests, links).holds
    assert told["topic_connected"] or told["k_promised"] == 0
    assert told["design_s"] >= 0
    assert links == omen.design_overlay(interests, algorithm)


def test_design_passes_options_on(workload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "design --algorithm low-oda --rho inf --workload", workload)["options"] == {"rho": "inf"}
    assert run_json(capsys, "design --algorithm harary-pt --k 4 --workload", workload)["k_promised"] == 4


@pytest.mark.parametrize("algorithm", ["gm", "low-oda", "minmax-oda"])
def test_design_in_rounds_says_so_and_repeats_by_its_schedule(
    algorithm: str, workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"design --algorithm {algorithm} --part-nodes 20 --seed 5"
    told = run_json(
        capsys, f"{command} --rounds auto --workers 1 --workload", workload, "--out", tmp_path / "a.parquet"
    )
    again = f"{command} --rounds {told['rounds']['schedule']} --workers 3 --workload"
    run_json(capsys, again, workload, "--out", tmp_path / "b.parquet")
    interests = omen.read_workload(workload).interests
    assert told["topic_connected"]
    assert sum(told["rounds"]["links"]) + told["rounds"]["last_stage_links"] == told["edges"]
    assert omen.read_overlay(tmp_path / "a.parquet", interests) == omen.read_overlay(tmp_path / "b.parquet", interests)
    assert run(f"{command} --rounds auto --workload", workload) == 0
    assert f"in rounds        {told['rounds']['schedule']}" in capsys.readouterr().out
    assert run_json(capsys, "design --algorithm gm --workload", workload)["rounds"] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--algorithm gm2 --rounds auto", "gm2 is not built in rounds"),
        ("--rounds 4", "--rounds must be auto or steps such as"),
        ("--workers 2", "--workers is for designs in rounds"),
        ("--rounds auto --seed x", "option seed must be a whole number"),
    ],
)
def test_rounds_that_make_no_sense_are_refused(
    options: str, said: str, workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"design {options} --workload", workload) == 2
    assert said in capsys.readouterr().err


def test_check_exits_0_if_it_holds_and_1_if_not(
    workload: Path, overlay: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check --workload", workload, "--overlay", overlay) == 0
    assert "topic-connected  yes" in capsys.readouterr().out
    interests = omen.read_workload(workload).interests
    empty = tmp_path / "empty.csv"
    empty.write_text("u,v\n")
    assert run("check --workload", workload, "--overlay", empty) == 1
    broken = capsys.readouterr().out
    connectable = sum(interests.subscribers_of(topic).size > 1 for topic in range(interests.topic_count))
    assert f"{connectable} of {interests.topic_count} topics do not hold" in broken
    assert f"and {connectable - 10} more" in broken


def test_check_json_names_every_broken_topic(workload: Path, overlay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = run_json(capsys, "check --diameters --workload", workload, "--overlay", overlay)
    assert held["holds"] is held["topic_connected"] is True
    assert held["broken"] == []
    assert held["max_diameter"] >= held["mean_diameter"] > 0
    asked = run_json(capsys, "check --k 3 --workload", workload, "--overlay", overlay)
    assert asked["holds"] is False
    assert asked["topic_connected"] is True
    assert asked["broken_topics"] == len(asked["broken"]) > 0
    assert {"topic", "subscribers", "components", "connectivity"} <= asked["broken"][0].keys()


def test_exports_are_read_back_by_networkx_as_the_same_graph(workload: Path, overlay: Path, tmp_path: Path) -> None:
    interests = omen.read_workload(workload).interests
    graph = omen.read_overlay(overlay, interests).to_networkx()
    for form in ("graphml", "json", "dot"):
        path = tmp_path / f"overlay.{form}"
        assert run("export --workload", workload, "--overlay", overlay, "--format", form, "--out", path) == 0
    read = networkx.read_graphml(tmp_path / "overlay.graphml", node_type=int)
    assert networkx.utils.graphs_equal(networkx.Graph(read.edges), networkx.Graph(graph.edges))
    assert dict(read.nodes(data="degree")) == dict(graph.degree)
    linked = networkx.node_link_graph(json.loads((tmp_path / "overlay.json").read_text()), edges="links")
    assert set(linked.nodes) == set(graph.nodes)
    assert {frozenset(edge) for edge in linked.edges} == {frozenset(edge) for edge in graph.edges}
    assert (tmp_path / "overlay.dot").read_text().count(" -- ") == graph.number_of_edges()


def test_exports_to_standard_output_hold_any_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ['a"b', "a\\b", "<&>", "ä,b", " "]
    interests = omen.Interests.from_pairs([(label, "tea") for label in labels])
    omen.write_workload(tmp_path / "w", interests, {})
    omen.write_overlay(tmp_path / "o.parquet", omen.design_overlay(interests, "ring-pt"))
    words = f"export --workload {tmp_path}/w --overlay {tmp_path}/o.parquet --format"
    assert run(words, "graphml") == 0
    xml = ElementTree.fromstring(capsys.readouterr().out)
    assert {node.get("id") for node in xml.iter("{http://graphml.graphdrawing.org/xmlns}node")} == set(labels)
    assert run(words, "json") == 0
    assert {node["id"] for node in json.loads(capsys.readouterr().out)["nodes"]} == set(labels)
    assert run(words, "dot") == 0
    assert '"a\\"b"' in capsys.readouterr().out


def test_import_keeps_good_rows_and_counts_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "subscriptions.csv"
    table.write_text("who,what,when\nann,tea,1\nbob,tea,2\nbob,tea,3\n,tea,4\ncid\n")
    words = "workload import --node-column who --topic-column what --table"
    told = run_json(capsys, words, table, "--out", tmp_path / "w")
    assert (told["rows"], told["duplicates"], told["rejected"]) == (5, 1, 2)
    assert sum(told["rejected_by_reason"].values()) == 2
    assert omen.read_workload(tmp_path / "w").interests.pairs() == [("ann", "tea"), ("bob", "tea")]
    assert (tmp_path / "w" / "rejected.parquet").exists()
    assert run(words, table, "--max-rejected", 1, "--out", tmp_path / "strict") == 2
    assert "--max-rejected" in capsys.readouterr().err
    assert not (tmp_path / "strict").exists()
    assert run(words, table, "--max-rejected", 2, "--out", tmp_path / "lenient") == 0


def test_import_reads_adjacency_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines.txt").write_text("2 10 11\n0\n1 10\n")
    told = run_json(
        capsys, "workload import --format adjacency --table", tmp_path / "lines.txt", "--out", tmp_path / "w"
    )
    assert (told["nodes"], told["topics"], told["subscriptions"]) == (3, 2, 3)


def test_demo_ends_well_and_keeps_what_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo --no-live --out", tmp_path / "demo") == 0
    story = capsys.readouterr().out
    for word in ("gm", "low-oda", "gm2", "a ring per topic", "a mesh of 6 per topic", str(tmp_path / "demo")):
        assert word in story
    command = next(line.split() for line in story.splitlines() if line.startswith("  omen check"))
    assert main(command[1:]) == 0
    capsys.readouterr()
    told = run_json(capsys, "demo --no-live --out", tmp_path / "demo")
    mesh = told["per_topic"][1]
    assert all(design["topic_connected"] and design["avg_degree"] < mesh["avg_degree"] for design in told["designs"])
    assert told["designs"][2]["survives_a_crash"]


def test_the_same_command_prints_and_writes_the_same_whatever_the_hash_seed(workload: Path, tmp_path: Path) -> None:
    written = set()
    for seed in ("0", "1"):
        path = tmp_path / f"{seed}.parquet"
        words = ["-m", "omen.cli", "design", "--workload", str(workload), "--out", str(path)]
        subprocess.run([sys.executable, *words], check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        written.add(path.read_bytes())
    assert len(written) == 1


def test_a_reader_that_leaves_early_is_no_error(workload: Path, overlay: Path) -> None:
    words = f"-m omen.cli export --workload {workload} --overlay {overlay} --format json"
    command = f"{sys.executable} {words} | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize(
    "words", ["design --rro 3 --workload w", "workload synth --nodes 3 --topics 2 --sizes 1 --sede 2 --out w"]
)
def test_an_unknown_option_points_to_the_help_of_its_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(words)
    assert ended.value.code == 2
    command = " ".join(word for word in words.split()[:2] if word.isalpha())
    said = capsys.readouterr().err
    assert said.startswith(f"omen {command}: unrecognized arguments: --")
    assert f"(omen {command} --help shows what it takes)" in said
