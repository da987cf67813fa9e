"""omen design and omen check under the rules of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json

INTERESTS = "node,topic\n" + "".join(f"{node},{topic}\n" for topic in ("x", "y") for node in "abcd")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "interests.csv").write_text(INTERESTS)
    (folder / "nodes.csv").write_text("node,max_links,zone\na,1,n\nb,,n\nc,,s\nd,2,s\n")
    return folder


def test_rules_of_the_folder_are_kept(fleet, capsys):
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\na,d,require\n")
    (fleet / "zone_costs.csv").write_text("zone_u,zone_v,cost\nn,s,5\n")
    out = fleet.parent / "o.csv"
    told = run_json(capsys, "design --sigma 4 --workload", fleet, "--out", out)
    assert told["topic_connected"]
    assert told["fleet"] == {
        "sigma": 4.0,
        "cost": 11.0,
        "links_between_zones": 2,
        "within_rules": True,
        "violations": [],
        "split_topics": [],
        "cut_topics": [],
        "certificates": [],
        "enough": None,
    }
    assert out.read_text().split()[1:] == ['"a","d"', '"b","c"', '"c","d"']
    assert run("check --workload", fleet, "--overlay", out) == 0
    assert "within the rules  yes" in capsys.readouterr().out.splitlines()


def test_tables_may_be_named_one_by_one(fleet, capsys):
    (fleet.parent / "l.csv").write_text("u,v,rule\na,b,forbid\na,c,forbid\n")
    table = fleet / "interests.csv"
    told = run_json(
        capsys, "design --workload", table, "--nodes", fleet / "nodes.csv", "--links", fleet.parent / "l.csv"
    )
    assert told["topic_connected"]
    assert told["max_degree"] <= 2


def test_an_infeasible_fleet_is_answered(fleet, capsys):
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\na,c,forbid\na,d,forbid\n")
    out = fleet.parent / "o.csv"
    assert run("design --workload", fleet, "--out", out) == 1
    printed = capsys.readouterr().out
    assert "The rules leave 2 topics split: x, y" in printed
    assert "topic x: links between a and the other 3 subscribers are all forbidden" in printed
    assert "Enough would be, all of it together:\n  allow a link between a and c\n" in printed
    assert not out.exists()
    assert run("design --best-effort --workload", fleet, "--out", out) == 1
    assert out.exists()
    assert run("check --workload", fleet, "--overlay", out) == 1


def test_a_design_for_one_loss_keeps_the_rules(fleet, capsys):
    (fleet / "nodes.csv").write_text("node,max_links,zone\na,2,n\nb,,n\nc,,s\nd,2,s\n")
    (fleet / "links.csv").write_text("u,v,rule\na,d,forbid\n")
    out = fleet.parent / "o.csv"
    told = run_json(capsys, "design --algorithm low-oda-2 --workload", fleet, "--out", out)
    assert (told["fleet"]["within_rules"], told["fleet"]["cut_topics"], told["k_promised"]) == (True, [], 2)
    assert out.read_text().split()[1:] == ['"a","b"', '"a","c"', '"b","d"', '"c","d"']
    assert run("check --k 2 --workload", fleet, "--overlay", out) == 0


def test_rules_that_allow_no_loss_are_answered(fleet, capsys):
    out = fleet.parent / "o.csv"
    assert run("design --algorithm low-oda-2 --workload", fleet, "--out", out) == 1
    printed = capsys.readouterr().out
    assert "topic-connected   yes" in printed
    assert "The rules leave 2 topics that a single loss would split: x, y" in printed
    assert "Enough would be, all of it together:\n  raise max_links of node a from 1 to 2\n" in printed
    assert not out.exists()
    assert run("design --best-effort --algorithm low-oda-2 --workload", fleet, "--out", out) == 1
    assert out.exists()


def test_caps_of_zero_are_answered(fleet, capsys):
    (fleet / "nodes.csv").write_text("node,max_links\na,0\nb,0\nc,0\nd,0\n")
    told = run_json(capsys, "design --workload", fleet)
    assert told["edges"] == 0
    assert {proof["kind"] for proof in told["fleet"]["certificates"]} == {"NodeShort", "TopicsShort"}
    assert sorted(cap for _, _, cap in told["fleet"]["enough"]["caps"]) == [1, 1, 2, 2]


def test_required_links_above_a_cap_are_answered(fleet, capsys):
    (fleet / "links.csv").write_text("u,v,rule\na,b,require\na,c,keep\n")
    assert run("design --workload", fleet) == 1
    assert "node a may have 1 links, but 2 are required or kept" in capsys.readouterr().out


def test_check_names_what_is_not_within_the_rules(fleet, capsys):
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\nc,d,require\n")
    (fleet / "o.csv").write_text("u,v\na,b\na,c\na,d\n")
    told = run_json(capsys, "check --workload", fleet, "--overlay", fleet / "o.csv")
    assert told["holds"]
    assert told["violations"] == [
        "node a has 3 links and may have 1",
        "the link between a and b is forbidden",
        "the link between c and d is missing",
    ]
    assert run("check --workload", fleet, "--overlay", fleet / "o.csv") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "--algorithm cd-oda",
            "cd-oda knows no rules of a fleet and no --from: gm, low-oda, minmax-oda, low-oda-2 know rules",
        ),
        ("--rounds auto", "designs in rounds know no rules"),
        ("--sigma 3", "--sigma is for links of different costs"),
        ("--sigma 0.5", "must be a number, at least 1, or inf"),
        ("--links nowhere.csv", "nowhere.csv: no such file or folder"),
    ],
)
def test_what_makes_no_sense_is_refused(fleet, capsys, words, complaint):
    try:
        assert run(f"design {words} --workload", fleet) == 2
    except SystemExit as error:
        assert error.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("command", ["design --algorithm ring-pt", "check --overlay o.csv"])
def test_jobs_on_spark_refuse_rules(fleet, capsys, command):
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\n")
    assert run(f"{command} --engine spark --workload", fleet) == 2
    assert "has rules of a fleet, which Spark does not know" in capsys.readouterr().err


def test_a_repair_keeps_the_rules(fleet, capsys):
    (fleet / "nodes.csv").write_text("node,max_links\na,1\nb,2\nc,3\nd,1\n")
    (fleet / "o.csv").write_text("u,v\na,c\nb,c\nc,d\n")
    told = run_json(capsys, "mend --leave c --workload", fleet, "--overlay", fleet / "o.csv")
    assert (told["make"], told["violations"]) == ([["a", "b"], ["b", "d"]], [])
    assert told["drop"] == [["a", "c"], ["b", "c"], ["c", "d"]]
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\n")
    told = run_json(capsys, "mend --leave c --workload", fleet, "--overlay", fleet / "o.csv")
    assert told["make"] == [["a", "d"], ["b", "d"]]
    assert told["violations"] == ["node d has 2 links and may have 1"]


def test_a_repair_exceeds_caps_by_as_little_as_will_do_and_says_so(fleet, capsys):
    (fleet / "nodes.csv").write_text("node,max_links\na,1\nb,1\nc,3\nd,1\n")
    (fleet / "o.csv").write_text("u,v\na,c\nb,c\nc,d\n")
    told = run_json(capsys, "mend --leave c --workload", fleet, "--overlay", fleet / "o.csv")
    assert told["topic_connected"]
    assert len(told["violations"]) == 1
    assert "has 2 links and may have 1" in told["violations"][0]
    assert run("mend --leave c --workload", fleet, "--overlay", fleet / "o.csv") == 0
    assert "not within the rules: node" in capsys.readouterr().err


def test_a_repair_that_bans_make_impossible_ends(fleet, capsys):
    (fleet / "links.csv").write_text("u,v,rule\na,b,forbid\na,d,forbid\n")
    (fleet / "o.csv").write_text("u,v\na,c\nb,c\nc,d\n")
    assert run("mend --leave c --workload", fleet, "--overlay", fleet / "o.csv") == 1
    assert "topic-connected  no" in capsys.readouterr().out


def test_a_design_for_one_loss_begins_with_no_overlay(fleet, capsys):
    (fleet / "o.csv").write_text("u,v\na,b\n")
    assert run("design --algorithm low-oda-2 --workload", fleet, "--from", fleet / "o.csv") == 2
    assert "low-oda-2 knows no --from: gm, low-oda, minmax-oda do" in capsys.readouterr().err
