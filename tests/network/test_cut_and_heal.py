"""A network that is cut in two heals by itself, and what both sides said meanwhile arrives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .cutting import count_crossings

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_what_both_sides_of_a_cut_publish_reaches_the_other_when_it_heals(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.network.cutting", "--seconds", "15", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nlost 0\n" in done.stdout
    assert re.search(r"^said while cut [1-9]\d*, delivered across the cut 0$", done.stdout, re.MULTILINE)


def test_a_cut_that_does_nothing_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a0.log").write_text("1 I 7 1 a0\n2 S tea\n5000000 P tea 1 1\n6000000 P tea 1 2\n")
    (tmp_path / "logs" / "b1.log").write_text("1 I 8 1 b1\n2 S tea\n5000010 D tea 7 1 1\n9000000 D tea 7 1 2\n")
    assert count_crossings(tmp_path, cut=1_000_000, healed=8_000_000) == (2, 1)
    assert count_crossings(tmp_path, cut=3_500_000, healed=8_000_000) == (1, 0)
