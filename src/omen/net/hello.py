"""The first thing each end of a connection says. Nothing else is interpreted until it has been checked.

On the wire: `OMEN`, the version (two bytes), the length of the rest (four bytes), then msgpack: a list of the fields
below in order. A version that differs is refused before the rest is looked at; fields may be added at the end without a
new version. An end that refuses says why, as `OMNO`, its version, a length and text, and closes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import msgspec

from omen.errors import OmenError

VERSION = 1
MAGIC, REFUSAL = b"OMEN", b"OMNO"
PREFACE = struct.Struct(">4sHI")
LARGEST = 4096


class Refused(OmenError):
    """A connection that goes no further, and why; `by_peer`: the other end said so."""

    def __init__(self, reason: str, why: str, by_peer: bool = False) -> None:
        super().__init__(reason)
        self.why = why
        self.by_peer = by_peer


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """Who speaks: its cluster, place, name and life, where it listens, and which process it is (a random number)."""

    cluster: str
    node: int
    name: str
    incarnation: int
    address: str
    session: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """A hello read from a buffer, and how many bytes it took."""

    hello: Hello
    size: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Hello)


def write_hello(hello: Hello) -> bytes:
    body = _encoder.encode(hello)
    return PREFACE.pack(MAGIC, VERSION, len(body)) + body


def write_refusal(reason: str) -> bytes:
    body = reason.encode()[:LARGEST]
    return PREFACE.pack(REFUSAL, VERSION, len(body)) + body


def read_hello(data: bytes | bytearray) -> Greeting | None:
    """The hello at the front of what has come in; None while there is too little; raises Refused."""
    if not MAGIC.startswith(bytes(data[:4])) and not REFUSAL.startswith(bytes(data[:4])):
        raise Refused("what came in is not from an OMen node", "stranger")
    if len(data) < PREFACE.size:
        return None
    magic, version, length = PREFACE.unpack_from(data)
    if length > LARGEST:
        raise Refused(f"a hello of {length} bytes: at most {LARGEST} are taken", "hello")
    end = PREFACE.size + length
    if magic == REFUSAL:
        if len(data) < end:
            return None
        reason = bytes(data[PREFACE.size : end]).decode(errors="replace")
        raise Refused(f"refused by the other end: {reason}", "refused", by_peer=True)
    if version != VERSION:
        raise Refused(
            f"the other end speaks version {version} of the wire format, this node version {VERSION}", "version"
        )
    if len(data) < end:
        return None
    try:
        return Greeting(_decoder.decode(bytes(data[PREFACE.size : end])), end)
    except msgspec.MsgspecError as error:
        raise Refused(f"a hello that cannot be read: {error}", "hello") from error


def check_hello(hello: Hello, own: Hello) -> None:
    """Whether the two belong together; raises Refused."""
    if hello.cluster != own.cluster:
        raise Refused(f"this node belongs to cluster {own.cluster!r}, the other to {hello.cluster!r}", "cluster")
    if hello.node == own.node:
        raise Refused(f"node {own.name!r} is met under its own name", "self")
