"""The examples in Python and TOML of README, CONTRIBUTING and docs: each is run, or fails here for want of a test."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omen
from documented import PAGES, ROOT, Block, blocks
from omen.cli.main import main
from omen.net.settings import read_node_config

EXAMPLES = {
    (page, number): block
    for page in PAGES
    for number, block in enumerate(one for one in blocks(page) if one.language in ("python", "toml"))
}


def run_as_it_stands(block: Block, path: Path, **names: Any) -> None:
    """Runs it; where a line is an expression with a value behind `#`, it is that."""
    told: dict[str, Any] = dict(names)
    exec(block.text, told)
    for line in block.lines:
        expression, _, value = line.partition("  # ")
        try:
            expected = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            continue
        assert eval(expression, told) == expected, line


def run_with_an_overlay(block: Block, path: Path) -> None:
    """The page has told before how interests, an overlay and a trace are come by."""
    names = ("ann", "bob", "cid", "dan", "eve")
    interests = omen.Interests.from_pairs([(name, topic) for name in names for topic in ("tea", "jazz")])
    trace = omen.Trace((omen.Leave(1.0, "dan"), omen.Join(2.0, "fay", ("tea",))))
    overlay = omen.design_overlay(interests)
    run_as_it_stands(block, path, interests=interests, overlay=overlay, trace=trace)


def read_as_kernel(block: Block, path: Path) -> None:
    """It shows the form alone; kernels have it."""
    (function,) = ast.parse(block.text).body
    assert isinstance(function, ast.FunctionDef)
    decorator = ast.unparse(function.decorator_list[0])
    kernels = "".join(one.read_text() for one in (ROOT / "src/omen/kernels").glob("*.py"))
    assert re.match(r"compiled\('\w+\(.*\)'\)", decorator)
    assert '@compiled("' in kernels


def is_run_live(block: Block, path: Path) -> None:
    """By a test that has a network at hand."""
    assert f'"{block.page}"' in (ROOT / "tests/network/test_live_page.py").read_text()
    ast.parse("async def example():\n" + textwrap.indent(block.text, "    "))


def is_submitted(block: Block, path: Path) -> None:
    """By a test that has spark-submit at hand."""
    assert Path(block.page).name in (ROOT / "tests/spark/test_session.py").read_text()
    compile(block.text, block.page, "exec")


def sweep_smaller(block: Block, path: Path) -> None:
    text = block.text
    for large, small in (
        ("seeds = 3 ", "seeds = 1 "),
        ("nodes = [100, 200, 400]", "nodes = [12, 20]"),
        ("topics = 100", "topics = 10"),
        ("sizes = 10", "sizes = 3"),
        ("rounds = 50", "rounds = 4"),
    ):
        assert large in text
        text = text.replace(large, small)
    (path / "grid.toml").write_text(text)
    assert main(["sweep", str(path / "grid.toml"), "--out", str(path / "s"), "--engine", "local", "--figures"]) == 0
    assert (path / "s" / "figures" / "figure-1.svg").is_file()


def simulate(block: Block, path: Path) -> None:
    (path / "scenario.toml").write_text(block.text)
    assert main(["simulate", str(path / "scenario.toml")]) == 0


def configure(block: Block, path: Path) -> None:
    (path / "node.toml").write_text(block.text)
    config = read_node_config(path / "node.toml")
    assert (config.name, config.cluster) == ("n1", "shop")
    assert len(config.access) == 2


def configure_signing(block: Block, path: Path) -> None:
    (path / "node.toml").write_text(block.text)
    security = read_node_config(path / "node.toml").security
    assert (security.sign, security.verify) == (True, "require")


def is_the_example(block: Block, path: Path) -> None:
    """The file that the page names, which a test of the page runs."""
    assert block.text == (ROOT / "examples/friends.toml").read_text()


def configure_rules(block: Block, path: Path) -> None:
    (path / "node.toml").write_text(block.text)
    protocol = read_node_config(path / "node.toml").protocol
    assert (protocol.max_links, protocol.zone) == (8, "north")


HOW: dict[tuple[str, int], Callable[[Block, Path], None]] = {
    ("README.md", 0): is_run_live,
    ("README.md", 1): run_as_it_stands,
    ("CONTRIBUTING.md", 0): read_as_kernel,
    ("docs/cli.md", 0): sweep_smaller,
    ("docs/fleets.md", 0): configure_rules,
    ("docs/index.md", 0): run_as_it_stands,
    ("docs/live.md", 0): is_run_live,
    ("docs/live.md", 1): is_run_live,
    ("docs/maintaining.md", 0): run_with_an_overlay,
    ("docs/pipeline.md", 0): is_submitted,
    ("docs/security.md", 0): configure,
    ("docs/security.md", 1): configure_signing,
    ("docs/simulator.md", 0): simulate,
    ("docs/tutorials/sweep.md", 0): is_the_example,
}


@pytest.mark.parametrize("where", EXAMPLES, ids=lambda where: f"{where[0]}-{where[1]}")
def test_an_example_works(where: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert where in HOW, "an example that no test runs: say in HOW how it is to be run"
    HOW[where](EXAMPLES[where], tmp_path)


def test_no_example_is_gone() -> None:
    assert set(HOW) == set(EXAMPLES)
