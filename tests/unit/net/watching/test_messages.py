"""What nodes say to each other for the live page."""

from __future__ import annotations

import msgspec
import pytest

from omen.net.security.hello import REVISION, WATCHING_REVISION
from omen.net.watching.messages import (
    ENTRY_BYTES,
    KIND,
    Entry,
    Event,
    NodeDigest,
    Told,
    Watch,
    decode,
    difference,
    encode,
    read_entry,
    write_entry,
)
from omen.protocol.messages import wire

WHOLE = NodeDigest(name="ann", state="ok", links=(1, 2), topics=(7,), names={7: "tea"}, out=1.5, p50=None)


def test_frames_come_back_as_they_went() -> None:
    raw = write_entry(Entry(5, 1, 1, WHOLE, (Event(1, 1_000, "node_joined"),)))
    assert raw is not None
    for frame in (Watch(9, 3, 2, (4,), (7,)), Told(9, (raw,))):
        body = encode(frame)
        assert body[0] == KIND
        assert decode(body) == frame
    told = decode(encode(Told(9, (raw,))))
    assert isinstance(told, Told)
    assert read_entry(told.entries[0]) == Entry(5, 1, 1, WHOLE, (Event(1, 1_000, "node_joined"),))


def test_the_kind_is_none_of_the_protocols_and_older_nodes_are_known_by_their_revision() -> None:
    with pytest.raises(msgspec.DecodeError, match=f"begins with {KIND}"):
        wire.decode(encode(Watch(9, 3)))
    assert REVISION >= WATCHING_REVISION > 4


def test_only_what_has_changed_is_told() -> None:
    assert difference(None, WHOLE) is WHOLE
    assert difference(WHOLE, WHOLE) == NodeDigest()
    later = msgspec.structs.replace(WHOLE, out=2.0, p50=0.1)
    changed = difference(WHOLE, later)
    assert changed == NodeDigest(out=2.0, p50=0.1)
    raw = write_entry(Entry(5, 1, 2, changed))
    assert raw is not None
    assert len(bytes(raw)) < 40


@pytest.mark.parametrize("bad", [b"", b"\xc1", b"\x93\x01\x02", encode(Watch(9, 3))[:-1], b"\x92\x01" + b"\x91" * 2000])
def test_what_is_no_frame_is_refused(bad: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, RecursionError)):
        decode(bytes((KIND,)) + bad)


def test_an_entry_that_cannot_be_read_or_is_too_large_is_none() -> None:
    assert read_entry(msgspec.Raw(b"\x93\x01\x02\x03")) is None
    assert read_entry(msgspec.Raw(msgspec.msgpack.encode([1, 1, 1, {"name": 7}, []]))) is None
    many = NodeDigest(names=dict.fromkeys(range(1000), "x" * 200))
    assert write_entry(Entry(5, 1, 1, many)) is None
    assert read_entry(msgspec.Raw(b"\xda" + b"x" * ENTRY_BYTES)) is None


def test_fields_that_are_not_known_yet_are_passed_over() -> None:
    later = msgspec.msgpack.encode([5, 1, 1, {"name": "ann", "mood": "well"}, [], "more"])
    assert read_entry(msgspec.Raw(later)) == Entry(5, 1, 1, NodeDigest(name="ann"))
