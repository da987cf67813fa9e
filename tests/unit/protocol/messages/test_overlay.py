"""Every message survives the wire, and costs about what it should."""

from __future__ import annotations

import enum
import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omen.protocol.membership.ring import place_of
from omen.protocol.messages import base, records
from omen.protocol.messages import overlay as messages
from omen.protocol.messages.base import LinkRules
from omen.protocol.messages.overlay import (
    AnyMessage,
    Descriptor,
    Descriptors,
    Digest,
    DigestOffer,
    EventId,
    LinkSeen,
    Message,
    Ref,
    ShadowQuery,
    ShadowReply,
    decode,
    encode,
)

KINDS: tuple[type[Message], ...] = typing.get_args(AnyMessage)
PLACE = st.integers(min_value=0, max_value=2**64 - 1)
SMALL = st.integers(min_value=0, max_value=2**31)
BOUNDED: dict[Any, st.SearchStrategy[Any]] = {
    base.Place: PLACE,
    base.Number: st.integers(min_value=0, max_value=base.NUMBER_AT_MOST),
    base.Incarnation: st.integers(min_value=0, max_value=base.INCARNATION_AT_MOST),
    base.Text: st.text(max_size=20),
    base.Address: st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
}
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: PLACE,
    bool: st.booleans(),
    str: st.text(max_size=20),
    bytes: st.binary(max_size=12),
}


def strategy_for(kind: Any) -> st.SearchStrategy[Any]:
    """Draws any value a field of this type may hold."""
    if kind in BOUNDED:
        return BOUNDED[kind]
    if kind in SIMPLE:
        return SIMPLE[kind]
    if typing.get_origin(kind) is typing.Annotated:
        return strategy_for(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return st.one_of(st.none() if inner is type(None) else strategy_for(inner) for inner in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return st.lists(strategy_for(inner[0]), max_size=3).map(tuple)
        return st.tuples(*map(strategy_for, inner))
    if issubclass(kind, enum.Enum):
        return st.sampled_from(kind)
    fields = typing.get_type_hints(kind, {**vars(base), **vars(messages), **vars(records)}, include_extras=True)
    return st.builds(kind, **{field: strategy_for(fields[field]) for field in kind.__struct_fields__})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_survives_the_wire(kind: type[Message]) -> None:
    @given(strategy_for(kind))
    def check(message: Message) -> None:
        assert decode(encode(message)) == message

    check()


def test_every_message_has_a_number_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in KINDS]
    assert len(set(tags)) == len(tags)
    defined = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert defined - {Message} == set(KINDS)


@pytest.mark.parametrize(
    "data", [b"", b"\xc0", b"\x91\xcc\xff", b"\x92\x0d", encode(LinkSeen()) + b"x", b"\x92\x01\x01"]
)
def test_bytes_that_hold_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(data)


def ref(number: int) -> Ref:
    return Ref(place_of(f"n{number}"), 1, "10.0.0.1:7000")


def test_a_digest_takes_a_few_bytes_however_many_topics_its_node_has() -> None:
    buffer = tuple(Digest(ref(number), 3, 40) for number in range(30))
    assert len(encode(DigestOffer(buffer, (), False))) / 30 < 32


def test_5000_topics_are_shipped_once_and_not_in_every_exchange() -> None:
    topics = tuple(range(2**60, 2**60 + 5000))
    large = Descriptor(Digest(ref(0), 1, 1), topics, ())
    assert len(encode(Descriptors((large,)))) > 5000 * 8
    assert len(encode(DigestOffer((large.digest,), (), False))) < 50


def test_an_answer_says_which_topics_a_neighbour_has_in_a_bit_each() -> None:
    topics = 80
    event = EventId(place_of("lost"), 1, "leave")
    links = tuple((place_of(f"n{number}"), bytes(topics // 8)) for number in range(10))
    answer = ShadowReply(event, 1, ref(1), 1, bytes(topics // 8), bytes(topics // 8), 10, links, True, False)
    ask = ShadowQuery(ref(2), event, 1, tuple(range(2**60, 2**60 + topics)), (), ())
    assert len(encode(answer)) < 330
    assert len(encode(ask)) < topics * 9 + 80


class DescriptorOf010(msgspec.Struct, frozen=True, array_like=True):
    """As version 0.1.0 knows it."""

    digest: Digest
    topics: tuple[int, ...]
    neighbours: tuple[Ref, ...]


def test_an_older_node_skips_rules_and_a_node_of_today_does_without_them() -> None:
    digest = Digest(ref(1), 1, 1)
    ruled = Descriptor(digest, (1, 2), (ref(2),), LinkRules(4, "north", (7, 9)))
    former = DescriptorOf010(digest, (1, 2), (ref(2),))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ruled), type=DescriptorOf010) == former
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(former), type=Descriptor)
    assert plain == Descriptor(digest, (1, 2), (ref(2),))
    assert len(msgspec.msgpack.encode(plain)) == len(msgspec.msgpack.encode(former)) + 1, "a byte where nothing is said"


@pytest.mark.parametrize("rules", [LinkRules(-1), LinkRules(zone="z" * 65), LinkRules(forbid=tuple(range(257)))])
def test_rules_beyond_their_bounds_are_refused(rules: LinkRules) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(encode(Descriptors((Descriptor(Digest(ref(1), 1, 1), (), (), rules),))))
