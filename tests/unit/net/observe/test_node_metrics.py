"""Names of metrics follow Prometheus's conventions, and the changelog leads from each former name to one there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import omen.net.observe.front_door as front_door
import omen.net.observe.node_metrics as node_metrics

ROOT = Path(__file__).parents[4]
UNITS = {"ms", "millis", "milliseconds", "us", "minutes", "hours", "kb", "mb", "mib", "kilobytes", "percent"}
"""Units that are no base units."""


def calls() -> list[tuple[str, str, str]]:
    """How each metric is written: as what, its name, its help."""
    trees = [ast.parse(Path(one.__file__).read_text(encoding="utf-8")) for one in (node_metrics, front_door)]
    return [
        (call.func.attr, ast.literal_eval(call.args[0]), ast.literal_eval(call.args[1]))
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "page"
        and call.args
    ]


METRICS = calls()


@pytest.mark.parametrize(("kind", "name", "meaning"), METRICS, ids=lambda value: value if "omen_" in value else "")
def test_a_name_says_what_it_counts_in_base_units(kind: str, name: str, meaning: str) -> None:
    assert re.fullmatch(r"omen(_[a-z]+)+", name)
    assert name.endswith("_total") is (kind in ("counter", "counters"))
    assert name.endswith("_info") is (kind == "info")
    assert name.endswith("_seconds") or kind != "histogram"
    assert UNITS.isdisjoint(name.split("_"))
    assert meaning.endswith(".")


def test_no_two_metrics_have_one_name() -> None:
    written = {(name, kind, meaning) for kind, name, meaning in METRICS}
    assert len({name for name, _, _ in written}) == len(written) > 60


def test_every_present_name_of_the_changelog_is_one_there_is() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = text.partition("- Metrics of live nodes, by Prometheus's conventions.")[2].partition("\n## ")[0]
    rows = re.findall(r"^ +\| ([^|]*) \| ([^|]*) \|$|^ +\| (\|) ([^|]*) \|$", table, re.MULTILINE)
    present = {name for row in rows for name in re.findall(r"omen_[a-z_]+", row[1] or row[3])}
    former = {name for row in rows for name in re.findall(r"omen_[a-z_]+", row[0])}
    names = {name for _, name, _ in METRICS}
    assert len(present) > 30
    assert present <= names
    assert former & names == {"omen_links", "omen_gaps_total"}, "these have labels since"
