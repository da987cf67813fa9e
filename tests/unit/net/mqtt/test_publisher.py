"""What clients publish: held back while others do not keep up, and what they are told where it fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mqtt5 import PubAckReasonCode

from omen.errors import Denied, InvalidInput, OmenError
from omen.net.errors import Stopped
from omen.net.mqtt.client_link import ClientLink
from omen.net.mqtt.outputs import Publish, Retained
from omen.net.mqtt.publisher import BUSY_S, Publisher, reason_of
from omen.net.mqtt.records import TopicsBusy
from omen.net.mqtt.session import ApplicationMessage


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Denied("no"), PubAckReasonCode.NOT_AUTHORIZED),
        (InvalidInput("too large"), PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        (Stopped("leaving"), PubAckReasonCode.UNSPECIFIED_ERROR),
    ],
)
def test_the_reason_tells_whether_it_is_of_use_to_send_the_message_again(
    error: OmenError, reason: PubAckReasonCode
) -> None:
    assert reason_of(error) is reason


class Front:
    """A front door whose broker takes everything."""

    def __init__(self) -> None:
        self.published: list[str] = []
        self.busy: set[str] = set()
        self.broker: Any = SimpleNamespace(
            publish=self._publish,
            wants=lambda topic: True,
            config=SimpleNamespace(mqtt_ack="tree"),
            held=lambda topic: 1 << 30,
            lacks=lambda topic, sequence: False,
            is_linking=lambda topic: True,
            name="n",
            driver="first",
        )
        self.acknowledged: list[int] = []
        self.refused: list[tuple[int, PubAckReasonCode]] = []
        self.door: Any = SimpleNamespace(
            is_busy=lambda topic, now: topic in self.busy,
            address=lambda one: one,
            is_not_for_its_client=lambda one: False,
            acknowledged=lambda token, now: self.acknowledged.append(token),
            refused=lambda token, reason, now: self.refused.append((token, reason)),
        )
        self.keeper: Any = SimpleNamespace(retain=self._retain)
        self.kept: list[Retained] = []
        self.has_room = True
        self.act = self.act_soon = lambda: None
        self.start = asyncio.ensure_future

    async def say(self, topic: str, record: Any) -> None:
        pass

    async def _retain(self, kept: Retained) -> bool:
        self.kept.append(kept)
        return self.has_room

    async def _publish(self, topic: str, payload: bytes, fields: Any) -> int:
        self.published.append(topic)
        return len(self.published)


def test_a_message_with_qos_1_waits_while_those_who_read_its_topic_here_or_elsewhere_do_not_keep_up() -> None:
    async def publish() -> None:
        front: Any = Front()
        publisher = Publisher(front)
        publisher.announced.update("abc")
        front.busy.add("a")
        publisher.hear_busy(TopicsBusy("n1#x", ["b"]), 1e12)
        links = {topic: ClientLink(front, number, 1000) for number, topic in enumerate("abc")}
        for topic, link in links.items():
            publisher.publish(link, Publish(link.number, 1, ApplicationMessage(topic, b"", qos=1)))
        await asyncio.sleep(0.05)
        assert front.published == ["c"]
        publisher.publish(links["c"], Publish(2, 0, ApplicationMessage("a", b"")))
        await asyncio.sleep(0.01)
        assert front.published == ["c", "a"], "QoS 0 is not queued for anybody, and does not wait"
        front.busy.clear()
        publisher.hear_busy(TopicsBusy("n1#x", []), 1e12 + BUSY_S)
        async with asyncio.timeout(2):
            while len(front.published) < 4:
                await asyncio.sleep(0.01)
        assert publisher.held_back == 2

    asyncio.run(publish())


def test_a_node_that_counts_anew_acknowledges_what_it_publishes_then_and_has_the_rest_sent_again() -> None:
    """Sequences of two incarnations in one queue: the first ones would hold up the others."""

    async def publish() -> None:
        front: Any = Front()
        held = {"first": 0, "second": 0}
        front.broker.held = lambda topic: held[front.broker.driver]
        publisher = Publisher(front)
        publisher.announced.add("a")
        link = ClientLink(front, 1, 1000)
        for token in (1, 2):
            publisher.publish(link, Publish(1, token, ApplicationMessage("a", b"", qos=1)))
        await asyncio.sleep(0.02)
        front.published.clear()
        front.broker.driver, held["second"] = "second", 1
        publisher.publish(link, Publish(1, 3, ApplicationMessage("a", b"", qos=1)))
        await asyncio.sleep(0.05)
        again = PubAckReasonCode.UNSPECIFIED_ERROR
        assert (front.acknowledged, front.refused) == ([3], [(1, again), (2, again)])

    asyncio.run(publish())


@pytest.mark.parametrize("has_room", [True, False])
def test_a_retained_message_is_acknowledged_only_where_nodes_have_stored_it(has_room: bool) -> None:
    async def publish() -> None:
        front: Any = Front()
        front.has_room = has_room
        publisher = Publisher(front)
        publisher.announced.add("a")
        message = ApplicationMessage("a", b"x", qos=1, retain=True)
        publisher.publish(ClientLink(front, 1, 1000), Publish(1, 7, message, 12.345))
        await asyncio.sleep(0.03)
        assert [one.version for one in front.kept] == [(12_345, "n")], "when it came, not when it was published"
        assert front.acknowledged == ([7] if has_room else [])
        assert front.refused == ([] if has_room else [(7, PubAckReasonCode.QUOTA_EXCEEDED)])

    asyncio.run(publish())
