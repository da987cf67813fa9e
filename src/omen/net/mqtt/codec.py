"""Packets of MQTT 5 and 3.1.1 on the wire.

MQTT 5 is read and written by the library `mqtt5`. A packet of 3.1.1 becomes the one of MQTT 5 that says the same, and
back, so that everything behind this file knows one version. The library's enumerations are no numbers, whatever their
types say: `int()` makes one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    PingReqPacket,
    PingRespPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
    Will,
)

from omen.errors import OmenError
from omen.net.mqtt.strict import read_v5

Packet: TypeAlias = mqtt5.Packet
V3, V5 = 4, 5
"""The protocol levels of MQTT 3.1.1 and 5."""
LONGEST_EXPIRY = 0xFFFFFFFF
"""A session that never ends."""
CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = range(8, 15)
FLAGS = {PUBREL: 2, SUBSCRIBE: 2, UNSUBSCRIBE: 2}
"""The lower half of the first byte, where it is not 0 (3.1.1, table 2.2)."""
CONNECT_RETURN = {
    int(ConnAckReasonCode.SUCCESS): 0,
    int(ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION): 1,
    int(ConnAckReasonCode.CLIENT_ID_NOT_VALID): 2,
    int(ConnAckReasonCode.SERVER_UNAVAILABLE): 3,
    int(ConnAckReasonCode.SERVER_BUSY): 3,
    int(ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD): 4,
}
"""The return codes of 3.1.1; for every other reason it is 5, not authorised."""
NOT_AUTHORISED = 5
SUBSCRIBE_FAILED = 0x80


class Malformed(OmenError):
    """What came is no MQTT. `reason`: the reason code that says why."""

    def __init__(
        self, text: str, reason: mqtt5.DisconnectReasonCode = mqtt5.DisconnectReasonCode.MALFORMED_PACKET
    ) -> None:
        super().__init__(text)
        self.reason = reason


class Decoder:
    """The bytes of one connection as packets. The first packet says which version is spoken."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._buffer = bytearray()
        self._awaited = 0
        self.version = 0

    def feed(self, data: bytes | memoryview) -> list[Packet]:
        """The packets that are complete by now. Malformed: nothing after it can be read."""
        buffer = self._buffer
        buffer += data
        packets: list[Packet] = []
        if len(buffer) < self._awaited:  # a large packet comes in many pieces: it is looked at when it is whole
            return packets
        self._awaited = 0
        start = 0
        view = memoryview(bytes(buffer))
        if not self.version and view and view[0] != CONNECT << 4:
            raise Malformed("the first packet must be CONNECT", mqtt5.DisconnectReasonCode.PROTOCOL_ERROR)
        while (frame := self._frame(view, start)) is not None:
            body, end = frame
            packets.append(self._read(view[start:end], view[body:end]))
            start = end
        if start:
            del buffer[:start]
        return packets

    def _frame(self, view: memoryview, start: int) -> tuple[int, int] | None:
        """Where the body of the next packet begins and ends; None: it is not complete."""
        length = shift = 0
        for place in range(start + 1, min(start + 5, len(view))):
            byte = view[place]
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                if place + 1 - start + length > self._largest:
                    reason = mqtt5.DisconnectReasonCode.PACKET_TOO_LARGE
                    raise Malformed(f"a packet of {length} bytes: at most {self._largest} are taken", reason)
                if place + 1 + length <= len(view):
                    return place + 1, place + 1 + length
                self._awaited = place + 1 + length - start
                return None
            shift += 7
        if len(view) >= start + 5:
            raise Malformed("a packet's length has more than four bytes")
        return None

    def _read(self, whole: memoryview, body: memoryview) -> Packet:
        if not self.version:
            self.version = _version_of(body)
        try:
            return read_v5(whole, body) if self.version == V5 else read_v3(whole[0], body)
        except (ValueError, IndexError, struct.error) as error:
            raise Malformed(str(error)) from None


def _version_of(body: memoryview) -> int:
    """The level that a CONNECT asks for."""
    reader = _Reader(body)
    try:
        name, level = reader.data(), reader.byte()
    except (ValueError, struct.error) as error:
        raise Malformed(str(error)) from None
    if name != b"MQTT" or level not in (V3, V5):
        reason = mqtt5.DisconnectReasonCode.UNSPECIFIED_ERROR
        raise Malformed(f"protocol {name[:20]!r} level {level}: this is a server of MQTT 3.1.1 and 5", reason)
    return level


