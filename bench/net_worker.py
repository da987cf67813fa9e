"""One process of a network benchmark: publishes at a rate, times what comes in, and does what it is told over a pipe.

Commands are lines: `rate R` (publications per second from now on), `count` (forget what was counted), `tell` (answer
with a line of JSON), `end`. A payload begins with the time it was published, by the clock all processes share, and by
whom: servers give publishers their own publications back, which are not counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

STAMP = struct.Struct(">QH")
TICK_S = 0.005
BEHIND_S = 1.0  # a publisher that cannot keep its rate does not make up for more than this
BUCKETS_PER_DOUBLING = 8


class Speaker(Protocol):
    """A client of whatever is measured."""

    async def publish(self, topic: str, payload: bytes) -> Any: ...


class Latencies:
    """Counts by logarithm: eight buckets for each doubling, from a microsecond up."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.count = 0

    def observe(self, nanoseconds: int) -> None:
        scaled = max(nanoseconds // 1000, 1)
        shift = max(scaled.bit_length() - 4, 0)
        bucket = shift << 4 | scaled >> shift
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.count += 1


def milliseconds_at(counts: dict[int, int], share: float) -> float:
    """The latency that this share of deliveries stayed below, to within an eighth."""
    total = sum(counts.values())
    so_far = 0
    for bucket in sorted(counts, key=lambda bucket: (bucket & 15) << (bucket >> 4)):
        so_far += counts[bucket]
        if so_far >= share * total:
            return ((bucket & 15) + 1 << (bucket >> 4)) / 1000
    return 0.0


@dataclass
class Load:
    """Which topics to publish on, to how many others each goes, and how large.

    `leads`: the first of those that share a process, who tells its processor time.
    """

    topics: list[str]
    copies: list[int]
    payload: int
    seed: int
    leads: bool = True


class Worker:
    """Drives one client."""

    def __init__(self, speaker: Speaker, load: Load, facts: Callable[[], dict[str, Any]]) -> None:
        self._speaker = speaker
        self._load = load
        self._facts = facts
        self._random = random.Random(load.seed)
        self._rate = 0.0
        self.latencies = Latencies()
        self.published = 0
        self.due = 0
        self._since = time.process_time()
        self._before: dict[str, Any] = {}

    def take(self, payload: bytes) -> None:
        """Something came in."""
        published, by = STAMP.unpack_from(payload)
        if by != self._load.seed:
            self.latencies.observe(time.monotonic_ns() - published)

    async def serve(self, commands: int, answers: int) -> None:
        """Until told to end."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(commands, "rb"))
        publishing = asyncio.ensure_future(self._publish())
        while line := (await reader.readline()).decode().split():
            if line[0] == "rate":
                self._rate = float(line[1])
            elif line[0] == "count":
                self.latencies, self.published, self.due = Latencies(), 0, 0
                self._since, self._before = time.process_time(), self._facts()
            elif line[0] == "tell":
                os.write(answers, json.dumps(self._tell()).encode() + b"\n")
            elif line[0] == "end":
                break
        publishing.cancel()

    def _tell(self) -> dict[str, Any]:
        now = self._facts()
        return {
            "delivered": self.latencies.count,
            "published": self.published,
            "due": self.due,
            "latencies": self.latencies.counts,
            "processor_s": time.process_time() - self._since if self._load.leads else 0.0,
            **{name: value - self._before.get(name, 0) for name, value in now.items()},
        }

    async def _publish(self) -> None:
        filler = bytes(max(self._load.payload - STAMP.size, 0))
        due = time.monotonic()
        topics = self._load.topics
        while True:
            rate = self._rate
            if not rate or not topics:
                await asyncio.sleep(TICK_S)
                due = time.monotonic()
                continue
            now = time.monotonic()
            due = max(due, now - BEHIND_S)
            while due <= now:
                number = self._random.randrange(len(topics))
                await self._speaker.publish(topics[number], STAMP.pack(time.monotonic_ns(), self._load.seed) + filler)
                self.published += 1
                self.due += self._load.copies[number]
                due += 1 / rate
            await asyncio.sleep(max(due - time.monotonic(), TICK_S))
