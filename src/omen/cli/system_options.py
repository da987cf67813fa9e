"""`--system` and what systems may be told, for the commands that run one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from omen.cli.arguments import offer_names
from omen.cli.declared_options import Declared, add_declared_options, given_options
from omen.design.options import suggest
from omen.errors import InvalidInput
from omen.maintain.options import Setting, resolve


class DeclaredSystem(Declared, Protocol):
    @property
    def options(self) -> tuple[Setting, ...]: ...


Kind = TypeVar("Kind", bound=DeclaredSystem)


def add_system_options(parser: argparse.ArgumentParser, systems: Mapping[str, DeclaredSystem]) -> None:
    """`--system`, and an option for each setting that any of the systems declares."""
    named = parser.add_argument("--system", metavar="S", default="shadow", help="one of those below (shadow)")
    offer_names(named, systems)
    add_declared_options(parser, systems)


def resolve_declared(kind: DeclaredSystem, given: Mapping[str, Any]) -> dict[str, Any]:
    return resolve(kind.name, kind.options, given)


def chosen_system(
    arguments: argparse.Namespace,
    systems: Mapping[str, Kind],
    settle: Callable[[Kind, Mapping[str, Any]], dict[str, Any]] = resolve_declared,
) -> tuple[Kind, dict[str, Any]]:
    """The system asked for, with its options as given or by default."""
    name = arguments.system
    if name not in systems:
        raise InvalidInput(f"there is no system {name!r}{suggest(name, systems)} (there are {', '.join(systems)})")
    return systems[name], settle(systems[name], given_options(arguments))
