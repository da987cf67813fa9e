"""What bench.house counts in a source tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.house import reaches, read_sources, rows, string_branches, string_keys, wide_functions

NODE = """
class OmenNode:
    def __init__(self, config):
        self.config = config
        self.links = Links()

    def on_timer(self, kind):
        if kind == "round":
            self.out.set_timer(("round", 1), 5)
        elif kind in ("beat", "ask"):
            self.out.notify(Left())
        match kind:
            case "audit":
                pass
            case RoundTimer():
                pass
"""
FACTS = """
def degree(core, overlay, a, b, c, d, e, f):
    return len(core.links) + len(overlay.links) + core.config.rho
"""


@pytest.fixture
def src(tmp_path: Path) -> Path:
    for name, text in (("protocol/node.py", NODE), ("net/facts.py", FACTS)):
        path = tmp_path / "omen" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_branches_on_a_string_are_counted_and_those_on_a_type_are_not(src: Path) -> None:
    assert len(string_branches(read_sources(src))) == 3


def test_a_timer_named_by_a_string_is_a_string_key_and_a_typed_notification_is_none(src: Path) -> None:
    assert string_keys(read_sources(src)) == ["protocol/node.py:9"]


def test_a_reach_is_a_read_of_what_a_core_holds_but_not_of_what_is_open_to_all(src: Path) -> None:
    assert reaches(read_sources(src)) == ["net/facts.py:3 core.links"]


def test_eight_parameters_are_one_too_many(src: Path) -> None:
    assert wide_functions(read_sources(src)) == ["net/facts.py:2 degree"]


def test_the_table_counts_files_and_lines(src: Path) -> None:
    table = dict(rows(read_sources(src)))
    assert table["files"] == 2
    assert table["lines in `net`"] == 3
