"""Names at the edge, numbers inside: topics, nodes, addresses, incarnations."""

from __future__ import annotations

import ipaddress
import time
from functools import lru_cache
from hashlib import blake2b

from omen.errors import InvalidInput
from omen.protocol.events import Topic
from omen.protocol.messages.base import INCARNATION_AT_MOST

TOPIC_BYTES = 255
NAME_BYTES = 255
KEYS_REMEMBERED = 4096  # topics whose number is looked up and not computed: `publish` needs it each time
EPOCH_S = 1_767_225_600  # 2026-01-01: incarnations count tenths of a second from here, which fits 32 bits until 2039
TENTHS = 10

_last_incarnation = 0


@lru_cache(KEYS_REMEMBERED)
def topic_key(name: str) -> Topic:
    """The number of a topic, the same everywhere: 63 bits of a hash of its name."""
    data = name.encode()
    if not data or len(data) > TOPIC_BYTES:
        raise InvalidInput(f"topic {name[:40]!r}: a topic has 1 to {TOPIC_BYTES} bytes, this one has {len(data)}")
    return int.from_bytes(blake2b(data, digest_size=8, person=b"omen topic").digest(), "big") >> 1


def check_name(name: str) -> str:
    """A node's name: anything printable without blanks, so that it fits logs and tables."""
    if not name or len(name.encode()) > NAME_BYTES or not name.isprintable() or any(map(str.isspace, name)):
        raise InvalidInput(f"node name {name[:40]!r}: must be 1 to {NAME_BYTES} bytes, printable, without blanks")
    return name


def next_incarnation(after: int = 0) -> int:
    """The next incarnation of a node: higher than all before, in this process and, by the clock, before it.

    `after`: the last one known, from where the node keeps its state.
    """
    global _last_incarnation
    by_clock = int((time.time() - EPOCH_S) * TENTHS)
    _last_incarnation = min(max(by_clock, _last_incarnation + 1, after + 1, 1), INCARNATION_AT_MOST)
    return _last_incarnation


def split_address(text: str, what: str = "address") -> tuple[str, int]:
    """HOST:PORT, with brackets around an IPv6 host."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"{what} {text!r}: must be HOST:PORT, for example 127.0.0.1:7070")
    if not all("!" <= char <= "~" for char in text):
        raise InvalidInput(f"{what} {text!r}: must be ASCII without blanks (other letters of a name in its xn-- form)")
    return host, int(port)


def is_every_address(host: str) -> bool:
    """Whether a host means all addresses of a machine: one can listen there, and nobody can connect to it."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host.strip("0.") == ""  # as short forms of 0.0.0.0 are


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
