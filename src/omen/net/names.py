"""Names at the edge, numbers inside: topics, nodes, addresses, lives."""

from __future__ import annotations

import time
from hashlib import blake2b

from omen.errors import InvalidInput
from omen.protocol.events import Topic

TOPIC_BYTES = 255
NAME_BYTES = 255
LIVES_BEGIN_S = 1_767_225_600  # 2026-01-01: lives count tenths of a second from here, which fits 32 bits until 2039
TENTHS = 10
MOST_LIVES = (1 << 32) - 1

_last_life = 0


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


def next_life(after: int = 0) -> int:
    """A number for the next life of a node: higher than all before, in this process and, by the clock, before it.

    `after`: the last one known, from where the node keeps its state.
    """
    global _last_life
    by_clock = int((time.time() - LIVES_BEGIN_S) * TENTHS)
    _last_life = min(max(by_clock, _last_life + 1, after + 1, 1), MOST_LIVES)
    return _last_life


def split_address(text: str, what: str = "address") -> tuple[str, int]:
    """HOST:PORT, with brackets around an IPv6 host."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"{what} {text!r}: must be HOST:PORT, for example 127.0.0.1:7070")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
