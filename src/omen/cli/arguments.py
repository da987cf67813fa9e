"""Kinds of arguments the commands share. A value that does not fit is refused with what would."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def at_least(minimum: int) -> Callable[[str], int]:
    """A whole number, `minimum` or more."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be a whole number, {minimum} or more, not {text!r}")
        return value

    return parse


def offer_names(action: argparse.Action, names: Iterable[str]) -> None:
    """What shells complete where the names are checked by the command itself, and not listed in its usage."""
    vars(action)["offered_names"] = list(names)


def offered_names(action: argparse.Action) -> list[str]:
    found: list[str] = vars(action).get("offered_names", [])
    return found


def add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workload", metavar="W", required=True, help="folder of the workload, or a table of node and topic"
    )


def add_encoding(parser: argparse.ArgumentParser) -> None:
    text = "how the text of the table is encoded: utf-8, latin-1, cp1252, utf-16 (utf-8)"
    parser.add_argument("--encoding", metavar="E", default="utf-8", help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def seconds(text: str) -> float:
    """A number of seconds, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds, 0 or more, not {text!r}")
    return value


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return value
