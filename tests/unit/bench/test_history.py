"""The record of benchmarks, and the change between two of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import history

MACHINE = {"date": "2026-01-01", "code": "abc", "processor": "P", "cores": 2}


def result(seconds: float, links: int = 9) -> dict[str, Any]:
    row = {"what": "design", "wall_s": seconds, "runs": 3, "target_s": 1.0, "peak_mb": None}
    return {"machine": MACHINE, "rows": [{**row, "details": {"links": links, "holds": True, "kind": "low-oda"}}]}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(history, "RESULTS", tmp_path)
    return tmp_path


def measured(folder: Path, found: dict[str, Any], commit: str) -> dict[str, Any] | None:
    before = history.read_part("design")
    (folder / "design.json").write_text(json.dumps(found))
    return history.append_record("design", before, (commit, False), folder / "history.jsonl")


def test_only_what_was_measured_is_a_number_of_a_row() -> None:
    assert history.rows_of(result(0.5)) == {"design": {"wall_s": 0.5, "links": 9}}


def test_the_results_of_every_part_have_rows_that_differ_in_name() -> None:
    for path in Path(history.HISTORY.parent).glob("*.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        lists = [found.get(name, []) for name in history.LISTS if name != "rows" or "parts" not in found]
        lists += found.get("parts", {}).values()
        assert len(history.rows_of(found)) == sum(map(len, lists)), path.name


def test_a_run_becomes_a_record_with_commit_and_machine(results: Path) -> None:
    measured(results, result(0.5), "c1")
    (record,) = history.records(results / "history.jsonl")
    assert (record["part"], record["commit"], record["dirty"]) == ("design", "c1", False)
    assert record["machine"] == {"processor": "P", "cores": 2}
    assert record["rows"] == {"design": {"wall_s": 0.5, "links": 9}}


def test_rows_that_were_not_measured_again_are_not_recorded_again(results: Path) -> None:
    assert measured(results, result(0.5), "c1")
    assert measured(results, result(0.5), "c2") is None
    found = result(0.5)
    found["rows"].append({"what": "check", "wall_s": 0.1, "details": {}})
    added = measured(results, found, "c3")
    assert added is not None
    assert list(added["rows"]) == ["check"]


def test_two_records_are_compared_with_ratios_and_counts_only_where_they_changed(results: Path) -> None:
    measured(results, result(0.5), "c1")
    measured(results, result(0.25), "c2")
    first, second = history.records(results / "history.jsonl")
    assert list(history.compare(first, second)) == [("design", "wall_s", 0.5, 0.25)]
    head, line = history.told("design", [first, second], None)
    assert head.startswith("design: c2 (")
    assert line.split() == ["design", "wall_s", "0.5", "0.25", "0.50"]
    measured(results, result(0.25, links=18), "c3")
    kept = history.records(results / "history.jsonl")
    assert [line.split()[-1] for line in history.told("design", kept, None)][1:] == ["1.00", "2.00"]
    assert [line.split()[-1] for line in history.told("design", kept, "c1")][1:] == ["0.50", "2.00"]


def test_a_first_record_has_nothing_to_be_compared_with(results: Path) -> None:
    measured(results, result(0.5), "c1")
    (line,) = history.told("design", history.records(results / "history.jsonl"), None)
    assert line.endswith("nothing to compare it with")


def test_what_is_kept_names_commit_machine_and_rows() -> None:
    for record in history.records():
        assert record["commit"]
        assert {"processor", "cores", "memory_gb", "python"} <= set(record["machine"])
        assert record["rows"]
