"""What users install: the wheel, with its plain dependencies, in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
INSTALL_S = 300

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "venv"
    if not UV.exists():
        pytest.skip("uv is not installed next to the interpreter")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    install = [UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", wheel]
    done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        if any(sign in reason.lower() for sign in ("connect", "dns", "network", "offline", "timed out", "fetch")):
            pytest.skip(f"no package index can be reached: {reason[:200]}")
        pytest.fail(reason)
    return folder


def test_the_wheel_holds_the_package_its_types_and_its_licence_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.startswith("omen_overlay-")
    assert {"omen/py.typed", "omen/cli/main.py", "omen/kernels/compiling.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"omen", "omen_overlay"}
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc"))]


def test_a_plain_install_designs_and_checks_an_overlay_and_says_once_that_it_compiles(
    environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "interests.csv").write_text("node,topic\nann,tea\nbob,tea\nbob,jazz\ncid,jazz\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "VIRTUAL"))}

    def omen(words: str) -> subprocess.CompletedProcess[str]:
        command = [str(environment / "bin" / "omen"), *words.split()]
        return subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)

    extras = "import importlib.util as u; print([m for m in ('pyspark', 'pandas', 'matplotlib') if u.find_spec(m)])"
    present = subprocess.run(
        [environment / "bin" / "python", "-c", extras], capture_output=True, text=True, cwd=tmp_path
    )
    assert present.stdout.strip() == "[]"
    designed = omen("design --workload interests.csv --algorithm harary-pt --out o.csv --json")
    assert designed.returncode == 0, designed.stderr
    told = json.loads(designed.stdout)
    assert (told["edges"], told["topic_connected"]) == (2, True)
    assert (tmp_path / "o.csv").read_text().split() == ['"u","v"', '"ann","bob"', '"bob","cid"']
    assert designed.stderr.startswith("omen: compiling kernels for this machine, once")
    assert len(designed.stderr.splitlines()) == 1
    again = omen("design --workload interests.csv --algorithm harary-pt --out o.csv --json")
    assert (again.returncode, again.stderr) == (0, "")
    assert omen("check --workload interests.csv --overlay o.csv").returncode == 0
