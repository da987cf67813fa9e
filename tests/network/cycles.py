"""Brokers that come and go in one process, thousands of times: what is left of them in memory?

python -m tests.network.cycles --cycles 10000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from omen.errors import OmenError
from omen.net.broker import Broker
from omen.net.event_loop import run
from omen.net.settings import LIVE, NodeConfig

AT_ONCE, WAVE = 8, 20
TOPICS = tuple(f"t{number}" for number in range(8))
QUICK = replace(
    LIVE,
    gossip_period=100_000,
    ready_rounds=1,
    heartbeat_period=500_000,
    tombstone_life=2_000_000,
    dissemination=replace(LIVE.dissemination, window_age=500_000, stream_memory=1_000_000),
)
"""What is remembered of nodes that left ends within seconds, so that a short course sees what does not end."""


@dataclass
class Course:
    """Resident megabytes now and then, and seconds."""

    megabytes: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cycles: int = 0
    failures: int = 0

    def growth(self, warm_up: float = 0.2) -> float:
        """By how much memory at the end exceeds memory after warming up, as a share; medians of a tenth of the run."""
        count = len(self.megabytes)
        width = max(count // 10, 1)
        start = int(count * warm_up)
        early = sorted(self.megabytes[start : start + width])[width // 2]
        late = sorted(self.megabytes[-width:])[width // 2]
        return late / early - 1


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def come_and_go(cluster: str, name: str, contact: str, number: int) -> bool:
    """One cycle: join, publish, leave."""
    topics = (TOPICS[number % len(TOPICS)], TOPICS[(number * 3 + 1) % len(TOPICS)])
    broker = Broker(NodeConfig(name, cluster, topics=topics, join=(contact,), protocol=QUICK))
    try:
        await broker.start()
        sequence = await broker.publish(topics[0], b"here")
        return await broker.wait_held(topics[0], sequence, 30.0)
    finally:
        await broker.stop()


async def course(cycles: int, minutes: float) -> Course:
    """Several small clusters side by side, in each one node after the other coming and going."""
    result = Course()
    begun = time.monotonic()
    numbers = iter(range(cycles))

    async def cluster(name: str) -> None:
        async with (
            Broker(NodeConfig("s0", name, topics=TOPICS, protocol=QUICK)) as first,
            Broker(NodeConfig("s1", name, topics=TOPICS, join=(first.address,), protocol=QUICK)) as second,
        ):
            readers = [asyncio.ensure_future(_read(broker)) for broker in (first, second)]
            for number in numbers:
                if time.monotonic() - begun > 60 * minutes:
                    break
                result.cycles += 1
                contact = (first, second)[number % 2].address
                try:
                    result.failures += not await come_and_go(name, f"c{number % 97}", contact, number)
                except (OmenError, OSError):
                    result.failures += 1
                if number % WAVE == 0:
                    gc.collect()
                    result.megabytes.append(resident_megabytes())
            for reader in readers:
                reader.cancel()

    await asyncio.gather(*(cluster(f"cluster{number}") for number in range(AT_ONCE)))
    result.seconds = time.monotonic() - begun
    return result


async def _read(broker: Broker) -> None:
    async for _ in broker.messages():
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop sooner after this")
    told = parser.parse_args()
    result = run(course(told.cycles, told.minutes))
    early, late = result.megabytes[len(result.megabytes) // 5], result.megabytes[-1]
    print(f"{result.cycles} cycles in {result.seconds:.0f} s, {result.failures} failed")
    print(f"{early:.1f} MB after warming up, {late:.1f} MB at the end: {result.growth():+.1%}")
    return 0 if result.growth() <= 0.05 and not result.failures else 1


if __name__ == "__main__":
    sys.exit(main())
