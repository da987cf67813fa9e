"""What systems may be told, as options of the commands that run one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from omen.cli.output import shown
from omen.design.options import suggest
from omen.errors import InvalidInput
from omen.mend.options import Setting, resolve


class Declared(Protocol):
    """An entry of a dict of systems, as far as the command line cares."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> tuple[Setting, ...]: ...
    @property
    def summary(self) -> str: ...


Kind = TypeVar("Kind", bound=Declared)


def add_system_options(parser: argparse.ArgumentParser, systems: Mapping[str, Declared]) -> None:
    """`--system`, and an option for each setting that any of the systems declares."""
    parser.add_argument("--system", metavar="S", default="shadow", help="one of those below (shadow)")
    for name, text in _option_help(systems).items():
        flag = name.replace("_", "-")
        parser.add_argument(f"--{flag}", metavar=flag.upper(), dest=f"option_{name}", help=text)


def known_systems(systems: Mapping[str, Declared]) -> str:
    """The systems with a line about each, for the end of a help text."""
    width = max(map(len, systems))
    return "systems:\n" + "\n".join(f"  {name:<{width}}  {kind.summary}" for name, kind in systems.items())


def chosen_system(arguments: argparse.Namespace, systems: Mapping[str, Kind]) -> tuple[Kind, dict[str, Any]]:
    """The system asked for, with its options as given or by default."""
    name = arguments.system
    if name not in systems:
        raise InvalidInput(f"there is no system {name!r}{suggest(name, systems)} (there are {', '.join(systems)})")
    given = {
        option.removeprefix("option_"): value
        for option, value in vars(arguments).items()
        if option.startswith("option_") and value is not None
    }
    return systems[name], resolve(name, systems[name].options, given)


def told(options: Mapping[str, Any]) -> str:
    """Options as a person reads them."""
    return ", ".join(f"{name.replace('_', '-')} {_short(value)}" for name, value in options.items())


def told_as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as workload.json can hold them: it has no infinity."""
    return {name: str(value) if value == float("inf") else value for name, value in options.items()}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _option_help(systems: Mapping[str, Declared]) -> dict[str, str]:
    """What each option means, from the declarations of the systems that take it."""
    takers: dict[str, dict[str, list[str]]] = {}
    for kind in systems.values():
        for option in kind.options:
            choices = f", {option.range}" if hasattr(option, "choices") else ""
            meaning = f"{option.help}{choices} ({_short(option.default)})".replace("%", "%%")
            takers.setdefault(option.name, {}).setdefault(meaning, []).append(kind.name)
    return {
        name: "; ".join(f"{', '.join(names)}: {meaning}" for meaning, names in meanings.items())
        for name, meanings in takers.items()
    }
