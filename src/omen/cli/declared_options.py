"""Whatever algorithms and systems declare that they may be told, as options of the commands that run one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Protocol

from omen.cli.output import shown


class DeclaredOption(Protocol):
    """A setting, as far as the command line cares."""

    @property
    def name(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def help(self) -> str: ...
    @property
    def range(self) -> str: ...


class Declared(Protocol):
    """An entry of a dict of algorithms or systems, as far as the command line cares."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> tuple[DeclaredOption, ...]: ...
    @property
    def summary(self) -> str: ...


def add_declared_options(parser: argparse.ArgumentParser, entries: Mapping[str, Declared]) -> None:
    """An option for each setting that any of the entries declares."""
    for name, text in _option_help(entries).items():
        flag = name.replace("_", "-")
        parser.add_argument(f"--{flag}", metavar=flag.upper(), dest=f"option_{name}", help=text)


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The declared options that were given, by name."""
    return {
        option.removeprefix("option_"): value
        for option, value in vars(arguments).items()
        if option.startswith("option_") and value is not None
    }


def listed(title: str, entries: Mapping[str, Declared]) -> str:
    """The entries with a line about each, for the end of a help text."""
    width = max(map(len, entries))
    return f"{title}:\n" + "\n".join(f"  {name:<{width}}  {entry.summary}" for name, entry in entries.items())


def told(options: Mapping[str, Any]) -> str:
    """Options as a person reads them."""
    return ", ".join(f"{name.replace('_', '-')} {_short(value)}" for name, value in options.items())


def told_as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as workload.json can hold them: it has no infinity."""
    return {name: str(value) if value == float("inf") else value for name, value in options.items()}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _option_help(entries: Mapping[str, Declared]) -> dict[str, str]:
    """What each option means, from the declarations of those that take it."""
    takers: dict[str, dict[str, list[str]]] = {}
    for entry in entries.values():
        for option in entry.options:
            choices = f", {option.range}" if hasattr(option, "choices") else ""
            meaning = f"{option.help}{choices} ({_short(option.default)})".replace("%", "%%")
            takers.setdefault(option.name, {}).setdefault(meaning, []).append(entry.name)
    return {
        name: "; ".join(f"{', '.join(names)}: {meaning}" for meaning, names in meanings.items())
        for name, meanings in takers.items()
    }
