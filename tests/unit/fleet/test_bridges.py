"""Bridges for Mosquitto: trees without loops, names that MQTT takes, and which brokers to restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from commands import run, run_json
from omen.errors import InvalidInput
from omen.fleet.bridges import bridge_files, fault_of_address, fault_of_topic, topic_trees
from omen.interests import Interests
from omen.overlay import Overlay
from omen.systems import design_overlay
from reference.instances import as_interests, tiny_topics


@settings(max_examples=60, deadline=None)
@given(tiny_topics())
def test_each_topic_has_a_spanning_tree_of_its_links(instance):
    interests = as_interests(*instance)
    overlay = design_overlay(interests, "ring-pt")
    links = set(zip(overlay.u.tolist(), overlay.v.tolist(), strict=True))
    trees = topic_trees(interests, overlay)
    assert set(trees) <= links
    for topic in range(interests.topic_count):
        members = set(interests.subscribers_of(topic).tolist())
        tree = [link for link, topics in trees.items() if topic in topics]
        assert len(tree) == max(len(members) - 1, 0)
        reached = set(sorted(members)[:1])
        for _ in tree:
            reached |= {end for link in tree if reached & set(link) for end in link}
        assert reached == members


def test_a_split_topic_has_no_tree():
    interests = Interests.from_pairs([("a", "x"), ("b", "x")])
    with pytest.raises(InvalidInput, match="topic 'x' is split"):
        topic_trees(interests, Overlay.from_links(["a", "b"], []))


def test_a_broker_without_an_address_is_an_error():
    interests = Interests.from_pairs([("a", "x"), ("b", "x")])
    with pytest.raises(InvalidInput, match="broker 'b' has no address"):
        bridge_files(interests, Overlay.from_links(["a", "b"], [("a", "b")]), {0: "h:1"})


@pytest.mark.parametrize("name", ["", '""', "a/+", "#", "a b", "$SYS/x", "a\nb", "x" * 65_536])
def test_names_that_mqtt_or_a_bridge_forbids(name):
    assert fault_of_topic(name) is not None


@pytest.mark.parametrize("name", ["a", "a/b", "42", "naïve/topic", "a$b"])
def test_names_that_it_takes(name):
    assert fault_of_topic(name) is None


@pytest.mark.parametrize(
    ("address", "right"),
    [
        ("host", True),
        ("host:1883", True),
        ("[::1]:1883", True),
        ("host:0", False),
        ("a b:1", False),
        ("h:99999", False),
    ],
)
def test_addresses(address, right):
    assert (fault_of_address(address) is None) == right


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w.csv").write_text("node,topic\na,x\nb/1,x\nc,x\na,y\nc,y\n")
    Path("o.csv").write_text("u,v\na,b/1\nb/1,c\na,c\n")
    Path("hosts.csv").write_text("node,address\na,h1\nb/1,h2:1884\nc,h3\n")
    return tmp_path


EXPORT = "export --workload w.csv --overlay o.csv --format mosquitto --addresses hosts.csv --out bridges"


def test_one_file_for_each_broker_and_those_that_changed(fleet, capsys):
    told = run_json(capsys, EXPORT)
    assert told["changed"] == ["a", "b/1", "c"]
    assert told["bridges"] == 2
    assert sorted(path.name for path in (fleet / "bridges").iterdir()) == [
        "a.conf",
        "b=2F1.conf",
        "bridges.json",
        "c.conf",
    ]
    lines = (fleet / "bridges" / "a.conf").read_text().splitlines()
    assert [line for line in lines if line.startswith(("connection", "address", "topic"))] == [
        "connection a_b=2F1",
        "address h2:1884",
        "topic x both 2",
        "connection a_c",
        "address h3",
        "topic x both 2",
        "topic y both 2",
    ]
    assert run_json(capsys, EXPORT)["changed"] == []
    (fleet / "bridges" / "mine.txt").write_text("of the operator")
    Path("o.csv").write_text("u,v\nb/1,c\na,c\n")
    told = run_json(capsys, EXPORT)
    assert told["changed"] == ["a", "b/1"]
    assert (fleet / "bridges" / "mine.txt").exists()
    Path("w.csv").write_text("node,topic\na,x\nc,x\n")
    Path("o.csv").write_text("u,v\na,c\n")
    Path("hosts.csv").write_text("node,address\na,h1\nc,h3\n")
    assert run_json(capsys, EXPORT)["removed"] == ["b=2F1.conf"]
    assert not (fleet / "bridges" / "b=2F1.conf").exists()
    assert [entry["broker"] for entry in json.loads((fleet / "bridges" / "bridges.json").read_text())["brokers"]] == [
        "a",
        "c",
    ]


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("w.csv", "node,topic\na,x\nb/1,x\nc,a/#\n", "w.csv, row 3: topic 'a/#' holds + or #"),
        ("hosts.csv", "node,address\na,h1\nb/1,h 2\n", "hosts.csv, row 2: address 'h 2' is not HOST or HOST:PORT"),
        ("hosts.csv", "node,address\na,h1\na,h2\n", "hosts.csv, row 2: node 'a' has another address"),
        ("hosts.csv", "node,address\na,h1\nd,h2\n", "hosts.csv, row 2: node 'd' is not a node of the workload"),
        ("hosts.csv", "node,address\na,\n", "hosts.csv, row 1: no address"),
        ("hosts.csv", "node,address\na,h1\n", "has no address"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(fleet, capsys, file, text, complaint):
    (fleet / file).write_text(text)
    if file == "w.csv":
        (fleet / "o.csv").write_text("u,v\na,b/1\n")
    assert run(EXPORT) == 2
    assert complaint in capsys.readouterr().err
    assert not (fleet / "bridges").exists()


def test_a_folder_that_is_not_ours_is_left_alone(fleet, capsys):
    (fleet / "bridges").mkdir()
    (fleet / "bridges" / "mosquitto.conf").write_text("listener 1883\n")
    assert run(EXPORT) == 2
    assert "left as it is" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--format mosquitto --out d", "--format mosquitto --addresses hosts.csv"])
def test_addresses_and_a_folder_are_needed(fleet, capsys, words):
    assert run(f"export --workload w.csv --overlay o.csv {words}") == 2
    assert "needs --addresses FILE" in capsys.readouterr().err
