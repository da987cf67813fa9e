"""Pictures of overlays: well-formed, whole, and by themselves."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from commands import run, run_json
from omen.fleet.drawing import MOST_DRAWN, Picture, draw, draw_page
from omen.interests import Interests
from omen.overlay import Overlay
from omen.rules import FleetRules, no_rules

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def picture() -> Picture:
    interests = Interests.from_pairs([("a<", "x"), ("b", "x"), ("c", "y"), ("a<", "y")])
    rules = FleetRules.from_labels(interests.nodes, zones={"a<": "n", "b": "n", "c": "s&w"})
    return Picture(interests, Overlay.from_links(interests.nodes, [("a<", "b"), ("a<", "c")]), rules, topic=0)


def test_nodes_links_zones_and_the_topic_are_drawn(picture):
    root = ElementTree.fromstring("\n".join(draw(picture)))
    assert [line.get("class") for line in root.iter(f"{SVG}line")] == ["l t", "l b off"]
    circles = list(root.iter(f"{SVG}circle"))
    assert [circle.get("class") for circle in circles] == ["zone", "zone", None, None, "off"]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"n", "s&w", "a<", "b", "c"} <= set(texts)
    sizes = [float(circle.get("r", 0)) for circle in circles[2:]]
    assert sizes[0] > sizes[1] == sizes[2]


def test_many_nodes_are_shown_by_degree():
    count = MOST_DRAWN + 1
    interests = Interests.from_pairs([(node, 0) for node in range(count)])
    overlay = Overlay.from_links(range(count), [(node, node + 1) for node in range(count - 1)])
    root = ElementTree.fromstring("\n".join(draw(Picture(interests, overlay, no_rules(interests.nodes)))))
    assert [bar.find(f"{SVG}title").text for bar in root.iter(f"{SVG}rect")] == [
        "2 nodes with 1 links",
        "1,999 nodes with 2 links",
    ]


def test_a_page_needs_nothing_else(picture):
    page = "\n".join(draw_page(picture))
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "topic x with 2 subscribers" in page


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("w.csv").write_text("node,topic\na,x\nb,x\n")
    Path("o.csv").write_text("u,v\na,b\n")
    told = run_json(capsys, "draw --workload w.csv --overlay o.csv --topic x --out o.svg")
    assert told == {"nodes": 2, "edges": 1, "out": "o.svg"}
    ElementTree.parse("o.svg")
    assert run("draw --workload w.csv --overlay o.csv --out o.html") == 0
    assert Path("o.html").read_text().startswith("<!doctype html>")
    for words, complaint in (("--out o.png", ".svg or .html"), ("--topic z --out o.svg", "there is no topic 'z'")):
        assert run(f"draw --workload w.csv --overlay o.csv {words}") == 2
        assert complaint in capsys.readouterr().err
