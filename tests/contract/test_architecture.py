"""The newcomer's walks lead through files and functions that are there, and pass each file once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"<!-- walk: (\w+) -->\n(.*?)<!-- end of walk -->", PAGE, re.DOTALL))


def steps(walk: str) -> list[tuple[str, list[str]]]:
    """Each file with the functions that are named beside it."""
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \|(.*)$", WALKS[walk], re.MULTILINE)
    return [(path, re.findall(r"`(\w+)\(\)`", row)) for path, row in rows]


def defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_both_walks_are_told() -> None:
    assert set(WALKS) == {"publication", "crash"}
    assert all(len(steps(walk)) >= 8 for walk in WALKS)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_passes_each_file_once(walk: str) -> None:
    paths = [path for path, _ in steps(walk)]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("walk", WALKS)
def test_the_functions_of_a_walk_are_in_its_files(walk: str) -> None:
    missing = []
    for path, names in steps(walk):
        there = defined(ROOT / "src" / "omen" / path)
        missing += [f"{path}: {name}" for name in names if name not in there]
        assert names, f"{path}: which function?"
    assert missing == []


def test_the_classes_in_the_picture_of_the_walks_are_there() -> None:
    picture = (ROOT / "docs" / "walk.svg").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", " ".join(re.findall(r'<text class="[ns]".*?>(.*?)<', picture))))
    found = [re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE) for path in (ROOT / "src").rglob("*.py")]
    assert {"OmenNode", "FailureDetector", "LossReport"} <= named
    assert named - {name for names in found for name in names} == set()


def test_the_rooms_are_those_of_the_package() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    rooms = {path.name for path in (ROOT / "src" / "omen").iterdir() if (path / "__init__.py").exists()}
    assert told >= rooms


def test_the_rooms_are_in_the_picture_of_the_house() -> None:
    picture = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r'<text class="[nt]".*?>(\w+)<', picture))
    package = ROOT / "src" / "omen"
    nouns = {path.stem for path in package.glob("*.py")} - {"__init__"}
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert (rooms | nouns) - drawn == set()
