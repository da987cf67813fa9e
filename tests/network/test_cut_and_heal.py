"""A network that is cut in two and mended again heals by itself, and what both sides said meanwhile arrives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_what_both_sides_of_a_cut_publish_reaches_the_other_when_it_heals(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.network.cutting", "--seconds", "15", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nlost 0\n" in done.stdout
