"""What doors say to each other, and what becomes of it where a node has missed some."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mqtt5 import ConnAckReasonCode

from omen.net.inbox import Gap, Message
from omen.net.mqtt import keeper, listener, records
from omen.net.mqtt.door import Door
from omen.net.mqtt.listener import FrontDoor
from omen.net.mqtt.outputs import DoorLimits, Retained, Rights
from omen.net.mqtt.session import ApplicationMessage
from omen.net.records import Records


class Node:
    """A broker that notes what its door says."""

    def __init__(self) -> None:
        self.name, self.node, self.is_leaving = "n1", 1, False
        self.driver: Any = SimpleNamespace(incarnation=1)
        self.log = SimpleNamespace(warning=lambda *_, **__: None)
        self.records = Records(self)  # type: ignore[arg-type]
        self.said: list[records.Record | None] = []

    async def publish(self, _: str, payload: bytes) -> int:
        self.said.append(records.read_record(payload))
        return len(self.said)


def front_door(node: Node) -> FrontDoor:
    rights = Rights(lambda *_: ConnAckReasonCode.SUCCESS, lambda *_: True, lambda *_: True)
    return FrontDoor(node, Door(DoorLimits(), rights))  # type: ignore[arg-type]


def test_a_door_that_missed_what_others_said_of_retained_messages_asks_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would have old ones for ever: no record of theirs need be here."""
    monkeypatch.setattr(listener, "ASK_AGAIN_S", 0.01)
    node = Node()

    async def miss() -> None:
        front = front_door(node)
        for first in (1, 5):
            front.consume(Gap(records.RETAINED, "n2", 1, first, first + 3, "window", 2))
        await asyncio.sleep(0.05)

    asyncio.run(miss())
    assert node.said == [records.AskRetained("n1")]


def test_a_node_that_goes_on_in_another_incarnation_asks_for_what_it_may_have_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(keeper, "HERE_PERIOD_S", 0.02)
    node = Node()

    async def go_on() -> None:
        front = front_door(node)
        front.keeper.doors.is_settled = lambda now: False  # type: ignore[method-assign]
        running = front.start(front.keeper.run())
        await asyncio.sleep(0.05)
        assert records.AskRetained("n1") not in node.said
        node.driver = SimpleNamespace(incarnation=2)
        await asyncio.sleep(0.1)
        running.cancel()

    asyncio.run(go_on())
    assert node.said.count(records.AskRetained("n1")) == 1


@pytest.mark.parametrize("is_unsure", [False, True])
def test_a_door_that_has_just_asked_itself_lets_others_answer_first(
    is_unsure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes that are started again at once have old messages both: the answer of one keeps others from theirs."""
    monkeypatch.setattr(listener, "ANSWER_WITHIN_S", 0.01)
    monkeypatch.setattr(listener, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(listener, "UNSURE_LATER_S", 0.1)
    node = Node()
    kept = Retained((1, "n1"), ApplicationMessage("a", b"old", retain=True))

    async def answer() -> None:
        front = front_door(node)
        front.door.retain(kept)
        if is_unsure:
            front.ask_again(records.RETAINED)
            await asyncio.sleep(0.02)
        asked = records.write_record(records.AskRetained("n2"))
        front.consume(Message(records.ASKS, asked, "n2", 1, 1))
        await asyncio.sleep(0.05)
        answers = [one for one in node.said if isinstance(one, records.RetainedMessages)]
        assert len(answers) == (not is_unsure)
        await asyncio.sleep(0.15)

    asyncio.run(answer())
    assert records.RetainedMessages([kept], "n2") in node.said, "but it does answer where no other has"
