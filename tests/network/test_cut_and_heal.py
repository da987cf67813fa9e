"""A network that is cut in two heals by itself, and what both sides said meanwhile arrives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .cutting import Missing, count_crossings, missing_in, seconds_until_one

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_what_both_sides_of_a_cut_publish_reaches_the_other_when_it_heals(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.network.cutting", "--seconds", "15", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nlost 0\n" in done.stdout
    assert re.search(r"^said while cut [1-9]\d*, delivered across the cut 0$", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_cuts_of_1_11_and_30_minutes_with_time_compressed_end_in_one_cluster(tmp_path: Path) -> None:
    """By then nodes have forgotten their tombstones, and dial lost peers only now and then."""
    plan = ["--seconds", "0.3", "3.3", "9", "--faster", "200", "--after", "4", "--each-side", "2", "--rate", "16"]
    command = [sys.executable, "-m", "tests.network.cutting", *plan, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not delivered: silent 0, kept by windows 0, told as gaps 0" in done.stdout


def test_what_is_missing_after_a_cut_is_silent_or_told_and_told_only_beyond_windows(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    said = "".join(f"{at}000000 P tea 1 {sequence}\n" for sequence, at in enumerate((10, 20, 90, 95), start=1))
    (tmp_path / "logs" / "a0.log").write_text(f"1 I 7 1 a0\n2 S coffee\n{said}")
    (tmp_path / "logs" / "b1.log").write_text("1 I 8 1 b1\n2 S tea\n99000000 G tea 7 1 1 3 window\n")
    assert missing_in(tmp_path, healed=100_000_000, window_s=30.0) == Missing(silent=1, kept=1, told=2)
    (tmp_path / "logs" / "b1.log").write_text("1 I 8 1 b1\n2 S tea\n10100000 D tea 7 1 1\n24000000 D tea 7 1 2\n")
    assert seconds_until_one(tmp_path, healed=5_000_000, until=40_000_000) == 15.0


def test_a_cut_that_does_nothing_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a0.log").write_text("1 I 7 1 a0\n2 S tea\n5000000 P tea 1 1\n6000000 P tea 1 2\n")
    (tmp_path / "logs" / "b1.log").write_text("1 I 8 1 b1\n2 S tea\n5000010 D tea 7 1 1\n9000000 D tea 7 1 2\n")
    assert count_crossings(tmp_path, cut=1_000_000, healed=8_000_000) == (2, 1)
    assert count_crossings(tmp_path, cut=3_500_000, healed=8_000_000) == (1, 0)
