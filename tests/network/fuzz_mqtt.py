"""Bytes that no client of MQTT would send, to the codec and the sessions behind it.

    python -m tests.network.fuzz_mqtt --seconds 3600 [--seed 1]

Valid packets of both versions are mutated, and sent on connections that have just connected, or have not. What raises
anything is a finding; so is a message between two other clients that does not arrive, or memory that grows.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from collections import Counter

import mqtt5
from mqtt5 import (
    DisconnectPacket,
    PingReqPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
    Will,
)
from tests.contract.mqtt_table import Wire, framed, text
from tests.network.fuzz import mutate

from omen.net.mqtt.outputs import DoorLimits
from omen.net.mqtt.session import SessionLimits

V3_CONNECT = framed(0x10, text("MQTT") + b"\x04\x02\x00\x3c" + text("c"))


def samples() -> list[bytes]:
    """One of every packet that a client sends, in both versions."""
    will = Will("w", payload=b"gone", qos=QoS(1), retain=True, user_properties=[("a", "b")])
    packets = [
        mqtt5.ConnectPacket("c", will=will, username="ann", password=b"x", session_expiry_interval=5).write(),
        mqtt5.ConnectPacket("c", keep_alive=9, receive_max=3, max_packet_size=200).write(),
        PublishPacket("a/b", b"payload", qos=QoS(1), packet_id=3, user_properties=[("k", "v")]).write(),
        PublishPacket("a", b"x", qos=QoS(2), packet_id=4, topic_alias=1, message_expiry_interval=5).write(),
        PublishPacket("a", b"x", retain=True, response_topic="r", correlation_data=b"c", content_type="t").write(),
        SubscribePacket(7, [TopicFilter("a/+", max_qos=QoS(2)), TopicFilter("$share/g/#")], subscription_id=9).write(),
        UnsubscribePacket(8, ["a/+", "b"]).write(),
        *(kind(3).write() for kind in (PubAckPacket, PubRecPacket, PubRelPacket, PubCompPacket)),
        PingReqPacket().write(),
        DisconnectPacket(session_expiry_interval=4).write(),
    ]
    v3 = [
        V3_CONNECT,
        framed(0x10, text("MQTT") + b"\x04\xf6\x00\x3c" + text("c") + text("w") + text("x") + text("u") + text("p")),
        framed(0x32, text("a/b") + b"\0\3payload"),
        framed(0x82, b"\0\7" + text("a/+") + b"\2" + text("#") + b"\0"),
        framed(0xA2, b"\0\7" + text("a/+")),
        b"\x40\x02\0\3", b"\x50\x02\0\3", b"\x62\x02\0\3", b"\x70\x02\0\3", b"\xc0\0", b"\xe0\0",
    ]  # fmt: skip
    return packets + v3


class Attack:
    """A door with two clients that talk to each other, and one that sends anything."""

    LIVES = 2000

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._samples = samples()
        self.inputs = 0
        self.results: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        self._number = 10
        limits = DoorLimits(
            session=SessionLimits(queue_messages=50, queue_bytes=1 << 16), subscriptions=50, sessions=500
        )
        self.world = Wire(limits=limits)
        self.world.connect(1, "honest")
        self.world.subscribe(1, "honest/talk", qos=1)
        self.world.connect(2, "other")

    def one(self) -> None:
        """One input; then the two talk."""
        self.inputs += 1
        if self.inputs % self.LIVES == 0:
            self.begin()
        world, draw = self.world, self._draw
        self._number += 1
        number = self._number
        begin = draw.choice((b"", mqtt5.ConnectPacket(f"h{number % 50}").write(), V3_CONNECT))
        if begin:
            world.bytes_in(number, begin)
        data = b"".join(draw.choice(self._samples) for _ in range(draw.choice((1, 1, 3))))
        data = mutate(data, draw)
        cut = draw.randrange(len(data) + 1)
        world.bytes_in(number, data[:cut])
        world.bytes_in(number, data[cut:])
        self.results["closed" if number in world.closed else "open"] += 1
        if draw.randrange(2):
            world.door.lost(number, world.now)
        world.now += 0.01
        world.door.tick(world.now)
        world.settle()
        self._talk()

    def _talk(self) -> None:
        world = self.world
        world.take(1)
        answers = world.publish(2, "honest/talk", b"still here", qos=1)
        got = [
            packet for packet in world.take(1) if isinstance(packet, PublishPacket) and packet.topic == "honest/talk"
        ]
        assert [packet.payload for packet in got] == [b"still here"], "another client's message did not arrive"
        assert len(answers) == 1
        world.send(1, PubAckPacket(got[0].packet_id or 0))
        assert len(world.door.sessions) <= 502
        world.got = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    attack, findings = Attack(options.seed), Counter[str]()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        try:
            attack.one()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            findings[f"{type(error).__name__} {last.filename}:{last.lineno} {str(error)[:100]}"] += 1
            attack.begin()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{attack.inputs} inputs, {dict(attack.results)}, {memory} MB, findings: {dict(findings)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
