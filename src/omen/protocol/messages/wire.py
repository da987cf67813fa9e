"""The wire form of everything nodes say: a byte for the kind, then a publication as it is, or a msgpack body.

    0  any other message      msgpack (messages.encode)
    1  a publication          topic u64, publisher u64, incarnation u32, sequence u64, big endian; then the payload
    2  the first of a run     the same
    5, 6  the same two, with a block of fields between sequence and payload: length u16, then a msgpack map by number
    3  announce, pull, prune, graft   msgpack

The length in front of a frame is the driver's.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from omen.protocol.messages import overlay as messages
from omen.protocol.messages.overlay import Message
from omen.protocol.messages.publications import (
    HEADER_BYTES,
    KINDS,
    OPENING,
    PLAIN,
    Announce,
    Graft,
    Prune,
    Publication,
    RetransmissionRequest,
    decode_control,
    parse_publication,
    unpack_header,
)

OTHER, CONTROL = 0, 3
_CONTROLS = frozenset({Announce, RetransmissionRequest, Prune, Graft})


def encode(message: Message) -> bytes:
    """The bytes of a message; of a publication those it came in."""
    kind = type(message)
    if kind is Publication:
        return message.frame  # type: ignore[attr-defined, no-any-return]
    return (b"\x03" if kind in _CONTROLS else b"\x00") + messages.encode(message)


def decode(data: bytes | memoryview) -> Any:
    """The message in these bytes; raises msgspec.MsgspecError where there is none.

    Written for speed where it is a publication without fields, as nearly all are.
    """
    kind = data[0] if len(data) else -1
    if kind in (PLAIN, OPENING) and len(data) >= HEADER_BYTES:
        frame = data if type(data) is bytes else bytes(data)
        _, key, sequence = unpack_header(frame)
        return Publication(key, sequence, frame)
    if kind in KINDS:
        if len(data) < HEADER_BYTES:
            raise msgspec.DecodeError("a publication is cut off in its header")
        try:
            return parse_publication(data if type(data) is bytes else bytes(data))
        except struct.error as error:
            raise msgspec.DecodeError(str(error)) from None
    if kind == OTHER:
        return messages.decode(bytes(data[1:]))
    if kind == CONTROL:
        return decode_control(data[1:])
    raise msgspec.DecodeError(f"no message begins with {kind}")


def size_of(message: Any) -> int:
    """How many bytes a message takes, without length and kind; a publication is not encoded again."""
    return len(message.frame) if type(message) is Publication else len(messages.encode(message))
