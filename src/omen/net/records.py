"""Stored records as a broker's parts use them: written and read by waiting for it, and kept on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from omen.errors import CannotWrite
from omen.net.record_file import RecordFile
from omen.protocol import events
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.records import Record

if TYPE_CHECKING:
    from omen.net.member import ClusterMember

ANSWER_S = 10.0
"""The core answers by itself, and sooner; after this it is one that has begun anew and will not."""


class Found(msgspec.Struct, frozen=True):
    """What was read. `is_sure`: another node has answered, or there is none."""

    records: tuple[Record, ...]
    is_sure: bool


class Records:
    """The stored records of one node. `listen`: called with each one that this node keeps from now on."""

    def __init__(self, broker: ClusterMember) -> None:
        self._broker = broker
        self._file: RecordFile | None = None
        self._is_failing = False
        self._token = 0
        self._waiting: dict[int, asyncio.Future[int | Found]] = {}
        self._last_version = 0
        self.kept: dict[tuple[int, bytes], Record] = {}
        self.listen: Callable[[Record], None] | None = None

    def open(self) -> tuple[Record, ...]:
        """What the disk has kept, for the core."""
        config = self._broker.config
        if not config.state:
            return ()
        try:
            if self._file is None:
                self._file = RecordFile(config.state, config.name, config.protocol.storage_bytes)
            found = self._file.read()
        except CannotWrite as error:
            self._broker.log.warning("records_not_kept", cause=str(error))
            return ()
        self.kept.update({(record.place, record.key): record for record in found})
        return found

    def make(self, place: str, key: bytes, value: bytes, life_s: float) -> Record:
        """A record that replaces all earlier ones of its key. Versions go by the clock, and never back."""
        self._last_version = max(self._last_version + 1, int(time.time() * 1000))
        return Record(place_of(place), key, self._last_version, self._broker.node, value, int(life_s * 1000))

    def note_version(self, version: int) -> None:
        """What is written from now on is later than this."""
        self._last_version = max(self._last_version, version)

    async def store(self, records: Iterable[Record]) -> int:
        """Store records of one place; how many other nodes have them."""
        written = tuple(records)
        answer = await self._ask(lambda token: events.Store(token, written))
        return answer if isinstance(answer, int) else 0

    async def fetch(self, place: str) -> Found:
        """The latest records of a place."""
        answer = await self._ask(lambda token: events.Fetch(token, place_of(place)))
        return answer if isinstance(answer, Found) else Found((), False)

    async def _ask(self, event: Callable[[int], events.Input]) -> int | Found | None:
        driver = self._broker.driver
        if driver is None:
            return None
        self._token += 1
        token = self._token
        future: asyncio.Future[int | Found] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        try:
            driver.feed(event(token))
            async with asyncio.timeout(ANSWER_S):
                return await future
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(token, None)

    def hear(self, output: events.OfRecords) -> None:
        match output:
            case events.Stored(token, copies):
                self._answer(token, copies)
            case events.Fetched(token, records, is_sure):
                self._answer(token, Found(records, is_sure))
            case events.RecordKept(record):
                self.kept[record.place, record.key] = record
                self._write(lambda file: file.put(record))
                if self.listen is not None:
                    self.listen(record)
            case events.RecordDropped(place, key):
                self.kept.pop((place, key), None)
                self._write(lambda file: file.drop(place, key))

    def _answer(self, token: int, answer: int | Found) -> None:
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_result(answer)

    def _write(self, step: Callable[[RecordFile], None]) -> None:
        """A disk that fails costs the records of a restart, not the node."""
        if self._file is None:
            return
        try:
            step(self._file)
            self._is_failing = False
        except CannotWrite as error:
            if not self._is_failing:
                self._is_failing = True
                self._broker.log.warning("records_not_kept", cause=str(error))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