class _Reader:
    """The fields of a packet of 3.1.1, one after the other. ValueError: it ends too early."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._place = 0

    @property
    def is_done(self) -> bool:
        return self._place >= len(self._body)

    def byte(self) -> int:
        return self.rest(1)[0]

    def number(self) -> int:
        return int.from_bytes(self.rest(2), "big")

    def packet_id(self) -> int:
        number = self.number()
        if not number:
            raise ValueError("a packet identifier must not be 0")
        return number

    def data(self) -> bytes:
        return self.rest(self.number())

    def text(self) -> str:
        text = self.data().decode()
        if "\0" in text:
            raise ValueError("a string holds a zero character")
        return text

    def rest(self, length: int | None = None) -> bytes:
        end = len(self._body) if length is None else self._place + length
        if end > len(self._body):
            raise ValueError("a packet ends too early")
        part = bytes(self._body[self._place : end])
        self._place = end
        return part


def read_v3(first: int, body: memoryview) -> Packet:
    """A packet of 3.1.1 as the one of MQTT 5 that says the same. ValueError: it is malformed."""
    kind, flags = first >> 4, first & 0x0F
    if kind != PUBLISH and flags != FLAGS.get(kind, 0):
        raise ValueError("reserved bits of a packet are set")
    reader = _Reader(body)
    if kind == PUBLISH:
        return _read_publish(flags, reader)
    make = _READERS.get(kind)
    if make is None:
        raise ValueError(f"a client sends no packet of type {kind}")
    packet = make(reader)
    if not reader.is_done:
        raise ValueError("a packet is longer than its fields")
    return packet


def _read_connect(reader: _Reader) -> Packet:
    reader.data()
    reader.byte()
    flags, keep_alive, client_id = reader.byte(), reader.number(), reader.text()
    has_will, will_qos = bool(flags & 4), flags >> 3 & 3
    if flags & 1 or (not has_will and flags & 0x38) or (not flags & 0x80 and flags & 0x40):
        raise ValueError("the flags of CONNECT contradict each other")
    will = None
    if has_will:
        will = Will(reader.text(), payload=reader.data(), qos=QoS(will_qos), retain=bool(flags & 0x20))
    clean = bool(flags & 2)
    return ConnectPacket(
        client_id,
        username=reader.text() if flags & 0x80 else None,
        password=reader.data() if flags & 0x40 else None,
        clean_start=clean,
        will=will,
        keep_alive=keep_alive,
        session_expiry_interval=0 if clean else LONGEST_EXPIRY,
    )


def _read_publish(flags: int, reader: _Reader) -> Packet:
    qos = flags >> 1 & 3
    topic = reader.text()
    packet_id = reader.packet_id() if qos else None
    return PublishPacket(
        topic, reader.rest(), qos=QoS(qos), retain=bool(flags & 1), duplicate=bool(flags & 8), packet_id=packet_id
    )


def _read_subscribe(reader: _Reader) -> Packet:
    packet_id, filters = reader.packet_id(), []
    while not reader.is_done:
        pattern, options = reader.text(), reader.byte()
        if options > 2:
            raise ValueError("reserved bits of a subscription are set")
        filters.append(TopicFilter(pattern, max_qos=QoS(options), retain_as_published=False))
    if not filters:
        raise ValueError("SUBSCRIBE without a topic filter")
    return SubscribePacket(packet_id, filters)


def _read_unsubscribe(reader: _Reader) -> Packet:
    packet_id, patterns = reader.packet_id(), []
    while not reader.is_done:
        patterns.append(reader.text())
    if not patterns:
        raise ValueError("UNSUBSCRIBE without a topic filter")
    return UnsubscribePacket(packet_id, patterns)


_READERS: dict[int, Callable[[_Reader], Packet]] = {
    CONNECT: _read_connect,
    PUBACK: lambda reader: PubAckPacket(reader.packet_id()),
    PUBREC: lambda reader: PubRecPacket(reader.packet_id()),
    PUBREL: lambda reader: PubRelPacket(reader.packet_id()),
    PUBCOMP: lambda reader: PubCompPacket(reader.packet_id()),
    SUBSCRIBE: _read_subscribe,
    UNSUBSCRIBE: _read_unsubscribe,
    PINGREQ: lambda reader: PingReqPacket(),
    DISCONNECT: lambda reader: DisconnectPacket(),
}


def encode(packet: Any, version: int) -> bytes:
    """A packet for a client; empty where 3.1.1 has none, as for a server's DISCONNECT."""
    if version == V5:
        return bytes(packet.write())
    write = _WRITERS.get(type(packet))
    return write(packet) if write is not None else b""


def _framed(kind: int, flags: int, body: bytes) -> bytes:
    length, size = bytearray(), len(body)
    while True:
        size, low = size >> 7, size & 0x7F
        length.append(low | (0x80 if size else 0))
        if not size:
            return bytes((kind << 4 | flags,)) + bytes(length) + body


def _numbered(kind: int) -> Callable[[Any], bytes]:
    def write(packet: Any) -> bytes:
        return struct.pack(">BBH", kind << 4 | FLAGS.get(kind, 0), 2, packet.packet_id)

    return write


def _write_connack(packet: ConnAckPacket) -> bytes:
    code = CONNECT_RETURN.get(int(packet.reason_code), NOT_AUTHORISED)
    return bytes((CONNACK << 4, 2, packet.session_present and not code, code))


def _write_publish(packet: PublishPacket) -> bytes:
    name = packet.topic.encode()
    qos = int(packet.qos)
    number = struct.pack(">H", packet.packet_id) if qos else b""
    flags = packet.duplicate << 3 | qos << 1 | packet.retain
    return _framed(PUBLISH, flags, b"".join((struct.pack(">H", len(name)), name, number, packet.payload)))


def _write_suback(packet: SubAckPacket) -> bytes:
    codes = bytes(min(int(code), SUBSCRIBE_FAILED) for code in packet.reason_codes)
    return _framed(SUBACK, 0, struct.pack(">H", packet.packet_id) + codes)


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    ConnAckPacket: _write_connack,
    PublishPacket: _write_publish,
    PubAckPacket: _numbered(PUBACK),
    PubRecPacket: _numbered(PUBREC),
    PubRelPacket: _numbered(PUBREL),
    PubCompPacket: _numbered(PUBCOMP),
    SubAckPacket: _write_suback,
    UnsubAckPacket: _numbered(UNSUBACK),
    PingRespPacket: lambda packet: bytes((PINGRESP << 4, 0)),
}
