"""The wire form: a publication goes out as the bytes it came in, all else is msgpack behind a byte for the kind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import LinkSeen, Ref, Shuffle
from omen.protocol.messages.publications import (
    HEADER_BYTES,
    Announce,
    Graft,
    Prune,
    Publication,
    RetransmissionRequest,
    StreamMark,
    make_publication,
    stream_key,
)
from omen.protocol.messages.wire import decode, encode, size_of

U64 = st.integers(min_value=0, max_value=2**64 - 1)
U32 = st.integers(min_value=0, max_value=2**32 - 1)
COUNT = st.integers(min_value=0, max_value=2**62)
MARK = st.builds(StreamMark, U64, U32, COUNT, COUNT, COUNT, st.integers(min_value=-1, max_value=2**62), COUNT)


@given(U64, U64, U32, U64, st.binary(max_size=200), st.booleans())
def test_a_publication_survives_the_wire(
    topic: int, publisher: int, incarnation: int, sequence: int, payload: bytes, opening: bool
) -> None:
    frame = encode(make_publication(stream_key(topic, publisher, incarnation), sequence, payload, opening))
    assert len(frame) == HEADER_BYTES + len(payload) == 29 + len(payload)
    read = decode(frame)
    assert (read.topic, read.publisher, read.incarnation, read.sequence) == (topic, publisher, incarnation, sequence)
    assert (read.payload, read.is_opening) == (payload, opening)


def test_a_publication_is_passed_on_as_the_very_bytes_it_came_in() -> None:
    frame = encode(make_publication(stream_key(1, 2, 3), 4, b"x" * 10_000, opening=False))
    read = decode(frame)
    assert type(read) is Publication
    assert encode(read) is frame
    assert decode(memoryview(frame)) == read
    assert size_of(read) == len(frame)


@given(
    st.one_of(
        st.builds(
            Announce,
            st.lists(st.tuples(U64, st.lists(MARK, max_size=3).map(tuple)), max_size=3).map(tuple),
            st.booleans(),
        ),
        st.builds(
            RetransmissionRequest,
            st.lists(st.tuples(U64, U64, U32, COUNT, COUNT), max_size=3).map(tuple),
            st.booleans(),
        ),
        st.builds(Prune, U64),
        st.builds(Graft, U64),
    )
)
def test_what_neighbours_say_about_publications_survives_the_wire(message: Any) -> None:
    assert decode(encode(message)) == message


def test_every_other_message_is_msgpack_behind_a_zero() -> None:
    for message in (LinkSeen(), Shuffle(((Ref(place_of("a"), 1, "h:1"), 3),))):
        assert encode(message)[0] == 0
        assert decode(encode(message)) == message
        assert size_of(message) == len(encode(message)) - 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x01" + bytes(HEADER_BYTES - 2),
        b"\x02" + bytes(27),
        b"\x00",
        b"\x00\xc0",
        b"\x03",
        b"\x03\x91\x09",
    ],
)
def test_bytes_that_hold_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(data)
    with pytest.raises(msgspec.MsgspecError):
        decode(b"\x07" + data)


def test_a_mark_takes_some_thirty_bytes() -> None:
    marks = tuple(StreamMark(place_of(f"n{n}"), 3_000_000_000, 1, 9_000, 10_000, 9_990, 40) for n in range(100))
    assert len(encode(Announce(((place_of("t") >> 1, marks),)))) < 100 * 34
