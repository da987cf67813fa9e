"""The rules of a fleet as the commands take them: tables in the workload folder, or named one by one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from omen.errors import InvalidInput

if TYPE_CHECKING:
    from omen.interests import Interests
    from omen.rules import FleetRules

_TABLES = ("nodes", "links", "zone_costs")


def add_rule_tables(parser: argparse.ArgumentParser) -> None:
    """Where rules stand. A workload folder that holds these tables needs none of the options."""
    group = parser.add_argument_group("rules of a fleet", "tables in the workload folder, or those named here")
    group.add_argument("--nodes", metavar="FILE", help="table node, max_links, zone")
    group.add_argument("--links", metavar="FILE", help="table u, v, rule (forbid, require, keep), cost")
    group.add_argument("--zone-costs", metavar="FILE", help="table zone_u, zone_v, cost")


def read_fleet(arguments: argparse.Namespace, interests: Interests) -> FleetRules:
    """The rules that a command was given; none at all are rules too."""
    from dataclasses import replace
    from pathlib import Path

    from omen.tables import find_rules, read_rules

    given = {name: Path(getattr(arguments, name)) for name in _TABLES if getattr(arguments, name) is not None}
    return read_rules(replace(find_rules(arguments.workload), **given), interests)


def add_sigma(parser: argparse.ArgumentParser) -> None:
    """The price of a dearer link."""
    parser.add_argument(
        "--sigma", metavar="S", type=sigma, help="how many times as much a dearer link must contribute (2)"
    )


def require_costs(arguments: argparse.Namespace, rules: FleetRules) -> None:
    """Refuse `--sigma` where it would change nothing."""
    if arguments.sigma is not None and not rules.has_costs:
        raise InvalidInput("--sigma is for links of different costs: give costs in the tables links or zone_costs")


def sigma(text: str) -> float:
    """How many times as much a dearer link must contribute."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value >= 1:
        raise argparse.ArgumentTypeError(f"must be a number, at least 1, or inf, not {text!r}")
    return value


def require_ruled(algorithm: str, in_rounds: bool, has_rules: bool, has_start: bool) -> None:
    """Refuse to design under rules, or from an overlay, with what does not know how."""
    from omen.design.schedule import ROUNDS
    from omen.fleet import RULED

    if not (has_rules or has_start):
        return
    if algorithm not in RULED:
        raise InvalidInput(f"{algorithm} knows no rules of a fleet and no --from: {', '.join(RULED)} know rules")
    if has_start and algorithm not in ROUNDS:
        raise InvalidInput(f"{algorithm} knows no --from: {', '.join(ROUNDS)} do")
    if in_rounds:
        raise InvalidInput("designs in rounds know no rules of a fleet and no --from: leave --rounds out")


def refuse_rules_on_spark(arguments: argparse.Namespace, *more: str) -> None:
    """Jobs on Spark know no rules: neither those that are named nor those in a folder here."""
    from pathlib import Path

    from omen.tables import find_rules

    for name in (*_TABLES, *more):
        if getattr(arguments, name) is not None:
            flag = "from" if name == "start" else name.replace("_", "-")
            raise InvalidInput(f"--{flag} is for work on this machine: leave --engine out")
    if "://" not in arguments.workload and Path(arguments.workload).is_dir():
        found = find_rules(arguments.workload)
        if found.links is not None or found.zone_costs is not None:
            where = arguments.workload
            raise InvalidInput(f"{where} has rules of a fleet, which Spark does not know: leave --engine out")
