"""What frames of the live page cost, by kind: no more than their rows in docs/security.md say, and none is without."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from omen.net.broker import Broker
from omen.net.sending import WATCHING
from omen.net.watching import messages
from omen.net.watching.messages import Told, Watch

from .attackers import Attacker, hello_of
from .brokers import config, go, until

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NODES, COUNT, SECONDS = 5, 60, 3.0
ENTRY = msgspec.Raw(msgspec.msgpack.encode(b"x" * 1000))


def made_up(kind: type) -> Callable[[int], Watch | Told]:
    """As a member would say it, for eight nodes that are none."""
    if kind is Watch:
        return lambda number: Watch(1 + number % 8, number, 0, (), (1,))
    return lambda number: Told(1 + number % 8, (ENTRY,))


def bounds() -> dict[str, tuple[float, ...]]:
    table = PAGE.read_text().partition("<!-- costs of the live page -->")[2].partition("<!-- end of costs")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "`" in line]
    return {re.sub("`", "", row[0]): tuple(map(float, row[3:])) for row in rows}


def test_every_frame_of_the_live_page_has_a_row() -> None:
    kinds = {each.__name__ for each in vars(messages).values() if isinstance(each, type) and is_frame(each)}
    assert kinds == set(bounds()) == {"Watch", "Told"}


def is_frame(kind: type) -> bool:
    return issubclass(kind, msgspec.Struct) and kind.__struct_config__.tag is not None


@pytest.mark.parametrize("kind", [Watch, Told], ids=lambda kind: kind.__name__)
def test_a_frame_of_the_live_page_causes_no_more_than_its_row_says(kind: type) -> None:
    async def attack() -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(Broker(config("n0", "tea")))
            nodes = [first]
            for number in range(1, NODES):
                joins = config(f"n{number}", "tea", join=(first.address,))
                nodes.append(await stack.enter_async_context(Broker(joins)))
            await until(lambda: all(node.is_joined for node in nodes))
            attacker = await Attacker.dial(first.address, "127.0.7.1")
            assert await attacker.greet(hello_of("eve-0")) is not None
            if kind is Told:  # or there is no viewer to pass it on to
                for number in range(8):
                    attacker.send_frame(messages.encode(Watch(1 + number, 1, 0)))
                await asyncio.sleep(0.3)
            drivers = [node.driver for node in nodes if node.driver is not None]
            dials = sum(driver.peers.counters.dials for driver in drivers)
            sent = sum(node.gathering.sent_bytes for node in nodes)
            heard = sum(driver.received[WATCHING] for driver in drivers)
            attacker.sent = b""
            make = made_up(kind)
            for number in range(COUNT):
                attacker.send_frame(messages.encode(make(2 + number)))
            await asyncio.sleep(SECONDS)
            caused = sum(driver.received[WATCHING] for driver in drivers) - heard - COUNT
            found = (
                caused / COUNT,
                (sum(node.gathering.sent_bytes for node in nodes) - sent) / len(attacker.sent),
                sum(driver.peers.counters.dials for driver in drivers) - dials,
            )
            print(kind.__name__, found)
            assert caused > 0 and all(one <= most for one, most in zip(found, bounds()[kind.__name__], strict=True))
            attacker.close()

    go(attack())
