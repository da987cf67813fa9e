"""Every column of a table that a command prints is explained in its help."""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import omen.cli
from omen.cli.main import make_parser
from omen.cli.output import explain

SOURCES = sorted(Path(omen.cli.__file__).parent.glob("*.py"))
COMMANDS = {
    "workload_profile": "workload profile",
    "workload_social": "workload social",
    "workload": "workload import",
    "cluster": "cluster up",
}
"""Where the module of a command has another name."""


def calls_of(tree: ast.Module, name: str) -> list[ast.Call]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]


PRINTING = [path for path in SOURCES if path.stem != "output" and calls_of(ast.parse(path.read_text()), "print_table")]


def parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}".strip())


def test_tables_are_found() -> None:
    assert len(PRINTING) >= 10


@pytest.mark.parametrize("path", PRINTING, ids=lambda path: path.stem)
def test_the_help_of_a_command_explains_every_column_it_prints(path: Path) -> None:
    module = importlib.import_module(f"omen.cli.{path.stem}")
    declared = {name: value for name, value in vars(module).items() if name.endswith("COLUMNS")}
    assert declared
    shown = " ".join(dict(parsers(make_parser()))[COMMANDS.get(path.stem, path.stem)].format_help().split())
    for columns in declared.values():
        for name, meaning in columns.items():
            assert f"{name} {meaning}".strip() in shown
    for call in calls_of(ast.parse(path.read_text()), "print_table"):
        columns = call.args[0]
        assert isinstance(columns, ast.Name), "a table is printed by columns that are declared with what they say"
        assert columns.id in declared or path.stem == "compare"


@pytest.mark.parametrize(
    "name", ["check", "cluster", "design", "mend", "plan", "status", "sweep", "workload", "workload_social"]
)
def test_the_help_of_a_command_explains_the_lines_it_prints_below_its_tables(name: str) -> None:
    module = importlib.import_module(f"omen.cli.{name}")
    lines: dict[str, str] = module.LINES
    shown = " ".join(dict(parsers(make_parser()))[COMMANDS.get(name, name)].format_help().split())
    assert [line for line, meaning in lines.items() if f"{line} {meaning}" not in shown] == []


def test_columns_without_a_name_are_explained_by_their_place() -> None:
    assert explain("columns", {"": "who", "of": "what"}) == "columns:\n  (first)  who\n  of       what\n"
    assert explain("columns", {"of": "what", "": "why"}) == "columns:\n  of      what\n  (last)  why\n"
