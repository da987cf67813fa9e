"""Same seed, same trace, byte for byte, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MESSY = """
[drawn]
nodes = 24
topics = 12

[config]
resilience = 3
coverage = 3
gossip_ms = 200.0

[network]
latency_ms = { median = 2.0, sigma = 0.8 }
detection_ms = [20.0, 200.0]
loss = 0.02
duplication = 0.02
drift = 0.01

[[events]]
at = 1.0
crash = "n3"

[[events]]
on = "linking"
of = "n3"
crash = "coordinator"

[[events]]
at = 1.1
join = "x1"
topics = ["t0", "t1", "t5"]

[[events]]
at = 1.2
leave = "n7"

[[events]]
burst = 1
at = 0.1
resubscribe = "n9"
topics = ["t2", "t3"]
"""


def trace(path: Path, seed: int, hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "omen.cli", "simulate", str(path), "--seed", str(seed), "--trace-all"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


WATCHED = (
    MESSY.replace("coverage = 3\n", "coverage = 3\ndetector = true\naudit = true\naudit_ms = 2000.0\n")
    + """
[[events]]
burst = 1
at = 0.2
scramble = 0.2

[[events]]
burst = 1
at = 0.3
pause = "n11"

[[events]]
burst = 1
at = 12.0
resume = "n11"

[bounds]
connected_s = 60.0
one_sided_s = 30.0
"""
)


@pytest.fixture(params=[MESSY, WATCHED], ids=["told", "watched"])
def messy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "messy.toml"
    path.write_text(request.param)
    return path


def test_the_same_seed_gives_the_same_trace_whatever_the_hash_seed(messy: Path) -> None:
    first, *others = [trace(messy, 5, hash_seed) for hash_seed in ("0", "1", "4242")]
    assert first.count(b"\n") > 1000
    assert all(other == first for other in others)


def test_another_seed_gives_another_trace(messy: Path) -> None:
    assert trace(messy, 5, "0") != trace(messy, 6, "0")
