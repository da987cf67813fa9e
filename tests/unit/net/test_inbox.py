"""What has arrived and the application has not taken yet."""

from __future__ import annotations

import asyncio

from omen.net.inbox import Gap, Inbox, Message
from omen.net.settings import Limits


def test_an_application_that_is_too_slow_is_told_what_it_missed() -> None:
    async def test() -> None:
        inbox = Inbox(Limits(inbox_messages=3))
        for sequence in range(1, 8):
            inbox.put(Message("tea", b"x", 5, 1, sequence))
        inbox.close()
        items = [item async for item in inbox.take()]
        assert [item.sequence for item in items if isinstance(item, Message)] == [1, 2, 3]
        assert items[3] == Gap("tea", 5, 1, 4, 7, "inbox")
        assert inbox.overflowed == 4

    asyncio.run(test())


def test_a_gap_of_a_slow_application_never_reaches_over_what_it_is_given() -> None:
    async def test() -> None:
        inbox = Inbox(Limits(inbox_messages=3))
        said = [Message("tea", b"x", 5, 1, sequence) for sequence in range(1, 10)]
        assert [inbox.put(message) for message in said[:4]] == [True, True, True, False]
        taking = inbox.take()
        items = [await anext(taking), await anext(taking)]
        assert [inbox.put(message) for message in said[4:6]] == [True, False]
        inbox.put_gap(Gap("tea", 5, 1, 7, 8, "window"))
        inbox.put(said[8])
        inbox.close()
        items += [item async for item in taking]
        assert items == [
            *said[:3],
            Gap("tea", 5, 1, 4, 4, "inbox"),
            said[4],
            Gap("tea", 5, 1, 6, 6, "inbox"),
            Gap("tea", 5, 1, 7, 8, "window"),
            Gap("tea", 5, 1, 9, 9, "inbox"),
        ]
        assert (inbox.gaps, inbox.overflowed) == ({"window": 1, "inbox": 3}, 3)

    asyncio.run(test())


def test_headers_count_as_bytes() -> None:
    """Else messages without a payload could take 64 KiB each, and an inbox 6 GB."""
    inbox = Inbox(Limits(inbox_bytes=100_000))
    said = [Message("tea", b"", "ann", 1, sequence, bytes(60_000)) for sequence in range(1, 5)]
    assert [inbox.put(message) for message in said] == [True, True, False, False]
    assert inbox.pop() == said[0]
    assert inbox.pop() == said[1]
    assert inbox.pop() == Gap("tea", "ann", 1, 3, 4, "inbox")
    assert inbox.put(said[3])
