"""One node leaves while another crashes, with the audit off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from .leave_and_crash import split_topics

ROOT = Path(__file__).parents[2]


def node(topics: str, *links: str) -> dict[str, Any]:
    return {"topics": [{"topic": topic} for topic in topics], "links": list(links)}


def test_a_topic_is_split_unless_links_that_both_ends_name_connect_it() -> None:
    whole = {"a": node("tu", "b"), "b": node("tu", "a", "c"), "c": node("t", "b")}
    assert split_topics(whole) == []
    assert split_topics(whole | {"c": node("tu", "b")}) == []
    assert split_topics(whole | {"b": node("t", "a", "c")}) == []
    assert split_topics(whole | {"b": node("u", "a", "c")}) == ["t"]
    assert split_topics(whole | {"c": node("t")}) == ["t"]


def test_no_topic_is_split_after_the_repair() -> None:
    command = [sys.executable, "-m", "tests.network.leave_and_crash", "--nodes", "6", "--topics", "8", "--rounds", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a topic split after 0" in done.stdout
