"""What the library for MQTT 5 reads although it should not, and what it panics at.

It is written in Rust, and panics where a text is no UTF-8; a panic is no `Exception`. So texts are not looked at here
beforehand, which would cost every packet: the panic is taken for what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mqtt5
from mqtt5 import ConnectPacket, PublishPacket, SubscribePacket, UnsubscribePacket

PANIC = "PanicException"
WILL, WILL_FLAGS, RESERVED = 4, 0x38, 1
OPTION_BITS = 0xC0


def read_v5(whole: memoryview, body: memoryview) -> mqtt5.Packet:
    """A packet of MQTT 5. ValueError: it is malformed."""
    try:
        packet = mqtt5.read(whole)[0]
    except BaseException as error:
        if type(error).__name__ != PANIC:
            raise
        raise ValueError("a text is not UTF-8") from None
    check = _CHECKS.get(type(packet))
    if check is not None:
        check(packet, body)
    return packet


def _no_zero(texts: Iterable[str | None]) -> None:
    if any(text is not None and "\0" in text for text in texts):
        raise ValueError("a text holds a zero character")


def _pairs(packet: Any) -> Iterator[str]:
    for key, value in packet.user_properties or ():
        yield key
        yield value


def _check_connect(packet: ConnectPacket, body: memoryview) -> None:
    flags = body[7]  # after the protocol's name and level
    if flags & RESERVED or (not flags & WILL and flags & WILL_FLAGS):
        raise ValueError("the flags of CONNECT contradict each other")
    _no_zero((packet.client_id, packet.username, *_pairs(packet)))
    if packet.will is not None:
        will = packet.will
        _no_zero((will.topic, will.content_type, will.response_topic, *_pairs(will)))


def _check_publish(packet: PublishPacket, _: memoryview) -> None:
    response = packet.response_topic
    if response is not None and ("+" in response or "#" in response):
        raise ValueError("a response topic holds wildcards")
    if response is not None or packet.content_type is not None or packet.user_properties:
        _no_zero((response, packet.content_type, *_pairs(packet)))


def _check_subscribe(packet: SubscribePacket, body: memoryview) -> None:
    if not packet.packet_id or not packet.topic_filters:
        raise ValueError("SUBSCRIBE without an identifier or a filter")
    _no_zero(_pairs(packet))
    place = len(body)
    for asked in reversed(packet.topic_filters):  # each ends with its options
        if body[place - 1] & OPTION_BITS:
            raise ValueError("reserved bits of a subscription are set")
        place -= 3 + len(asked.pattern.encode())


def _check_unsubscribe(packet: UnsubscribePacket, _: memoryview) -> None:
    if not packet.packet_id or not packet.patterns:
        raise ValueError("UNSUBSCRIBE without an identifier or a filter")
    _no_zero(_pairs(packet))


_CHECKS: dict[type, Any] = {
    ConnectPacket: _check_connect,
    PublishPacket: _check_publish,
    SubscribePacket: _check_subscribe,
    UnsubscribePacket: _check_unsubscribe,
}
