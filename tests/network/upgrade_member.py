"""One process of a rolling upgrade: subscribes, publishes, and writes down what it was given. For any released version.

It uses no more of OMen than version 0.1.0 had, and runs with whatever version its PYTHONPATH holds. Lines begin with
the time by the clock all processes of a machine share, in microseconds:

    I node name version                        which process writes
    S                                          joined: all topics are linked
    P topic incarnation sequence waited        published; the time is from before the call, `waited` how long it took
    D topic node incarnation sequence          delivered
    G topic node incarnation first last reason a gap
    L                                          asked to leave
    E                                          it has left, or the run is over

SIGUSR1: publish no more. SIGTERM: leave in good order. SIGQUIT: the run is over.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

TASK: dict[str, Any] = json.loads(sys.argv[1])
if TASK["plain"]:
    # Version 0.1.0 repairs with compiled code alone, and compiling takes longer than a small run: here the same lines
    # run as plain Python, link for link the same.
    plain = types.ModuleType("omen.kernels.compiling")
    plain.compiled = lambda signature=None: lambda function: function  # type: ignore[attr-defined]
    sys.modules["omen.kernels.compiling"] = plain

from omen.net.broker import Broker  # noqa: E402
from omen.net.inbox import Gap  # noqa: E402
from omen.net.settings import NodeConfig  # noqa: E402


def clock() -> int:
    return time.monotonic_ns() // 1000


class Member:
    """A broker and what it does until a signal ends it."""

    def __init__(self, broker: Broker, task: dict[str, Any], out: TextIO) -> None:
        self._broker = broker
        self._task = task
        self._out = out
        self._quiet = asyncio.Event()
        self._leave = asyncio.Event()
        self._over = asyncio.Event()

    def write(self, line: str, at: int | None = None) -> None:
        self._out.write(f"{clock() if at is None else at} {line}\n")

    async def live(self) -> None:
        loop = asyncio.get_running_loop()
        reactions: dict[signal.Signals, Callable[[], None]] = {
            signal.SIGUSR1: self._quiet.set,
            signal.SIGTERM: self._leave.set,
            signal.SIGQUIT: self._over.set,
        }
        for number, react in reactions.items():
            loop.add_signal_handler(number, react)
        self.write(f"I {self._broker.node} {self._broker.name} {self._task['version']}")
        listening = asyncio.ensure_future(self._listen())
        await self._broker.start()
        self.write("S")
        print(self._broker.address, flush=True)
        work = [asyncio.ensure_future(job()) for job in (self._publish, self._flush)]
        ends = [asyncio.ensure_future(event.wait()) for event in (self._leave, self._over)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in (*work, *ends):
            task.cancel()
        if self._leave.is_set():
            self.write("L")
            await self._broker.stop()
            await listening
        self.write("E")
        self._out.flush()
        await self._broker.abandon()

    async def _listen(self) -> None:
        async for item in self._broker.messages():
            stream = f"{item.topic} {getattr(item, 'node', item.publisher)} {item.incarnation}"
            if isinstance(item, Gap):
                self.write(f"G {stream} {item.first} {item.last} {item.reason}")
            else:
                self.write(f"D {stream} {item.sequence}")

    async def _publish(self) -> None:
        draw = random.Random(self._task["seed"])
        payload, pause = bytes(self._task["payload"]), 1 / self._task["rate"]
        due = asyncio.get_running_loop().time()
        while not self._quiet.is_set() and not self._leave.is_set():
            due += draw.uniform(0.5, 1.5) * pause
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            topic = draw.choice(self._task["topics"])
            before = clock()
            sequence = await self._broker.publish(topic, payload)
            core = self._broker.core
            assert core is not None
            self.write(f"P {topic} {core.ref.incarnation} {sequence} {clock() - before}", before)

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            self._out.flush()


async def run_member(task: dict[str, Any]) -> None:
    config = NodeConfig(
        name=task["name"], topics=tuple(task["topics"]), listen=task["listen"], join=tuple(task["join"]), engine="eager"
    )
    with Path(task["log"]).open("w") as out:
        await Member(Broker(config), task, out).live()


if __name__ == "__main__":
    asyncio.run(run_member(TASK))
