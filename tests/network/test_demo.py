"""The demo ends with a live cluster that loses nodes and no publication."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from omen.net.local.cluster import NODES
from omen.net.state import is_running, read_states


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


def _heed_signals() -> None:
    """What runs the tests in the background may ignore some, and its children would too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demo_that_is_watched_goes_on_until_a_signal_and_leaves_no_process(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "omen.cli", "demo", "--watch", "--out", str(tmp_path)]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_heed_signals)
    try:
        assert demo.stdout is not None
        assert any("the nodes publish until Ctrl-C" in line for line in demo.stdout)
        nodes = read_states(tmp_path / "live" / NODES)
        assert sum(map(is_running, nodes)) == 17
        demo.send_signal(number)
        told, _ = demo.communicate(timeout=120)
    finally:
        demo.kill()
    assert told.endswith("lost 0\nduplicated 0\n")
    assert demo.returncode == 0
    assert not any(map(is_running, nodes))
