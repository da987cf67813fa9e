"""How publications flow through a node: waiting for room before one is published, draining, streams that stall."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from omen.errors import InvalidInput
from omen.protocol.events import Held
from omen.protocol.messages.publications import FIELDS_BYTES_AT_MOST, Fields, write_fields

if TYPE_CHECKING:
    from omen.net.broker import Broker
    from omen.net.driver import Driver

POLL_S = 0.005
STALLED_S = 2.0
"""A stream that waits for a hole for longer is stalled."""
LACKING_AT_MOST = 256
"""Ranges of a topic that neighbours lack, so many are remembered."""


class Stalled(msgspec.Struct, frozen=True):
    """A stream that waits for a hole: `missing` so many publications that are known of, for so many seconds."""

    topic: str
    publisher: str
    incarnation: int
    missing: int
    seconds: float


def stalled_streams(broker: Broker) -> list[Stalled]:
    """Streams of subscribed topics that have waited for longer than `STALLED_S`, the longest first."""
    driver = broker.driver
    if driver is None or driver.core is None:
        return []
    found = [
        Stalled(
            broker.names[topic],
            driver.peers.label_of(publisher),
            incarnation,
            state.known - state.settled,
            state.waits / 1e6,
        )
        for (topic, publisher, incarnation), state in driver.core.streams().items()
        if topic in broker.subscribed_keys and state.waits >= STALLED_S * 1e6
    ]
    return sorted(found, key=lambda stream: -stream.seconds)


def fields_of(headers: Mapping[str, str] | None) -> bytes:
    """The block of fields for these headers. InvalidInput: they are not text, or too much."""
    if not headers:
        return b""
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidInput(f"headers must be text, not {name!r}: {value!r}")
    return block_of(Fields(headers=dict(headers)))


def block_of(fields: Fields) -> bytes:
    """The block of these fields. InvalidInput: they are too much."""
    block = write_fields(fields)
    if len(block) > FIELDS_BYTES_AT_MOST:
        raise InvalidInput(f"headers of {len(block)} bytes: at most {FIELDS_BYTES_AT_MOST} are taken")
    return block


async def wait_for_room(driver: Driver, key: int, size: int, patience_s: float) -> float:
    """Backpressure: until no link is full, and everybody on the topic can take so many bytes more, but for each of the
    two no longer than this; how long it was.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await driver.peers.queues.wait_for_congested()
    deadline = loop.time() + patience_s
    while driver.core is not None and driver.core.room(key, driver.now()) < size and loop.time() < deadline:
        await asyncio.sleep(POLL_S)
    return loop.time() - begun


async def wait_until_held(driver: Driver, timeout_s: float) -> int:
    """Until neighbours hold all that was accepted; how many publications they do not when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    lost = driver.core.not_held() if driver.core is not None else 0
    while driver.core is not None and not driver.core.stopped:
        left = driver.core.unheld()
        if not left or loop.time() >= deadline:
            return left + driver.core.not_held() - lost
        await asyncio.sleep(POLL_S)
    return 0


class Acknowledgements:
    """How far neighbours hold what this node publishes, by topic, and what they never had."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}
        self._lacking: dict[int, list[range]] = {}

    def hear(self, held: Held) -> None:
        before = self.upto(held.topic)
        self._held[held.topic] = held.sequence
        if held.passed > before:
            ranges = self._lacking.setdefault(held.topic, [])
            ranges.append(range(before + 1, held.passed + 1))
            del ranges[:-LACKING_AT_MOST]

    def upto(self, topic: int) -> int:
        return self._held.get(topic, 0)

    def lacks(self, topic: int, sequence: int) -> bool:
        """Whether some neighbour never had this publication, and can no longer have it."""
        return any(sequence in each for each in self._lacking.get(topic, ()))
