"""Brokers that come and go leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_memory_stays_flat_while_brokers_join_and_leave() -> None:
    command = [sys.executable, "-m", "tests.network.cycles", "--cycles", "240"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
