"""Options of commands that can run on Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [
    "workload synth --nodes 9 --topics 3 --popularity uniform --sizes 2 --out z",
    "workload social --edges g --undirected --nodes 2 --out z",
    "workload import --table t.csv --out z",
    "design --workload t.csv --algorithm ring-pt --out z --engine spark",
    "check --workload t.csv --overlay o.csv --engine spark",
    "sweep grid.toml --out z",
    "reproduce low-oda --out z",
]
SCRIPT = """\
import sys
from omen.cli.main import main
print(main(sys.argv[1:]), "omen.kernels.compiling" in sys.modules)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dead_cluster_is_told_before_kernels_are_loaded_or_compiled(command: str, tmp_path: Path) -> None:
    """On a fresh machine that takes a minute, and a dead cluster is to be told within 15 s."""
    pytest.importorskip("pyspark")
    (tmp_path / "g").write_text("1 2\n2 3\n")
    (tmp_path / "t.csv").write_text("node,topic\n1,2\n2,2\n")
    (tmp_path / "o.csv").write_text("u,v\n1,2\n")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    words = [*command.split(), "--master", f"spark://127.0.0.1:{port}"]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "2 False\n", done.stderr
    assert done.stderr.startswith("omen: Spark cannot be reached at spark://127.0.0.1:")
    assert not (tmp_path / "z").exists()
