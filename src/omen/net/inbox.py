"""What has arrived and the application has not taken yet: bounded, and never short of something in silence."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator

import msgspec

from omen.errors import OmenError
from omen.net.errors import SecondConsumer
from omen.net.settings import Limits
from omen.protocol.messages.publications import read_fields

WINDOW, INBOX = "window", "inbox"
Stream = tuple[str, int, int]


class Message(msgspec.Struct, frozen=True, gc=False):
    """A publication as an application sees it.

    `publisher` is the name of the node that published it, where that is known, else its place in hexadecimal;
    `incarnation` which of its incarnations, and `sequence` counts what it published on this topic since its process
    began, from 1. For each of the three, messages come in order and once. `fields`: the block of fields as it came.
    `node`: the publisher's place on the ring, which is known always. `verified`: it is signed by the publisher that it
    names, as this node has seen for itself (settings `security.sign` and `security.verify`).
    """

    topic: str
    payload: bytes
    publisher: str
    incarnation: int
    sequence: int
    fields: bytes = b""
    node: int = 0
    verified: bool = False

    @property
    def reply_to(self) -> str | None:
        """The topic on which the publisher wants a reply; `Broker.reply` sends one."""
        if not self.fields:
            return None
        try:
            return read_fields(self.fields).reply_to
        except msgspec.MsgspecError:
            return None

    @property
    def headers(self) -> dict[str, str]:
        """What the publisher sent along; empty where it is nothing or cannot be read."""
        if not self.fields:
            return {}
        try:
            return read_fields(self.fields).headers
        except msgspec.MsgspecError:
            return {}


class Gap(msgspec.Struct):
    """Publications `first` to `last` of a publisher will not come.

    `reason`: "window", no neighbour keeps them any more; "inbox", the application did not take messages fast enough.
    """

    topic: str
    publisher: str
    incarnation: int
    first: int
    last: int
    reason: str
    node: int = 0


class Inbox:
    """A queue with a limit in messages and bytes; what does not fit becomes a `Gap` in its place."""

    def __init__(self, limits: Limits) -> None:
        self.set_limits(limits)
        self._items: deque[Message | Gap | OmenError] = deque()
        self._bytes = 0
        self._overflow: dict[Stream, Gap] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._is_closed = False
        self.overflowed = 0
        self.gaps: Counter[str] = Counter({WINDOW: 0, INBOX: 0})

    def __len__(self) -> int:
        return len(self._items)

    def set_limits(self, limits: Limits) -> None:
        """What is in it stays, also where that is more."""
        self._most, self._most_bytes = limits.inbox_messages, limits.inbox_bytes

    def put(self, message: Message) -> bool:
        """Whether it was taken. A gap of its stream that is still in the queue ends before it."""
        items, size = self._items, self._bytes
        if len(items) >= self._most or size >= self._most_bytes:
            self._miss(message)
            return False
        self._bytes = size + len(message.payload) + len(message.fields)
        items.append(message)
        if self._overflow:
            self._overflow.pop((message.topic, message.node, message.incarnation), None)
        if self._waiters:
            self._wake()
        return True

    def put_gap(self, gap: Gap) -> None:
        self.gaps[gap.reason] += 1
        self._overflow.pop((gap.topic, gap.node, gap.incarnation), None)
        self._items.append(gap)
        self._wake()

    def _miss(self, message: Message) -> None:
        self.overflowed += 1
        stream = (message.topic, message.node, message.incarnation)
        gap = self._overflow.get(stream)
        if gap is None:
            gap = Gap(
                message.topic,
                message.publisher,
                message.incarnation,
                message.sequence,
                message.sequence,
                INBOX,
                message.node,
            )
            self.put_gap(gap)
            self._overflow[stream] = gap
        else:
            gap.last = message.sequence

    def _close(self, gap: Gap) -> None:
        """It is in the application's hands: what is missed from now on is another."""
        stream = (gap.topic, gap.node, gap.incarnation)
        if self._overflow.get(stream) is gap:
            del self._overflow[stream]

    def put_error(self, error: OmenError) -> None:
        """The application hears of it where it takes messages, after those that came before."""
        self._items.append(error)
        self._wake()

    def close(self) -> None:
        """Nothing more comes: consumers end once all is taken."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def take(self) -> Messages:
        """Everything as it comes, until the inbox is closed."""
        return Messages(self)

    def pop(self) -> Message | Gap | None:
        """What came first; None: there is nothing. An error for the application is raised in its turn."""
        if not self._items:
            return None
        item = self._items.popleft()
        if isinstance(item, Message):
            self._bytes -= len(item.payload) + len(item.fields)
            return item
        if isinstance(item, OmenError):
            raise item
        if self._overflow:
            self._close(item)
        return item

    async def wait(self) -> bool:
        """Wait until there is something; whether there may be more after it. Who stops waiting loses nothing."""
        if self._waiters:
            raise SecondConsumer("a consumer waits for the next message already: an inbox has one")
        if self._is_closed:
            return False
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        return True


class Messages(AsyncIterator[Message | Gap]):
    """What arrives, as it arrives. A cancelled or timed-out `anext` loses nothing and does not end it."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __aiter__(self) -> Messages:
        return self

    async def __anext__(self) -> Message | Gap:
        inbox = self._inbox
        while (item := inbox.pop()) is None:
            if not await inbox.wait():
                raise StopAsyncIteration
        return item
