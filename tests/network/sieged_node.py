"""One of the nodes that `sieges` attacks: a process of its own, with honest traffic.

    python sieged_node.py NAME [JOIN]

Uses nothing but what version 0.1.0 has too, so that it can be run by either. Commands come as lines: `mark` (what has
happened since the last one), `speak` (publish from now on), `end`.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from omen.net.broker import Broker
from omen.net.inbox import Message
from omen.net.settings import NodeConfig

TOPICS = ("tea", "jazz", "news")
RATE = 20.0
SPEAKERS = ("n0", "n3", "n6")
RING = 9
PAGE = resource.getpagesize()


class Node:
    """A broker, what it says and hears, and what that took."""

    def __init__(self, name: str, join: tuple[str, ...]) -> None:
        number = int(name[1:])
        shared = (f"with {number}", f"with {(number + 1) % RING}")  # so that there are circles, not only a tree
        self.broker = Broker(NodeConfig(name=name, topics=(*TOPICS, *shared), join=join, http="127.0.0.1:0"))
        self.heard: dict[str, set[int]] = defaultdict(set)
        self.gaps = 0
        self.late_ms: list[tuple[float, float]] = []
        self.said: dict[str, int] = {}
        self.highest = self.descriptors = 0
        self.spent = time.process_time()

    async def speak(self) -> None:
        while True:
            await asyncio.sleep(1 / RATE)
            for topic in TOPICS:
                now = time.monotonic_ns().to_bytes(8, "big")
                sequence = await self.broker.publish(topic, b"honest" + now + bytes(86))
                incarnation = self.broker.core.ref.incarnation  # type: ignore[union-attr]
                self.said[f"{topic} {self.broker.node} {incarnation}"] = sequence

    async def listen(self) -> None:
        async for item in self.broker.messages():
            if not isinstance(item, Message):
                self.gaps += 1
            elif item.payload[:6] == b"honest":
                node = getattr(item, "node", None) or item.publisher
                self.heard[f"{item.topic} {node} {item.incarnation}"].add(item.sequence)
                said = int.from_bytes(item.payload[6:14], "big")
                self.late_ms.append((said / 1e9, (time.monotonic_ns() - said) / 1e6))

    async def measure(self) -> None:
        while True:
            self.highest = max(self.highest, resident())
            self.descriptors = max(self.descriptors, open_descriptors())
            await asyncio.sleep(0.2)

    def mark(self) -> dict[str, Any]:
        late, self.late_ms = sorted(self.late_ms), []
        highest, self.highest = max(self.highest, resident()), 0
        descriptors, self.descriptors = max(self.descriptors, open_descriptors()), 0
        spent, self.spent = time.process_time() - self.spent, time.process_time()
        return {
            "name": self.broker.name,
            "late_ms": late,
            "memory": highest,
            "resident": resident(),
            "processor_s": spent,
            "descriptors": descriptors,
            "caches": caches_of(self.broker),
            "gaps": self.gaps,
            "said": self.said,
            "heard": {stream: (len(numbers), max(numbers)) for stream, numbers in self.heard.items()},
            "incarnation": self.broker.core.ref.incarnation,  # type: ignore[union-attr]
        }


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def caches_of(broker: Broker) -> int:
    """What is kept of others, in bytes, as far as the node shows it: descriptors, digests, probes, events, windows."""
    core: Any = broker.core
    if not hasattr(core, "sizes"):
        return 0
    sizes, status = core.sizes(), core.status()
    known = status.membership.known.values()
    kept = sum(40 * len(each.topics) + 120 * len(each.neighbours) + 300 for each in known)
    counted = sum(sizes) + status.membership.tombstones + status.repairs.handled
    return kept + 200 * counted + status.dissemination.bytes


async def live(name: str, join: tuple[str, ...]) -> None:
    node = Node(name, join)
    await node.broker.start()
    tasks = [asyncio.ensure_future(job) for job in (node.listen(), node.measure())]
    print(json.dumps({"address": node.broker.address, "http": node.broker.http_address}), flush=True)
    loop = asyncio.get_running_loop()
    while (line := (await loop.run_in_executor(None, sys.stdin.readline)).strip()) != "end":
        if line == "speak" and name in SPEAKERS:
            tasks.append(asyncio.ensure_future(node.speak()))
        print(json.dumps(node.mark()), flush=True)
    for task in tasks:
        task.cancel()
    await node.broker.abandon()


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], tuple(sys.argv[2:])))
