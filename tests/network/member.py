"""One process of an end-to-end run: a node that subscribes, publishes and changes its mind, and logs all of it.

Every line begins with the time by the clock all processes of a machine share, in microseconds:

    I node incarnation                 who writes
    S topic / U topic                  subscribed (links are up) / about to unsubscribe
    P topic incarnation sequence       published: `publish` has returned; the time is from before the call
    D topic publisher incarnation sequence     delivered
    G topic publisher incarnation first last   a gap
    E                                  the end of the run, reached alive
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from omen.net.broker import Broker, NotHeld, Origin
from omen.net.event_loop import run
from omen.net.inbox import Message
from omen.net.observe.logs import write_log
from omen.net.settings import NodeConfig


@dataclass(frozen=True)
class Task:
    """What a member does: publications a second, all topics there are, seconds between changes of mind (0: never)."""

    log: Path
    rate: float
    topics: Sequence[str]
    change_s: float
    seed: int
    payload: int = 64


def clock() -> int:
    return time.monotonic_ns() // 1000


class Member:
    """SIGUSR1: publish and change no more. SIGUSR2: lose all connections. SIGTERM: leave. SIGQUIT: the run is over."""

    def __init__(self, broker: Broker, task: Task, out: TextIO) -> None:
        self.broker = broker
        self.task = task
        self.random = random.Random(task.seed)
        self.quiet = asyncio.Event()
        self.over = asyncio.Event()
        self.leaves = False
        self._out = out
        self._spoken = broker.topics

    def write(self, line: str, at: int | None = None) -> None:
        self._out.write(f"{clock() if at is None else at} {line}\n")

    async def live(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self.quiet.set)
        loop.add_signal_handler(signal.SIGQUIT, self.over.set)
        loop.add_signal_handler(signal.SIGUSR2, self.cut)
        loop.add_signal_handler(signal.SIGTERM, self.leave)
        self.write(f"I {self.broker.node} {self.broker.status().ref.incarnation} {self.broker.name}")
        for topic in self.broker.topics:
            self.write(f"S {topic}")
        work = [asyncio.ensure_future(job()) for job in (self.listen, self.publish, self.change, self.flush)]
        await self.over.wait()
        for task in work:
            task.cancel()
        if self.leaves:
            with suppress(NotHeld):
                await self.broker.stop()
        else:
            self.write("E")
        self._out.flush()

    def cut(self) -> None:
        assert self.broker.driver is not None
        for connection in self.broker.driver.peers.connections():
            connection.abort()

    def leave(self) -> None:
        self.leaves = True
        self.over.set()

    async def flush(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self._out.flush()

    async def listen(self) -> None:
        async for item in self.broker.messages():
            stream = f"{item.topic} {item.node} {item.incarnation}"
            if isinstance(item, Message):
                self.write(f"D {stream} {item.sequence}")
            else:
                self.write(f"G {stream} {item.first} {item.last} {item.reason}")

    async def publish(self) -> None:
        payload = bytes(self.task.payload)
        pause = 1 / self.task.rate
        while not self.quiet.is_set():
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * pause)
            topic = self.random.choice(self._spoken)
            before = clock()
            sequence = await self.broker.publish(topic, payload)
            self.write(f"P {topic} {self.broker.status().ref.incarnation} {sequence}", before)

    async def change(self) -> None:
        """Take up a topic, give up another, now and then. What a node publishes on it never gives up."""
        if not self.task.change_s:
            return
        extra: list[str] = []
        while not self.quiet.is_set():
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * self.task.change_s)
            if self.quiet.is_set():
                return
            fresh = self.random.choice([topic for topic in self.task.topics if topic not in self.broker.topics])
            await self.broker.subscribe(fresh)
            self.write(f"S {fresh}")
            extra.append(fresh)
            if len(extra) > 2:
                topic = extra.pop(0)
                self.write(f"U {topic}")
                await self.broker.unsubscribe(topic)


def be_member(config: NodeConfig, origin: Origin | None, task: Task) -> None:
    """The process from its start to its end."""
    write_log("text")

    async def live() -> None:
        broker = Broker(config, origin)
        await broker.start()
        with task.log.open("a") as out:
            await Member(broker, task, out).live()
        await broker.abandon()

    run(live())
