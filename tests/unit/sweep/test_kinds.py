"""What cells of each kind measure."""

from __future__ import annotations

import pytest

from omen.sweep.cells import Cell, WorkloadSpec, pairs
from omen.sweep.kinds import interests_of, run_cell, top_intersection

TINY = WorkloadSpec(16, 6, "uniform", "2", 0)


def test_a_design_cell_tells_what_the_overlay_costs() -> None:
    found = run_cell(Cell("design", TINY, "gm2", settings=pairs({"diameters": True, "check_k": 2, "mesh": 6})))
    assert found.ok
    assert found.values["k_holds"] == 1
    assert found.values["split_topics"] == 0
    assert found.values["avg_degree"] == 2 * found.values["edges"] / 16
    assert {"max_diameter", "mean_diameter", "mesh_avg_degree"} <= set(found.values)


def test_a_replay_cell_tells_what_each_round_changed() -> None:
    found = run_cell(Cell("replay", TINY, "shadow", settings=pairs({"rounds": 8, "verify": "every"})))
    assert found.ok
    assert found.values["judged"] == 8
    assert len(found.series["changed"]) == 8
    before, after = found.series["links_before"], found.series["avg_degree"]
    links = [round(degree * nodes / 2) for degree, nodes in zip(after, found.series["nodes"], strict=True)]
    assert before[1:] == links[:-1]


@pytest.mark.parametrize("system", ["shadow", "omen", "spidercast"])
def test_a_replay_cell_looks_at_diameters_on_the_way(system: str) -> None:
    found = run_cell(Cell("replay", TINY, system, settings=pairs({"rounds": 6, "diameters_every": 2})))
    assert not found.error
    assert found.series["looked_after"] == [2.0, 4.0, 6.0]
    assert found.values["looks"] == 3
    assert found.values["max_diameter_mean"] == sum(found.series["looked_max_diameter"]) / 3
    assert found.values["start_avg_degree"] > 0
    assert ("simulated_s" in found.values) == (system != "shadow")
    if system != "shadow":
        assert found.values["messages_an_event"] == pytest.approx(sum(found.series["messages"]) / 6)


def test_rebuild_and_backups_cells_measure_what_their_names_say() -> None:
    rebuilt = run_cell(Cell("rebuild", TINY, "low-oda", settings=pairs({"rounds": 8, "every": 2})))
    assert rebuilt.values["looks"] == 4
    backups = run_cell(Cell("backups", TINY, "shadow"))
    assert sum(backups.series["nodes_of_primary_degree"]) == 16
    assert backups.values["primaries_min"] <= backups.values["size_mean"] <= backups.values["primaries_max"]


def test_cells_of_simulated_nodes_measure_views_and_lives() -> None:
    views = run_cell(Cell("views", TINY, "omen", pairs({"lambda": 1}), pairs({"rounds": 3})))
    assert views.ok, views.error
    assert len(views.series["views"]) == 16
    assert 0 < views.values["view_mean"] <= 16
    lives = run_cell(Cell("lives", TINY, "spidercast", settings=pairs({"mean_up": 20.0, "duration": 10.0})))
    assert lives.ok, lives.error
    assert lives.values["events"] > 0
    assert lives.values["control_messages"] > 0


def test_likeness_of_interests_is_that_of_the_profile() -> None:
    from omen.workloads.profile import profile_workload

    interests = interests_of(WorkloadSpec(60, 12, "zipf:1", "uniform:2:6", 3))
    likeness = profile_workload(interests, closest=5, sample=60).likeness
    assert top_intersection(interests, 5, block=7) == pytest.approx(likeness.tdi)
