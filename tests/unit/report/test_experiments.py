"""Experiments ask for no number whose cell they do not declare, and the ledger says of each claim what it must."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from omen.interests import Interests
from omen.report.beyond import BEYOND
from omen.report.experiments.inputs import GRAPHS, NO_DATA, Inputs
from omen.report.experiments.omen import ON_LARGE
from omen.report.experiments.papers import PAPERS
from omen.report.experiments.results import NotRun
from omen.report.ledger import VERDICTS, Claim, Deviation, Measured, claims, judge, ordered, summary_line
from omen.sweep.bounds import fewest_links, link_bound
from omen.sweep.cells import Cell, CellResult
from omen.sweep.kinds import check_cell
from omen.systems import design_overlay
from omen.workloads import generate_interests

FACEBOOK = Inputs({"fb1k": "inputs/fb1k"}, {"fb1k": "inputs/fb1k-churn"})
ALL_GRAPHS = Inputs({name: f"inputs/{name}" for name in GRAPHS}, {name: f"inputs/{name}-churn" for name in GRAPHS})


class Ones(defaultdict[str, Any]):
    """Whatever is asked for is there."""

    def get(self, key: str, default: Any = None) -> Any:
        return self[key]

    def __contains__(self, key: object) -> bool:
        return True

    def items(self) -> Any:
        names = ("join", "nodes", "links_before", "changed", "shadow_size", "max_degree", "avg_degree", "repair_s")
        return [(name, self[name]) for name in (*names, "round")]


@dataclass
class Asking:
    """Answers with made-up numbers, and remembers what was asked."""

    asked: set[str] = field(default_factory=set)

    def of(self, *cells: Cell) -> CellResult:
        self.asked |= {cell.id for cell in cells[-1:]}
        series = Ones(lambda: [1.0, 2.0, 1.0, 2.0])
        series["join"] = [1.0, 0.0, 1.0, 0.0]
        return CellResult(cells[0], Ones(lambda: 1.0), series)


@dataclass
class Declared(Asking):
    declared: frozenset[str] = frozenset()

    def of(self, *cells: Cell) -> CellResult:
        present = [cell.id for cell in cells if cell.id in self.declared]
        assert present, f"not declared: {cells[0]}"
        self.asked.add(present[0])
        return super().of(cells[0])


@pytest.mark.parametrize("inputs", [NO_DATA, FACEBOOK, ALL_GRAPHS], ids=["no data", "one graph", "all graphs"])
@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("name", PAPERS)
def test_claims_and_figures_are_made_from_declared_cells(name: str, scale: str, inputs: Inputs) -> None:
    paper = PAPERS[name]
    effort = paper.effort(scale, inputs)
    found = Declared(declared=frozenset(cell.id for cell in paper.cells(effort)))
    for claim_id, measure in paper.measures.items():
        try:
            assert isinstance(measure(found, effort), Measured), claim_id
        except NotRun:
            assert claim_id in ON_LARGE and effort.large is None, claim_id
    assert all(table.rows for table in paper.tables(found, effort))
    names = [drawing(found, effort).name for drawing in paper.drawings]
    assert len(set(names)) == len(names) > 0
    assert {one.id for one in paper.cells(effort.alone()[0])} <= found.declared


@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_is_measured(name: str) -> None:
    paper = PAPERS[name]
    ids = {claim.id for claim in claims().values() if claim.paper == name}
    assert set(paper.measures) == ids
    assert set(paper.deviations) <= ids


@pytest.mark.parametrize("name", PAPERS)
def test_every_declared_cell_can_be_run(name: str) -> None:
    paper = PAPERS[name]
    seen = {(cell.kind, cell.name, cell.options): cell for cell in paper.cells(paper.effort("quick", NO_DATA))}
    for cell in seen.values():
        check_cell(cell)


def test_what_goes_beyond_the_papers_is_made_from_declared_cells() -> None:
    for scale in ("quick", "full"):
        found = Declared(declared=frozenset(cell.id for cell in BEYOND.cells(scale)))
        assert len({drawing(found, scale).name for drawing in BEYOND.drawings}) == 3


def test_the_documentation_shows_the_claims_that_are_judged() -> None:
    with (Path(__file__).parents[3] / "docs" / "claims.csv").open(newline="", encoding="utf-8") as file:
        shown = list(csv.DictReader(file))
    assert [row["id"] for row in shown] == list(claims())
    for row in shown:
        claim = claims()[row["id"]]
        assert (row["paper"], row["setting"], row["quantity"]) == (claim.paper, claim.setting, claim.quantity)
        assert (row["relation"], float(row["value"]) if row["value"] else None) == (claim.relation, claim.value)
        assert row["verdict"] in VERDICTS


def claim(relation: str, value: float | None, tolerance: float = 0.0) -> Claim:
    return Claim("X1", "omen", "", "", "", relation, value, tolerance, False)


@pytest.mark.parametrize(
    ("relation", "value", "tolerance", "ours", "verdict"),
    [
        ("approx", 10, 0.25, 12.5, "reproduced"),
        ("approx", 10, 0.25, 14.9, "close"),
        ("approx", 10, 0.25, 15.1, "not reproduced"),
        ("at-most", 2.0, 0.0, 2.0, "reproduced"),
        ("at-most", 2.0, 0.0, 2.2, "close"),
        ("at-most", 2.0, 0.0, 2.3, "not reproduced"),
        ("at-least", 2.0, 0.0, 1.9, "close"),
        ("greater-than", 1.0, 0.0, 1.0, "not reproduced"),
    ],
)
def test_verdicts(relation: str, value: float, tolerance: float, ours: float, verdict: str) -> None:
    assert judge(claim(relation, value, tolerance), Measured(ours)).verdict == verdict


def test_an_order_is_close_where_it_is_missed_by_little() -> None:
    assert judge(claim("order", None), ordered([[1.0, 2.0, 2.0]], "")).verdict == "reproduced"
    assert judge(claim("order", None), ordered([[10.1, 10.0]], "")).verdict == "close"
    assert judge(claim("order", None), ordered([[10.5, 10.0]], "")).verdict == "not reproduced"
    assert judge(claim("order", None), Measured(False)).verdict == "not reproduced"


def test_other_data_and_what_was_not_run_are_called_so() -> None:
    other = judge(claim("approx", 10, 0.25), Measured(10.0), stand_in="a synthetic graph")
    assert other.verdict == "other data"
    assert "agrees" in other.reason
    missing = judge(claim("approx", 10, 0.25), None, not_run="takes a day")
    assert (missing.verdict, missing.reason) == ("not run at this scale", "takes a day")
    assert summary_line([other, missing]) == "2 claims: 1 other data, 1 not run at this scale"


def test_a_deviation_gives_its_reason_and_seeds_their_spread() -> None:
    entry = judge(claim("approx", 10, 0.1), Measured(20.0), [19.0, 21.0], Deviation(0, 0, "ties"))
    assert (entry.reason, entry.spread) == ("ties", (19.0, 21.0))
    assert entry.shown == "20 (19 to 21)"


@pytest.mark.parametrize("seed", range(8))
def test_no_overlay_has_fewer_links_than_the_bound(seed: int) -> None:
    interests = generate_interests(30, 12, "zipf:1", "uniform:1:6", seed=seed)
    for algorithm in ("gm", "cd-oda", "ring-pt"):
        assert link_bound(interests) <= design_overlay(interests, algorithm).link_count + 1e-9


def test_the_bound_is_met_by_one_topic() -> None:
    assert link_bound(Interests.from_pairs([(node, 0) for node in range(7)])) == pytest.approx(6)


@pytest.mark.parametrize("seed", range(3))
def test_the_fewest_links_are_between_the_bound_and_the_greedy_overlay(seed: int) -> None:
    pytest.importorskip("scipy", reason="scipy is not installed")
    interests = generate_interests(8, 5, "uniform", "2", seed=seed)
    links, _, proven = fewest_links(interests, 60.0)
    assert proven
    assert link_bound(interests) <= links + 1e-9
    assert links <= design_overlay(interests, "gm").link_count
