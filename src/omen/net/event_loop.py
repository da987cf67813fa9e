"""The event loop a command runs in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

Result = TypeVar("Result")
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def event_loops() -> dict[str, NewLoop]:
    """The loops there are here, by name, the one to prefer first: uvloop takes less of the processor for a message."""
    found: dict[str, NewLoop] = {}
    with suppress(ImportError):
        found["uvloop"] = import_module("uvloop").new_event_loop
    return found | {"asyncio": asyncio.new_event_loop}


def run(main: Coroutine[Any, Any, Result], new_loop: NewLoop | None = None) -> Result:
    """Run an event loop for one task; the preferred one where none is named."""
    with asyncio.Runner(loop_factory=new_loop or next(iter(event_loops().values()))) as runner:
        return runner.run(main)
