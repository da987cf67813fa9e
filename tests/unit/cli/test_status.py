"""omen status: what is printed of the nodes of a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import asdict

from omen.cli.main import main
from omen.net.observe.front_door import FrontDoorFacts

NODE: dict[str, Any] = {
    "name": "ann",
    "status": "ok",
    "address": "127.0.0.1:1",
    "links": ["bob"],
    "topics": [],
    "predecessors": ["bob"],
    "successors": ["bob"],
    "refused": {},
    "denied": {},
    "stalled": [],
    "delivered": 5,
    "published": 7,
    "repairs": 0,
}
STALLED = [
    {"topic": "tea", "publisher": "cid", "incarnation": 1, "missing": 1200, "seconds": 3.04},
    {"topic": "jazz", "publisher": "dan", "incarnation": 2, "missing": 7, "seconds": 12.5},
]


def test_streams_that_are_stalled_are_shown_the_longest_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omen.net.local.cluster.survey", lambda *_: [{**NODE, "status": "stalled", "stalled": STALLED}])
    assert main(["status"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = lines.index(["stalled", "at", "topic", "publisher", "missing", "for"])
    shown = [line for line in lines[first:] if line[:1] == ["ann"]]
    assert shown == [["ann", "jazz", "dan", "7", "12.5", "s"], ["ann", "tea", "cid", "1,200", "3.0", "s"]]


def test_what_nodes_warn_of_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    warned = {**NODE, "warnings": ["seeds_unreachable", "keys_not_renewed"]}
    monkeypatch.setattr("omen.net.local.cluster.survey", lambda *_: [warned, {**NODE, "name": "bob", "warnings": []}])
    assert main(["status"]) == 0, "a node that warns does its work"
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split() == ["warned", "by", "of"])
    assert lines[first + 1].split() == ["ann", "seeds_unreachable,", "keys_not_renewed"] and not lines[first + 2]


def test_where_none_is_stalled_nothing_is_said_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omen.net.local.cluster.survey", lambda *_: [NODE])
    assert main(["status"]) == 0
    assert "stalled" not in capsys.readouterr().out


def test_what_front_doors_have_is_shown_where_a_node_has_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    door = asdict(FrontDoorFacts(clients=3, sessions=4, held_back=17, wills=2))
    monkeypatch.setattr("omen.net.local.cluster.survey", lambda *_: [{**NODE, "mqtt": door}, {**NODE, "mqtt": {}}])
    assert main(["status"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = next(number for number, line in enumerate(lines) if line[:2] == ["mqtt", "at"])
    assert lines[first + 1] == ["ann", "3", "4", *"0000000", "17", "2"] and not lines[first + 2]


def test_topics_are_listed_split_ones_first_and_many_are_cut_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [{"topic": f"t{number}", "subscribed": True, "neighbours": 1} for number in range(30)]
    news = [{"topic": "news", "subscribed": True, "neighbours": 0}]
    linked = {"links": ["bob"], "topics": both + news}
    alone = {"name": "cid", "links": [], "topics": news}
    nodes = [{**NODE, **linked}, {**NODE, "name": "bob", "links": ["ann"], "topics": both}, {**NODE, **alone}]
    monkeypatch.setattr("omen.net.local.cluster.survey", lambda *_: nodes)
    assert main(["status"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = lines.index(["topic", "subscribers", "carried", "pieces"])
    assert lines[first + 1 : first + 3] == [["news", "2", "0", "2"], ["t0", "2", "0", "1"]]
    assert lines[first + 21] == ["and", "11", "more", "(--json", "lists", "all)"]
    assert main(["status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["by_topic"]
    assert len(told) == 31
    assert told[0] == {"topic": "news", "subscribers": 2, "carried": 0, "pieces": 2}
