"""What nodes say to each other about stored records (see `omen.protocol.storage`)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from omen.protocol.messages.base import Message, Number, Place, Ref

KEY_BYTES, VALUE_BYTES = 1024, (1 << 20) + (128 << 10)
"""The longest key, and the largest value: a publication with its fields and a little more."""
ENTRIES_AT_MOST = 512
"""Records named or sent in one message."""
Key = Annotated[bytes, msgspec.Meta(max_length=KEY_BYTES)]
Value = Annotated[bytes, msgspec.Meta(max_length=VALUE_BYTES)]


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of what is stored under a key. Of two versions the higher counts, then the higher `writer`.

    `place`: whose successors on the ring hold it; keys that are read together share one. An empty `value` says that
    the record was removed. `life`: milliseconds for which it is still to be kept.
    """

    place: Place
    key: Key
    version: Number
    writer: Place
    value: Value
    life: Number

    @property
    def order(self) -> tuple[int, int]:
        return self.version, self.writer


Records = Annotated[tuple[Record, ...], msgspec.Meta(max_length=ENTRIES_AT_MOST)]
Entry = tuple[Place, Key, Number, Place]
"""A record without its value: place, key, version, writer."""
Entries = Annotated[tuple[Entry, ...], msgspec.Meta(max_length=ENTRIES_AT_MOST)]


class RecordPut(Message, frozen=True, array_like=True, tag=80):
    """Keep these. `nonce` 0: no answer is wanted."""

    me: Ref
    nonce: Number
    records: Records


class RecordAck(Message, frozen=True, array_like=True, tag=81):
    """I have these or later versions: so many of those you sent."""

    me: Ref
    nonce: Number
    kept: Number


class RecordQuery(Message, frozen=True, array_like=True, tag=82):
    """Which records of this place have you, behind the key `after`?"""

    asker: Ref
    nonce: Number
    place: Place
    after: Key = b""


class RecordReply(Message, frozen=True, array_like=True, tag=83):
    """The next of them, in the order of their keys. `more`: there are others behind the last."""

    me: Ref
    nonce: Number
    records: Records
    more: bool = False


class RecordOffer(Message, frozen=True, array_like=True, tag=84):
    """I have these versions, and you should too."""

    me: Ref
    entries: Entries


class RecordWant(Message, frozen=True, array_like=True, tag=85):
    """Of those you offered I lack these."""

    me: Ref
    entries: Entries
