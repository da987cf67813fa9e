"""What has arrived and the application has not taken yet: bounded, and never short of something in silence."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from omen.net.settings import Limits

WINDOW, INBOX = "window", "inbox"
Stream = tuple[str, int, int]


class Message(msgspec.Struct, frozen=True, gc=False):
    """A publication as an application sees it.

    `publisher` is the place of the node that published it, `incarnation` that node's incarnation, and `sequence` counts
    its publications on this topic since its process began, from 1. For each of the three, messages come in order and
    once.
    """

    topic: str
    payload: bytes
    publisher: int
    incarnation: int
    sequence: int


@dataclass(slots=True)
class Gap:
    """Publications `first` to `last` of a publisher will not come.

    `reason`: "window", no neighbour keeps them any more; "inbox", the application did not take messages fast enough.
    """

    topic: str
    publisher: int
    incarnation: int
    first: int
    last: int
    reason: str


class Inbox:
    """A queue with a limit in messages and bytes; what does not fit becomes a `Gap` in its place."""

    def __init__(self, limits: Limits) -> None:
        self._most, self._most_bytes = limits.inbox_messages, limits.inbox_bytes
        self._items: deque[Message | Gap] = deque()
        self._bytes = 0
        self._overflow: dict[Stream, Gap] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._is_closed = False
        self.overflowed = 0
        self.gaps: Counter[str] = Counter({WINDOW: 0, INBOX: 0})

    def __len__(self) -> int:
        return len(self._items)

    def put(self, message: Message) -> bool:
        """Whether it was taken. A gap of its stream that is still in the queue ends before it."""
        items = self._items
        if len(items) >= self._most or self._bytes >= self._most_bytes:
            self._miss(message)
            return False
        self._bytes += len(message.payload)
        items.append(message)
        if self._overflow:
            self._overflow.pop((message.topic, message.publisher, message.incarnation), None)
        if self._waiters:
            self._wake()
        return True

    def put_gap(self, gap: Gap) -> None:
        self.gaps[gap.reason] += 1
        self._overflow.pop((gap.topic, gap.publisher, gap.incarnation), None)
        self._items.append(gap)
        self._wake()

    def _miss(self, message: Message) -> None:
        self.overflowed += 1
        stream = (message.topic, message.publisher, message.incarnation)
        gap = self._overflow.get(stream)
        if gap is None:
            gap = Gap(*stream, message.sequence, message.sequence, INBOX)
            self.put_gap(gap)
            self._overflow[stream] = gap
        else:
            gap.last = message.sequence

    def _close(self, gap: Gap) -> None:
        """It is in the application's hands: what is missed from now on is another."""
        stream = (gap.topic, gap.publisher, gap.incarnation)
        if self._overflow.get(stream) is gap:
            del self._overflow[stream]

    def close(self) -> None:
        """Nothing more comes: consumers end once all is taken."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def take(self) -> AsyncIterator[Message | Gap]:
        """Everything as it comes, until the inbox is closed."""
        while True:
            while self._items:
                item = self._items.popleft()
                if isinstance(item, Message):
                    self._bytes -= len(item.payload)
                elif self._overflow:
                    self._close(item)
                yield item
            if self._is_closed:
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
