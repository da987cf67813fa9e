"""Designs side by side, as `omen compare` shows them."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest

from commands import run, run_json
from omen.fleet.comparing import count_cut_nodes
from omen.systems import design_overlay
from reference.instances import random_interests


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w").mkdir()
    Path("w/interests.csv").write_text("node,topic\na,x\nb,x\nc,x\nd,x\n")
    Path("path.csv").write_text("u,v\na,b\nb,c\nc,d\n")
    Path("star.csv").write_text("u,v\na,b\na,c\na,d\n")
    return tmp_path


def test_designs_side_by_side(fleet, capsys):
    told = run_json(capsys, "compare --workload w path.csv star.csv")
    path, star, ring, mesh = told["designs"]
    assert (path["links"], path["max_degree"], path["max_diameter"], path["cut_nodes"]) == (3, 2, 3, 2)
    assert (star["links"], star["max_degree"], star["max_diameter"], star["cut_nodes"]) == (3, 3, 2, 1)
    assert (ring["links"], ring["topic_connected"], mesh["links"]) == (4, None, 6)
    assert path["within_rules"]
    assert told["zones"] == {}


def test_cost_by_zone(fleet, capsys):
    Path("w/nodes.csv").write_text("node,max_links,zone\na,2,n\nb,,n\nc,,s\nd,,s\n")
    Path("w/zone_costs.csv").write_text("zone_u,zone_v,cost\nn,s,5\n")
    told = run_json(capsys, "compare --workload w path.csv star.csv")
    assert [(d["cost"], d["links_between_zones"], d["within_rules"]) for d in told["designs"][:2]] == [
        (7.0, 1, True),
        (11.0, 2, False),
    ]
    assert told["zones"]["star.csv"] == [
        {"zone_u": "n", "zone_v": "n", "links": 1, "cost": 1.0},
        {"zone_u": "n", "zone_v": "s", "links": 2, "cost": 10.0},
    ]
    assert run("compare --workload w path.csv star.csv") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == [
        *["links", "average", "most", "connected", "mean", "diameter", "diameter", "cut", "nodes"],
        *["cost", "between", "zones", "within", "the", "rules"],
    ]
    assert printed[-2].split() == ["n", "s", "1", "5.00", "2", "10.00"]


def test_cut_nodes_are_those_of_networkx():
    interests = random_interests(60, 15, 2, 6, 0.7, seed=2)
    overlay = design_overlay(interests, "low-oda")
    graph = overlay.to_networkx()
    found = set()
    for topic in range(interests.topic_count):
        members = interests.nodes[interests.subscribers_of(topic)].tolist()
        found |= set(networkx.articulation_points(graph.subgraph(members)))
    assert count_cut_nodes(interests, overlay) == len(found) > 0
