"""Which event loop a command runs in."""

from __future__ import annotations

import asyncio

import pytest

from omen.errors import InvalidInput, MissingDependency
from omen.net import event_loop
from omen.net.event_loop import VARIABLE, run


async def loop_name() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


@pytest.mark.parametrize(("told", "found"), [("", "asyncio"), ("asyncio", "asyncio"), ("uvloop", "uvloop")])
def test_the_environment_chooses_the_loop(told: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if told == "uvloop":
        pytest.importorskip("uvloop")
    monkeypatch.setenv(VARIABLE, told)
    assert run(loop_name()) == found


def test_a_loop_that_there_is_not_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "trio")
    with pytest.raises(InvalidInput, match="must be asyncio or uvloop"):
        run(loop_name())
    monkeypatch.setenv(VARIABLE, "uvloop")
    monkeypatch.setattr(event_loop, "event_loops", dict)
    with pytest.raises(MissingDependency, match=r"omen-overlay\[uvloop\]"):
        run(loop_name())
