"""The event loop a command runs in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from omen.errors import InvalidInput, MissingDependency

Result = TypeVar("Result")
NewLoop = Callable[[], asyncio.AbstractEventLoop]
VARIABLE = "OMEN_EVENT_LOOP"
LOOPS = ("asyncio", "uvloop")


def event_loops() -> dict[str, NewLoop]:
    """The loops there are here, by name."""
    found: dict[str, NewLoop] = {"asyncio": asyncio.new_event_loop}
    with suppress(ImportError):
        found["uvloop"] = import_module("uvloop").new_event_loop
    return found


def chosen_loop() -> NewLoop:
    """Python's own, unless the environment names another: uvloop takes less for each message only under much load."""
    name = os.environ.get(VARIABLE) or LOOPS[0]
    if name not in LOOPS:
        raise InvalidInput(f"{VARIABLE} is {name!r}: must be {' or '.join(LOOPS)}")
    if name == LOOPS[0]:
        return asyncio.new_event_loop
    loops = event_loops()
    if name not in loops:
        raise MissingDependency(f"{VARIABLE} is {name!r}, which is not installed: pip install 'omen-overlay[uvloop]'")
    return loops[name]


def run(main: Coroutine[Any, Any, Result], new_loop: NewLoop | None = None) -> Result:
    """Run an event loop for one task; the chosen one where none is given."""
    try:
        runner = asyncio.Runner(loop_factory=new_loop or chosen_loop())
    except BaseException:
        main.close()
        raise
    with runner:
        return runner.run(main)
