"""omen replay under the rules of a fleet."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from commands import run, run_json
from omen.maintain import MAINTAINERS

NODES = "abcdefgh"
INTERESTS = "node,topic\n" + "".join(f"{node},{topic}\n" for topic in ("x", "y") for node in NODES)
CAPS = "node,max_links,zone\n" + "".join(f"{node},{4 if node in 'ae' else 2},{'ns'[node > 'd']}\n" for node in NODES)
LINKS = "u,v,rule\nb,c,forbid\nb,d,forbid\n"
CHURN = "seq,time_s,event,node,topics\n10,1,crash,e,\n11,2,leave,a,\n12,3,join,a,\n13,4,crash,f,\n14,5,join,e,\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "interests.csv").write_text(INTERESTS)
    (folder / "nodes.csv").write_text(CAPS)
    (folder / "links.csv").write_text(LINKS)
    (folder / "zone_costs.csv").write_text("zone_u,zone_v,cost\nn,s,5\n")
    (tmp_path / "c.csv").write_text(CHURN)
    return folder


@pytest.mark.parametrize("system", MAINTAINERS)
def test_a_replay_keeps_the_rules_and_hands_them_on(system, fleet, tmp_path, capsys):
    out = tmp_path / "r"
    words = f"replay --sigma 4 --verify every --system {system} --workload"
    told = run_json(capsys, words, fleet, "--churn", tmp_path / "c.csv", "--out", out)
    assert (told["topic_connected"], told["judged"]) == (True, 5)
    assert told["fleet"] == {
        "sigma": 4.0,
        "events_above_cap": 0,
        "most_above_cap": 0,
        "above_cap": [],
        "violations": [],
    }
    assert pq.read_table(out / "replay.parquet").column("links_above_max").to_pylist() == [0] * 5
    assert run("check --workload", out, "--overlay", out) == 0
    assert "within the rules  yes" in capsys.readouterr().out.splitlines()


def test_a_cap_that_is_exceeded_is_named_with_node_and_row(fleet, tmp_path, capsys):
    (fleet / "nodes.csv").write_text("node,max_links\na,7\n" + "".join(f"{node},1\n" for node in NODES[1:]))
    (tmp_path / "c.csv").write_text(CHURN.splitlines()[0] + "\n10,1,crash,h,\n11,2,leave,a,\n12,3,join,a,\n")
    words = ("replay --verify every --workload", fleet, "--churn", tmp_path / "c.csv", "--out", tmp_path / "r")
    (fleet / "zone_costs.csv").unlink()
    (fleet / "links.csv").unlink()
    told = run_json(capsys, *words)["fleet"]
    assert told["events_above_cap"] >= 1
    assert told["most_above_cap"] == 1
    assert {one["first"] for one in told["above_cap"]} == {1}
    assert all((one["max_links"], one["most"]) == (1, 2) for one in told["above_cap"])
    above = pq.read_table(tmp_path / "r" / "replay.parquet").column("links_above_max").to_pylist()
    assert (above[0], above[1]) == (0, 4)  # six nodes in a path: the inner four
    assert above[2] < above[1]  # the hub is back: they give up what it takes over
    assert run(*words) == 0
    printed = capsys.readouterr()
    assert "by at most 1" in printed.out
    assert "had 2 links and may have 1" in printed.err
    assert "c.csv, row 2" in printed.err


def test_without_rules_nothing_is_said_of_them(fleet, tmp_path, capsys):
    for table in ("nodes", "links", "zone_costs"):
        (fleet / f"{table}.csv").unlink()
    words = ("replay --workload", fleet, "--churn", tmp_path / "c.csv", "--out", tmp_path / "r")
    assert run_json(capsys, *words)["fleet"] is None
    assert "links_above_max" not in pq.read_table(tmp_path / "r" / "replay.parquet").column_names


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--k 2", "know no rules of a fleet"),
        ("--rebalance 3", "know no rules of a fleet"),
        ("--system spidercast", "spidercast knows no rules"),
        ("--sigma 0.5", "at least 1"),
    ],
)
def test_what_knows_no_rules_is_refused_and_nothing_written(words, complaint, fleet, tmp_path, capsys):
    try:
        code = run(f"replay {words} --workload", fleet, "--churn", tmp_path / "c.csv", "--out", tmp_path / "r")
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_simulated_nodes_keep_the_rules_that_nodes_know(fleet, tmp_path, capsys):
    words = "replay --system omen --verify every --workload"
    told = run_json(capsys, words, fleet, "--churn", tmp_path / "c.csv", "--out", tmp_path / "r")
    assert told["topic_connected"]
    assert told["fleet"]["violations"] == []
    (fleet / "links.csv").write_text("u,v,rule\nb,c,require\n")
    assert run(words, fleet, "--churn", tmp_path / "c.csv", "--out", tmp_path / "r") == 2
    assert "neither require, keep nor costs of pairs" in capsys.readouterr().err
