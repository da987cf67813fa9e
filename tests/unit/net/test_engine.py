"""The engine of a live node: small, and never loaded or compiled on the loop."""

from __future__ import annotations

import subprocess
import sys
from threading import Event, Lock, current_thread

import pytest

from omen.kernels import engine
from omen.net import engine as live

LARGE = ([list(range(40))] * 100, [[node] * 40 for node in range(100)], [0] * 100, 3.0)
SMALL = ([[0], [0]], [[0], [1]], [0, 0], 3.0)
EVERY_MODULE = """
import importlib, pkgutil, sys
import omen.net, omen.protocol, omen.cli.node
for package in (omen.net, omen.protocol):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
heavy = ("numba", "numpy", "llvmlite", "pyarrow", "omen.design", "omen.maintain")
print(sorted(set(heavy) & set(sys.modules)))
"""


def test_net_and_protocol_import_no_compiler() -> None:
    found = subprocess.run([sys.executable, "-c", EVERY_MODULE], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_loaded", Event())
    monkeypatch.setattr(live, "_begun", Lock())


@pytest.mark.usefixtures("unloaded")
def test_the_first_large_case_has_the_compiled_engine_loaded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    done = Event()

    def load() -> None:
        threads.append(current_thread().name)
        done.set()

    monkeypatch.setattr(engine, "load", load)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, b"", b""))
    live.choose_links(*SMALL)
    assert not threads
    assert live.choose_links(*LARGE)
    live.choose_links(*LARGE)
    assert done.wait(10)
    assert threads == ["engine"]


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize(("said", "loads"), [([b""], 1), ([b"compiling", b""], 1), ([b"compiling", b"compiling"], 0)])
def test_nothing_is_loaded_but_what_another_process_found_kept(
    said: list[bytes], loads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(engine, "load", lambda: done.append("loaded"))
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, b"", said.pop(0))
    )
    live._load_kept()
    assert done == ["loaded"] * loads
    assert not said


@pytest.mark.usefixtures("unloaded")
def test_where_nothing_can_be_compiled_the_small_engine_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no process can be started")

    monkeypatch.setattr(subprocess, "run", fail)
    live._load_kept()
    assert live.choose_links(*LARGE)
