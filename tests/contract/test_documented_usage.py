"""The lines of docs/cli.md that say how a command is called, held against the parser: options, values, defaults."""

from __future__ import annotations

import argparse
import re

import pytest

from documented import PARSERS, Command, commands
from omen.systems import ALGORITHMS, SYSTEMS

USAGES = commands("docs/cli.md")
OPTION = re.compile(r"(\[?)(--[a-z][a-z-]*)(?: ([^\s\[\]()|-][^\s\[\]()]*))?")
EVERYWHERE = {"--help", "--json"}
SPARK = {"--master", "--remote", "--driver-memory", "--partitions"}


def parsers_of(usage: Command) -> list[argparse.ArgumentParser]:
    """`kill|stop|start` are three commands with one line."""
    words = usage.text.split()[1:]
    for length in (2, 1):
        if len(words) >= length and not words[length - 1].startswith(("-", "[")):
            names = [(*words[: length - 1], last) for last in words[length - 1].split("|")]
            if all(name in PARSERS for name in names):
                return [PARSERS[name] for name in names]
    raise AssertionError(f"there is no such command: {usage.text}")


def shown(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {name: action for name, action in parser._option_string_actions.items() if name.startswith("--")}


@pytest.mark.parametrize("usage", USAGES, ids=lambda usage: usage.text.split(" --")[0].split(" [")[0])
def test_options_values_and_defaults_are_those_of_the_parser(usage: Command) -> None:
    for parser in parsers_of(usage):
        taken = options_of(parser)
        for bracket, name, value in OPTION.findall(usage.text):
            assert name in taken, f"{name} of {usage.text}"
            action = taken[name]
            assert bool(value) == (action.nargs != 0), f"{name} takes a value or not"
            if "|" in value and action.choices:
                assert set(value.split("|")) == set(map(str, action.choices)), name
            elif bracket and value and not value.isupper() and action.default is not None and ":" not in value:
                assert shown(action.default) in value.split("|"), name


@pytest.mark.parametrize("name", sorted({words for words, parser in PARSERS.items() if parser.get_default("handler")}))
def test_every_option_of_a_command_is_told(name: tuple[str, ...]) -> None:
    told: set[str] = set()
    for usage in USAGES:
        if PARSERS[name] in parsers_of(usage):
            told |= {option for _, option, _ in OPTION.findall(usage.text)}
            if "[options of the algorithm]" in usage.text:
                told |= {f"--{option.name}" for entry in ALGORITHMS.values() for option in entry.options}
            if "[options of the system]" in usage.text:
                told |= {f"--{option.name}" for entry in SYSTEMS.values() for option in entry.options}
    told = {option.rstrip("_").replace("_", "-") for option in told}
    missing = set(options_of(PARSERS[name])) - told - EVERYWHERE - SPARK
    assert missing == set()
    assert any(PARSERS[name] in parsers_of(usage) for usage in USAGES), "it has no line in docs/cli.md"
