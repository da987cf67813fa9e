"""What goes beyond the papers, made from real cells of small sizes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from omen.report import beyond
from omen.report.experiments.results import InProcess
from omen.report.figures import Drawing
from omen.sweep.bounds import fewest_links
from omen.sweep.cells import Cell, CellResult
from omen.workloads import generate_interests


@pytest.fixture(scope="module")
def drawings() -> dict[str, Drawing]:
    pytest.importorskip("scipy", reason="scipy is not installed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(beyond, "SMALL_NODES", (8, 10))
        patched.setattr(beyond, "SMALL_SEEDS", range(2))
        patched.setattr(beyond, "LARGE_NODES", (60, 120))
        patched.setattr(beyond, "MESH_SIZES", (5, 10))
        patched.setattr(beyond, "growing", lambda scale: (200, 400))
        found = InProcess()
        made = [drawing(found, "quick") for drawing in beyond.BEYOND.drawings]
    return {drawing.name: drawing for drawing in made}


def test_no_algorithm_needs_fewer_links_than_the_fewest_or_than_the_bound(drawings: dict[str, Drawing]) -> None:
    exact, bound = drawings["beyond-optimum"].panels
    for panel, sizes in ((exact, (8, 10)), (bound, (60, 120))):
        assert [line.label for line in panel.lines] == list(beyond.GREEDY)
        for line in panel.lines:
            assert line.x == sizes
            assert min(line.y) >= 1
    assert max(exact.lines[0].y) < 1.5, "GM is near the least"


def test_an_instance_that_one_cell_did_not_solve_is_left_out_of_all_lines() -> None:
    @dataclass
    class Given:
        def of(self, *cells: Cell) -> CellResult:
            (cell,) = cells
            unsolved = cell.kind == "optimum" and (cell.workload.seed, cell.name) == (1, "gm")
            values = {"proven": 0.0} if unsolved else {"proven": 1.0, "to_least": 1.0 + cell.workload.seed}
            return CellResult(cell, values | {"to_bound": 2.0}, {})

    exact = beyond.BEYOND.drawings[0](Given(), "quick").panels[0]
    seeds = [1.0 + seed for seed in beyond.SMALL_SEEDS if seed != 1]
    assert {line.y for line in exact.lines} == {(sum(seeds) / len(seeds),) * len(beyond.SMALL_NODES)}


def test_meshes_cost_more_links_than_overlays_that_survive_as_much(drawings: dict[str, Drawing]) -> None:
    gm2, harary, shared, apart = drawings["beyond-meshes"].panels[0].lines
    assert "gm2 in 2 of 2, harary-pt in 2 of 2, meshes in 2 of 2" in drawings["beyond-meshes"].caption
    for one, other, once, each in zip(gm2.y, harary.y, shared.y, apart.y, strict=True):
        assert max(one, other) < once < each
    assert apart.y == (30, 60)


def test_repair_is_timed_next_to_building_anew_at_every_size(drawings: dict[str, Drawing]) -> None:
    panel = drawings["beyond-growth"].panels[0]
    assert {line.label for line in panel.lines} == {"a join repaired", "a leave repaired", "built anew"}
    assert all(line.x == (200, 400) and min(line.y) > 0 for line in panel.lines)


def test_at_full_scale_instances_grow_from_1000_to_100_000_nodes() -> None:
    cells = [cell for cell in beyond.BEYOND.cells("full") if cell.kind == "replay"]
    assert (min(cell.workload.nodes for cell in cells), max(cell.workload.nodes for cell in cells)) == (1000, 100_000)


@pytest.mark.parametrize("seed", range(4))
def test_the_fewest_links_are_those_that_trying_all_overlays_finds(seed: int) -> None:
    pytest.importorskip("scipy", reason="scipy is not installed")
    from itertools import combinations

    from omen.overlay import Overlay
    from omen.quality import check_overlay

    interests = generate_interests(5, 4, "uniform", "2", seed=seed)
    pairs = list(combinations(interests.nodes.tolist(), 2))
    least = next(
        size
        for size in range(len(pairs) + 1)
        if any(
            check_overlay(interests, Overlay.from_links(interests.nodes.tolist(), links)).holds
            for links in combinations(pairs, size)
        )
    )
    assert fewest_links(interests, 60.0)[::2] == (least, True)


def test_what_is_not_solved_in_time_is_not_called_the_least() -> None:
    pytest.importorskip("scipy", reason="scipy is not installed")
    links, _, proven = fewest_links(generate_interests(40, 30, "uniform", "6", seed=1), 0.0)
    assert (links, proven) == (0, False)
