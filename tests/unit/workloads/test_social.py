"""Samples on one machine; tests/spark/test_social.py holds them against those of Spark."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from commands import run, run_json
from omen.errors import InvalidInput, InvalidTable
from omen.tables import read_workload
from omen.workloads.edge_files import LabelKind, read_edges
from omen.workloads.social import SocialRequest, sample_locally


def ring(path: Path, users: int = 60) -> Path:
    text = "".join(f"{user} {(user + step) % users}\n" for user in range(users) for step in (1, 7))
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_a_sample_is_one_piece_with_all_edges_among_its_users(tmp_path: Path) -> None:
    sampled = sample_locally(
        SocialRequest(str(ring(tmp_path / "g.gz")), False, 20, seed=7, seeds=1), str(tmp_path / "w")
    )
    interests = read_workload(tmp_path / "w").interests
    users = set(interests.nodes.tolist())
    around = {(a, b) for a in users for b in users if (b - a) % 60 in (1, 7, 53, 59)}
    assert len(users) == 20
    assert set(interests.pairs()) == around
    assert sampled.info["graph"] == {"users": 60, "edges": 120}
    seen, new = set(), {min(users)}
    while new:
        seen |= new
        new = {b for a, b in around if a in seen} - seen
    assert seen == users


def test_what_is_asked_for_in_vain_is_refused(tmp_path: Path) -> None:
    edges = str(ring(tmp_path / "g.gz"))
    with pytest.raises(InvalidInput, match="--nodes 61 is more than its 60 users"):
        sample_locally(SocialRequest(edges, False, 61), str(tmp_path / "w"))
    with pytest.raises(InvalidInput, match="--subscribers-only has no meaning"):
        sample_locally(SocialRequest(edges, False, 6, subscribers_only=True), str(tmp_path / "w"))
    (tmp_path / "bad").write_text("1 1\n2\n")
    with pytest.raises(InvalidTable, match=r"none of its 2 rows can be used \(fewer than two columns: 1, self-loop: 1"):
        sample_locally(SocialRequest(str(tmp_path / "bad"), False, 6), str(tmp_path / "w"))
    (tmp_path / "few").write_text("1 2\n1 1\n")
    with pytest.raises(InvalidInput, match="1 rows rejected"):
        sample_locally(SocialRequest(str(tmp_path / "few"), False, 2, max_rejected=0), str(tmp_path / "w"))


def test_a_small_file_is_sampled_without_loading_a_compiler(tmp_path: Path) -> None:
    """Loading numba is half of the two seconds that a file of 1.5 MB may take."""
    edges = ring(tmp_path / "g.gz")
    asked = f"SocialRequest({str(edges)!r}, False, 20), {str(tmp_path / 'w')!r}"
    script = f"import sys\nfrom omen.workloads.social import *\nsample_locally({asked})\nprint('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("labels", ["auto", "integer", "text"])
def test_edges_are_the_same_however_small_a_file_counts_as(tmp_path: Path, labels: LabelKind) -> None:
    (tmp_path / "g").write_bytes(
        b"# users\nsource target\n1 2\n2,3\n2 1 0.5\n-4 1\n5 5\nann bob\n7\n9 \xff\n1\t2\n\n8 9"
    )
    small, compiled = (read_edges(str(tmp_path / "g"), labels, small_bytes=most) for most in (1000, 0))
    assert small.users.tolist() == compiled.users.tolist()
    assert [small.source.tolist(), small.target.tolist()] == [compiled.source.tolist(), compiled.target.tolist()]
    assert (small.rows, small.duplicates, small.header) == (compiled.rows, compiled.duplicates, compiled.header)
    assert small.rejected == compiled.rejected


def test_the_command_says_which_engine_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = ring(tmp_path / "g.gz")
    told = run_json(capsys, "workload social --undirected --nodes 20 --edges", edges, "--out", tmp_path / "w")
    assert told["engine"] == "local"
    assert told["engine_why"].endswith("; spark from 50 MB on")


def test_inputs_are_checked_before_an_engine_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = ring(tmp_path / "g.gz")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years")
    for more, complaint in (
        (("--undirected --edges", edges, "--out", tmp_path / "mine"), "is not empty and has no workload.json"),
        (("--undirected --edges", tmp_path / "none", "--out", tmp_path / "w"), "no such file"),
        (("--undirected --subscribers-only --edges", edges, "--out", tmp_path / "w"), "has no meaning"),
    ):
        first, *rest = more
        words = f"workload social --nodes 20 --engine spark --master spark://127.0.0.1:1 {first}"
        assert run(words, *rest) == 2
        assert complaint in capsys.readouterr().err
