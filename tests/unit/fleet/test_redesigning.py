"""A better overlay by few changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run, run_json
from omen.fleet import FleetDesign, find_violations
from omen.fleet.redesigning import count_changes, redesign
from omen.quality import check_overlay
from omen.rules import FleetRules, LinkRule, PairRule, no_rules
from omen.systems import design_overlay
from reference.instances import random_interests

INTERESTS = random_interests(60, 15, 2, 5, 0.5, seed=5)


def test_more_changes_lower_the_maximum_degree_and_bounds_are_kept():
    start = design_overlay(INTERESTS, "gm")
    rules = no_rules(INTERESTS.nodes)
    degrees = []
    for changes in (0, 6, 20, None):
        found = redesign(INTERESTS, rules, FleetDesign(3.0), start, changes)
        assert check_overlay(INTERESTS, found.overlay).topic_connected
        assert count_changes(start, found.overlay) == found.changes
        assert changes is None or found.changes <= changes
        assert found.curve[0].max_degree == start.degrees.max()
        degrees.append(int(found.overlay.degrees.max()))
    assert degrees[0] == start.degrees.max()
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[0] > degrees[1] > degrees[-1]


def test_what_rules_need_is_changed_first():
    start = design_overlay(INTERESTS, "low-oda")
    (u, v), (x, y) = (
        start.links()[0],
        next((x, y) for x in range(60) for y in range(x + 1, 60) if (x, y) not in start.links()),
    )
    links = [LinkRule(u, v, PairRule.FORBID), LinkRule(x, y, PairRule.REQUIRE)]
    rules = FleetRules.from_labels(INTERESTS.nodes, links=links)
    found = redesign(INTERESTS, rules, FleetDesign(3.0), start, changes=0)
    assert not find_violations(found.overlay, rules)
    assert check_overlay(INTERESTS, found.overlay).topic_connected
    assert 2 <= found.changes <= 6


def test_the_command_prints_the_curve(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("w.csv").write_text("node,topic\n" + "".join(f"{node},x\n" for node in "abcdef"))
    Path("star.csv").write_text("u,v\n" + "".join(f"a,{node}\n" for node in "bcdef"))
    told = run_json(capsys, "design --workload w.csv --from star.csv --changes 4 --out o.csv")
    assert told["from"]["changes"] == 4
    assert [point["max_degree"] for point in told["from"]["curve"]] == [5, 4, 3]
    assert told["topic_connected"]
    assert run("design --workload w.csv --from star.csv") == 0
    printed = capsys.readouterr().out
    assert "changes  maximum degree  links" in printed
    assert run("check --workload w.csv --overlay o.csv") == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--changes 3", "--changes is for --from"),
        ("--from o.csv --algorithm gm2", "gm2 knows no rules of a fleet and no --from"),
        ("--from o.csv --rounds auto", "leave --rounds out"),
        ("--from nowhere.csv", "no such file"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, monkeypatch, capsys, words, complaint):
    monkeypatch.chdir(tmp_path)
    Path("w.csv").write_text("node,topic\na,x\nb,x\n")
    Path("o.csv").write_text("u,v\na,b\n")
    assert run(f"design --workload w.csv {words}") == 2
    assert complaint in capsys.readouterr().err


def test_nodes_above_their_caps_come_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("w").mkdir()
    Path("w/interests.csv").write_text("node,topic\n" + "".join(f"{node},x\n" for node in "abcdef"))
    Path("w/nodes.csv").write_text("node,max_links\na,5\nb,1\nc,1\nd,1\ne,1\nf,1\n")
    Path("o.csv").write_text("u,v\na,b\na,c\na,d\na,e\nb,f\n")
    told = run_json(capsys, "design --workload w --from o.csv --changes 2 --out p.csv")
    assert told["fleet"]["within_rules"]
    assert told["from"]["changes"] == 2
    assert run("design --workload w --from o.csv --changes 1") == 1
    assert "Not within the rules:\n  node b has 2 links and may have 1" in capsys.readouterr().out
