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
from omen.net.mqtt.outputs import Publish
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
        )
        self.door: Any = SimpleNamespace(
            is_busy=lambda topic, now: topic in self.busy,
            address=lambda one: one,
            is_not_for_its_client=lambda one: False,
            acknowledged=lambda token, now: None,
        )
        self.act = self.act_soon = lambda: None
        self.start = asyncio.ensure_future

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
