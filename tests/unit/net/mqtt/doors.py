"""Doors without sockets: clients are numbers, packets go in, packets come out."""

from __future__ import annotations

from typing import Any

import mqtt5
from mqtt5 import (
    ConnAckReasonCode,
    ConnectPacket,
    PublishPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
)

from omen.net.mqtt.codec import V5
from omen.net.mqtt.door import Door
from omen.net.mqtt.outputs import (
    Carry,
    Claim,
    Close,
    DoorLimits,
    Forget,
    GiveUp,
    Publish,
    Retained,
    Rights,
    Save,
    Write,
)
from omen.net.mqtt.session import ApplicationMessage
from omen.net.mqtt.stored import Change, StoredSession, head_key, read_session, segment_key
from omen.protocol.messages.records import Record


class Harness:
    """A door whose wishes are granted at once, unless `grants` is False: publications come back to its own clients."""

    def __init__(self, limits: DoorLimits | None = None, rights: Rights | None = None) -> None:
        free = Rights(lambda *_: ConnAckReasonCode.SUCCESS, lambda *_: True, lambda *_: True)
        self.door = Door(limits or DoorLimits(), rights or free)
        self.now = 1000.0
        self.grants = True
        self.got: dict[int, list[Any]] = {}
        self.closed: set[int] = set()
        self.published: list[ApplicationMessage] = []
        self.carried: set[str] = set()
        self.claims: list[Claim] = []
        self.tokens: list[int] = []

    def settle(self) -> None:
        while outputs := self.door.take():
            for output in outputs:
                self._do(output)

    def _do(self, output: Any) -> None:
        match output:
            case Write(number, data):
                view = memoryview(data)
                while view:
                    packet, size = mqtt5.read(view)
                    self.got.setdefault(number, []).append(packet)
                    view = view[size:]
            case Close(number):
                self.closed.add(number)
            case Publish(_, token, message):
                self.published.append(message)
                self.tokens.append(token)
                if self.grants:
                    if message.topic in self.carried:
                        self.door.deliver(message, self.now)
                    if message.retain:
                        self.door.retain(Retained((len(self.published), "n"), message))
                    self.door.acknowledged(token, self.now)
            case Carry(token, topics):
                self.carried.update(topics)
                self.door.linked(token, self.now)
            case GiveUp(topics):
                self.carried.difference_update(topics)
            case Claim() as claim:
                self.claims.append(claim)
                if claim.wants_session:
                    self.door.claimed(claim.token, None, self.now)

    def connect(self, number: int, client_id: str = "", **settings: Any) -> Any:
        self.door.open(number, self.now)
        clean = settings.pop("clean_start", True)
        self.send(number, ConnectPacket(client_id or f"c{number}", clean_start=clean, **settings))
        return self.take(number)[0]

    def send(self, number: int, packet: Any) -> None:
        self.door.receive(number, packet, V5, self.now)
        self.settle()

    def take(self, number: int) -> list[Any]:
        return self.got.pop(number, [])

    def subscribe(self, number: int, pattern: str, qos: int = 2, **options: Any) -> list[Any]:
        identifier = options.pop("identifier", None)
        asked = TopicFilter(pattern, max_qos=QoS(qos), **options)
        self.send(number, SubscribePacket(9, [asked], subscription_id=identifier))
        return self.take(number)

    def publish(self, number: int, topic: str, payload: bytes = b"x", qos: int = 0, **more: Any) -> list[Any]:
        packet_id = more.pop("packet_id", 5 if qos else None)
        self.send(number, PublishPacket(topic, payload, qos=QoS(qos), packet_id=packet_id, **more))
        return self.take(number)


def payloads(packets: list[Any]) -> list[tuple[bytes, int, bool]]:
    return [(one.payload, int(one.qos), one.retain) for one in packets if isinstance(one, PublishPacket)]


class Stored(Harness):
    """A door whose sessions are stored, in `records`; `holds`: what is to be stored waits."""

    def __init__(self, records: dict[bytes, bytes] | None = None) -> None:
        super().__init__()
        self.door.owner = f"door{id(self)}"
        self.records = {} if records is None else records
        self.holds = False
        self.waiting: list[str] = []

    def _do(self, output: Any) -> None:
        match output:
            case Save(client_id):
                self.waiting.append(client_id)
                if not self.holds:
                    self._store_all()
            case Forget(client_id, segments):
                for key in (head_key(client_id), *(segment_key(client_id, number) for number in segments)):
                    self.records.pop(key, None)
            case _:
                super()._do(output)

    def store(self) -> None:
        self._store_all()
        self.settle()

    def _store_all(self) -> None:
        for client_id in self.waiting:
            while (changes := self.door.begin_save(client_id, self.now)) is not None:
                self.write(changes)
                self.door.saved(client_id)
        self.waiting.clear()

    def write(self, changes: list[Change]) -> None:
        self.records.update({one.key: one.value for one in changes})

    def crash(self) -> Stored:
        """Another node, with nothing but what was stored."""
        return Stored(self.records)

    def stored(self, client_id: str) -> StoredSession | None:
        return read_session(client_id, [Record(0, key, 1, 0, value, 1) for key, value in self.records.items() if value])

    def come(self, number: int, client_id: str, **settings: Any) -> list[Any]:
        """A client connects, and its session is brought."""
        self.door.open(number, self.now)
        self.door.receive(number, ConnectPacket(client_id, session_expiry_interval=10, **settings), V5, self.now)
        (claim,) = self.door.take()
        assert isinstance(claim, Claim) and claim.wants_session
        self.door.claimed(claim.token, self.stored(client_id), self.now)
        self.settle()
        return self.take(number)
