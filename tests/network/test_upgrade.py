"""Nodes of the former release and of this one form one cluster: every change of the wire passes through here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.releases import NoRelease

from .upgrading import HERE, Plan, ProcessLog, judge, read_log, run_plan

FORMER = "0.1.0"
SMALL = Plan(nodes=3, topics=4, rate=60, before=FORMER, back=1, pause_s=0.6, margin_s=2.0, share=1.0)


def test_three_nodes_are_upgraded_one_by_one_and_one_is_put_back_meanwhile(tmp_path: Path) -> None:
    """Under load, all subscribed to all: nothing is lost, told as a gap, or delivered twice, at either version."""
    try:
        verdict, rolling = run_plan(SMALL, tmp_path, tmp_path)
    except NoRelease as reason:
        pytest.skip(str(reason))
    report = "\n".join([*verdict.lines(), *verdict.examples])
    assert verdict.is_good, report
    assert not verdict.apart, report
    assert verdict.due > 500, report
    versions = [(log.name, log.version) for log in map(read_log, sorted(tmp_path.glob("*.log"), key=_started))]
    assert versions == [
        *((name, FORMER) for name in rolling.interests),
        ("n0", HERE),
        ("n0", FORMER),
        ("n0", HERE),
        ("n1", HERE),
        ("n2", HERE),
    ]


def _started(path: Path) -> int:
    return int(path.stem.partition(".")[2])


def write(folder: Path, name: str, *lines: str) -> ProcessLog:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_log(path)


def test_the_verdict_tells_lost_told_and_doubled_from_what_former_nodes_lose_by_their_limits(tmp_path: Path) -> None:
    s = 1_000_000
    old = [f"{at * s} P t {1} {at} 5" for at in (2, 3, 9)]
    logs = [
        write(tmp_path, "a", "1 I 7 a 0.1.0", "2 S", *old, f"{9 * s + 1} L", f"{10 * s} E"),
        write(
            tmp_path, "b", "1 I 8 b here", "2 S", f"{2 * s + 500_000} D t 7 1 2", f"{3 * s} D t 7 1 2", f"{20 * s} E"
        ),
        write(
            tmp_path, "c", "1 I 9 c 0.1.0", "2 S", f"{3 * s} D t 7 1 2", f"{4 * s} G t 7 1 3 3 window", f"{20 * s} E"
        ),
        write(tmp_path, "d", "1 I 5 d here", f"{4 * s} S", f"{5 * s} L", f"{6 * s} E"),
    ]
    verdict = judge(logs, {name: ["t"] for name in "abcd"}, margin_s=2.0)
    assert (verdict.processes, verdict.accepted, verdict.unended) == (4, 3, 0)
    assert (verdict.lost, verdict.told, verdict.duplicated) == (1, 0, 1), verdict
    assert verdict.apart == {"tail, silent": 2, "former subscriber, told": 1, "former subscriber, silent": 2}, verdict
    assert verdict.stall_by_version == {"here": 0.5, "0.1.0": 1.0}
    assert not verdict.is_good
