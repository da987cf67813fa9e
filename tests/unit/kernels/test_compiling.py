"""How kernels are compiled and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omen.kernels import compiling
from omen.kernels.building import module_names

ANNOUNCED = "omen: compiling kernels"
HELPER = """
from omen.kernels.compiling import compiled

@compiled()
def helper(x):
    return x + 1
"""
KERNEL = """
import omen.kernels.compiling as compiling
from pathlib import Path
compiling._HERE = Path({folder!r})
import omen.kernels
omen.kernels.__path__.append({folder!r})
import omen.kernels.caller
print(omen.kernels.caller.kernel(1))
"""
CALLER = """
from omen.kernels.compiling import compiled
from omen.kernels.helping import helper

@compiled("int64(int64)")
def kernel(x):
    return helper(x)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "helping.py").write_text(HELPER)
    (tmp_path / "caller.py").write_text(CALLER)
    return tmp_path


def run(folder: Path) -> tuple[str, str]:
    """What a fresh process prints and says when it calls the kernel."""
    done = subprocess.run(
        [sys.executable, "-c", KERNEL.format(folder=str(folder))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")},
    )
    return done.stdout.strip(), done.stderr


def test_a_kernel_is_announced_once_when_compiled_and_never_when_cached(folder: Path) -> None:
    value, said = run(folder)
    assert value == "2"
    assert said.count(ANNOUNCED) == 1
    assert len(said.splitlines()) == 1
    assert run(folder) == ("2", "")


def test_a_changed_helper_in_another_module_is_compiled_into_its_callers(folder: Path) -> None:
    assert run(folder)[0] == "2"
    (folder / "helping.py").write_text(HELPER.replace("x + 1", "x + 5"))
    value, said = run(folder)
    assert value == "6"
    assert ANNOUNCED in said


def test_a_damaged_cache_is_compiled_again_rather_than_fatal(folder: Path) -> None:
    run(folder)
    for entry in (folder / "cache").rglob("*.nb?"):
        entry.write_bytes(entry.read_bytes()[:40])
    assert run(folder)[0] == "2"


def test_all_modules_with_kernels_are_compiled_by_set_up() -> None:
    names = module_names()
    assert "greedy" in names
    assert not {"building", "compiling", "engine", "__main__"} & set(names)


def test_a_kernel_works_where_nothing_can_be_kept_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compiling, "_KernelCache", refuse)
    monkeypatch.setattr(compiling, "_told", False)

    @compiling.compiled("int64(int64)")
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err
