"""The demo ends with a live cluster that loses nodes and no publication."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_kills_nodes_of_a_live_cluster_and_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "omen.cli", "demo", "--out", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 nodes are up" in done.stdout
    assert re.search(r"the live page of a node that stays: http://127\.0\.0\.1:\d+/", done.stdout)
    assert re.search(r"^  killed n\d+, n\d+, n\d+ at once, without a word$", done.stdout, re.MULTILINE)
    assert re.search(r"^deliveries due +[1-9]", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("lost 0\nduplicated 0\n")
