"""Simulated systems end with the same bytes whatever the hash seed of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from commands import run

COMMANDS = """
import sys
from omen.cli.main import main

where, out = sys.argv[1:]
trace = ["--churn", f"{where}/c.parquet", "--workload", f"{where}/w"]
for system in ("omen", "spidercast"):
    main(["replay", "--system", system, *trace, "--verify", "off", "--out", f"{out}/{system}"])
main(["design", "--algorithm", "spidercast", "--kr", "1", "--workload", f"{where}/w", "--out", f"{out}/o.parquet"])
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What three processes with different hash seeds have made of the same workload and trace, names being text."""
    folder = tmp_path_factory.mktemp("hashes")
    with (folder / "interests.csv").open("w") as file:
        file.write("node,topic\n")
        file.writelines(f"n{node},t{(node * node + 5 * number) % 12}\n" for node in range(40) for number in range(3))
    assert run("workload import --table", folder / "interests.csv", "--out", folder / "w") == 0
    assert run("churn random --rounds 12 --seed 1 --workload", folder / "w", "--out", folder / "c.parquet") == 0
    outs = []
    for hash_seed in ("0", "1", "4242"):
        outs.append(folder / hash_seed)
        outs[-1].mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", COMMANDS, str(folder), str(outs[-1])]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    return outs


def same(paths: list[Path]) -> bool:
    first, *others = [path.read_bytes() for path in paths]
    return all(other == first for other in others)


@pytest.mark.parametrize("system", ["omen", "spidercast"])
def test_a_replay_ends_with_the_same_bytes_whatever_the_hash_seed(system: str, made: list[Path]) -> None:
    names = sorted(path.name for path in (made[0] / system).iterdir() if path.suffix == ".parquet")
    assert "overlay.parquet" in names
    for name in names:
        if name != "replay.parquet":
            assert same([out / system / name for out in made]), name
    first, *others = [pq.read_table(out / system / "replay.parquet").drop_columns(["repair_s"]) for out in made]
    assert first.num_rows == 12
    assert all(other.equals(first) for other in others)


def test_a_design_of_simulated_nodes_has_the_same_bytes_whatever_the_hash_seed(made: list[Path]) -> None:
    assert same([out / "o.parquet" for out in made])
