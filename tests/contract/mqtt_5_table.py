"""The table of MQTT 5: which statements there are, and which of them concern clients alone or are not supported.

The checks stand in `test_mqtt_5_*.py`, by the sections of the standard.
"""

from __future__ import annotations

from typing import Any

from mqtt5 import PublishPacket
from tests.contract.mqtt_table import Table, Wire, framed, text

SECTIONS = {
    "1.5.4": (1, 3), "1.5.5": (1, 1), "1.5.7": (1, 1), "2.1.3": (1, 1), "2.2.1": (2, 6), "2.2.2": (1, 1),
    "3.1.0": (1, 2), "3.1.2": (1, 30), "3.1.3": (1, 12), "3.1.4": (1, 6), "3.2.0": (1, 2), "3.2.2": (1, 22),
    "3.3.1": (1, 13), "3.3.2": (1, 20), "3.3.4": (1, 10), "3.4.2": (1, 3), "3.5.2": (1, 3), "3.6.1": (1, 1),
    "3.6.2": (1, 3), "3.7.2": (1, 3), "3.8.1": (1, 1), "3.8.3": (1, 5), "3.8.4": (1, 8), "3.9.2": (1, 2),
    "3.9.3": (1, 2), "3.10.1": (1, 1), "3.10.3": (1, 2), "3.10.4": (1, 6), "3.11.2": (1, 2), "3.11.3": (1, 2),
    "3.12.4": (1, 1), "3.14.0": (1, 1), "3.14.1": (1, 1), "3.14.2": (1, 4), "3.14.4": (1, 3), "3.15.1": (1, 1),
    "3.15.2": (1, 3), "4.1.0": (1, 2), "4.2.0": (1, 1), "4.3.1": (1, 1), "4.3.2": (1, 5), "4.3.3": (1, 13),
    "4.4.0": (1, 2), "4.5.0": (1, 2), "4.6.0": (1, 6), "4.7.0": (1, 1), "4.7.1": (1, 2), "4.7.2": (1, 1),
    "4.7.3": (1, 4), "4.8.2": (1, 6), "4.9.0": (1, 3), "4.12.0": (1, 7), "4.12.1": (1, 2), "4.13.1": (1, 1),
    "4.13.2": (1, 1), "6.0.0": (1, 4),
}  # fmt: skip
TABLE = Table(SECTIONS)
TABLE.of_clients = (
    "2.2.1-3", "3.1.2-16", "3.1.2-17", "3.1.2-18", "3.1.2-19", "3.1.2-20", "3.1.2-21", "3.1.2-30", "3.2.2-4",
    "3.2.2-5", "3.2.2-11", "3.2.2-14", "3.2.2-15", "3.2.2-17", "3.2.2-18", "3.2.2-21", "3.3.2-8", "3.3.2-9",
    "3.3.2-10", "3.3.4-7", "3.3.4-8", "4.5.0-2", "4.6.0-1", "4.6.0-2", "4.6.0-3", "4.6.0-4", "4.12.0-3", "4.12.0-7",
    "4.12.1-1", "6.0.0-3",
)  # fmt: skip
AUTH = "no enhanced authentication: a CONNECT that asks for it is refused (4.12.0-1), so AUTH is never exchanged"
NO_STRING = "no packet is given a reason string or user properties of the server's own"
ALL_QOS = "QoS 2 is supported: there is no maximum to be told or kept"
TABLE.not_supported = {
    **dict.fromkeys(("3.15.1-1", "3.15.2-1", "3.15.2-2", "3.15.2-3"), AUTH),
    **dict.fromkeys(("4.12.0-2", "4.12.0-4", "4.12.0-5", "4.12.1-2"), AUTH),
    **dict.fromkeys(("3.2.2-9", "3.2.2-10", "3.2.2-12"), ALL_QOS),
    "3.2.2-13": "retained messages are supported",
    "3.3.4-5": "one copy is sent for overlapping subscriptions, shared ones apart (3.3.4-4)",
    **dict.fromkeys(("3.2.2-19", "3.2.2-20", "3.4.2-2", "3.4.2-3", "3.5.2-2", "3.5.2-3"), NO_STRING),
    **dict.fromkeys(("3.6.2-2", "3.6.2-3", "3.7.2-2", "3.7.2-3", "3.9.2-1", "3.9.2-2"), NO_STRING),
    **dict.fromkeys(("3.11.2-1", "3.11.2-2", "3.14.2-3", "3.14.2-4"), NO_STRING),
}  # fmt: skip


def connect(flags: int, *fields: bytes, version: int = 5, name: str = "MQTT") -> bytes:
    return framed(0x10, text(name) + bytes((version, flags, 0, 60, 0)) + b"".join(fields))


def published(packets: list[Any]) -> list[bytes]:
    return [packet.payload for packet in packets if isinstance(packet, PublishPacket)]


def pair(qos: int = 2, **options: Any) -> Wire:
    """A subscriber, 1, and a publisher, 2."""
    world = Wire()
    world.connect(1, "sub", session_expiry_interval=100)
    world.subscribe(1, "a", qos=qos, **options)
    world.connect(2, "pub")
    return world
