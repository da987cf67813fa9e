"""MQTT 3.1.1: each normative statement that concerns a server. Packets are bytes here: the codec translates them."""

from __future__ import annotations

import pytest
from mqtt5 import ConnAckReasonCode
from tests.contract.mqtt_table import Check, Table, Wire, framed, text

from omen.net.mqtt.outputs import Rights
from omen.net.mqtt.topics import is_valid_filter, is_valid_name, matches

SECTIONS = {
    "1.5.3": (1, 3), "2.2.2": (1, 2), "2.3.1": (1, 7), "3.1.0": (1, 2), "3.1.2": (1, 24), "3.1.3": (1, 11),
    "3.1.4": (1, 5), "3.2.0": (1, 1), "3.2.2": (1, 6), "3.3.1": (1, 12), "3.3.2": (1, 3), "3.3.4": (1, 1),
    "3.3.5": (1, 2), "3.6.1": (1, 1), "3.8.1": (1, 1), "3.8.3": (1, 4), "3.8.4": (1, 6), "3.9.3": (1, 2),
    "3.10.1": (1, 1), "3.10.3": (1, 2), "3.10.4": (1, 6), "3.12.4": (1, 1), "3.14.1": (1, 1), "3.14.4": (1, 3),
    "4.1.0": (1, 2), "4.3.1": (1, 1), "4.3.2": (1, 2), "4.3.3": (1, 2), "4.4.0": (1, 1), "4.5.0": (1, 2),
    "4.6.0": (1, 6), "4.7.1": (1, 3), "4.7.2": (1, 1), "4.7.3": (1, 4), "4.8.0": (1, 2), "6.0.0": (1, 4),
}  # fmt: skip
TABLE = Table(SECTIONS)
TABLE.of_clients = (
    "2.3.1-2", "2.3.1-3", "3.1.2-18", "3.1.2-20", "3.1.2-23", "3.1.3-7", "3.14.4-1", "3.14.4-2", "4.5.0-2",
    "4.6.0-1", "4.6.0-2", "4.6.0-3", "4.6.0-4", "6.0.0-3",
)  # fmt: skip
TABLE.not_supported = {"3.8.3-2": "wildcards are supported, so none has to be refused"}
holds = TABLE.holds
CLEAN, WILL, USER, PASSWORD = 2, 4, 0x80, 0x40
OK, OK_PRESENT = b"\x20\x02\x00\x00", b"\x20\x02\x01\x00"
PING, PONG, BYE = b"\xc0\x00", b"\xd0\x00", b"\xe0\x00"


def connect(flags: int = CLEAN, *fields: bytes, level: int = 4, name: str = "MQTT", keep_alive: int = 0) -> bytes:
    head = text(name) + bytes((level, flags)) + keep_alive.to_bytes(2, "big")
    return framed(0x10, head + b"".join(fields or (text("c"),)))


def subscribe(pattern: str, qos: int = 0, number: int = 9) -> bytes:
    return framed(0x82, number.to_bytes(2, "big") + text(pattern) + bytes((qos,)))


def publish(topic: str, payload: bytes = b"x", qos: int = 0, number: int = 5, flags: int = 0) -> bytes:
    identifier = number.to_bytes(2, "big") if qos else b""
    return framed(0x30 | qos << 1 | flags, text(topic) + identifier + payload)


def ack(kind: int, number: int) -> bytes:
    return bytes((kind << 4 | (2 if kind == 6 else 0), 2)) + number.to_bytes(2, "big")


def pair(qos: int = 2) -> Wire:
    """A subscriber with a session, 1, and a publisher, 2."""
    world = Wire()
    world.bytes_in(1, connect(0, text("sub")))
    world.bytes_in(1, subscribe("a", qos))
    world.bytes_in(2, connect(CLEAN, text("pub")))
    return world


def closes(data: bytes) -> bool:
    world = Wire()
    world.bytes_in(1, connect())
    world.bytes_in(1, data)
    return 1 in world.closed


@holds("1.5.3-1", "1.5.3-2", "3.1.3-4", "3.1.3-10", "3.1.3-11", "3.8.3-1", "3.10.3-1", "3.3.2-1", "4.7.3-2", "4.8.0-1")
def strings_are_utf8_without_zero() -> None:
    for bad in (b"\xed\xa0\x80", b"\xff", b"a\0b"):
        for packet in (
            connect(CLEAN, text(bad)),
            connect(CLEAN | WILL, text("c"), text(bad), text("x")),
            connect(CLEAN | USER, text("c"), text(bad)),
        ):
            world = Wire()
            assert OK not in world.bytes_in(1, packet) and 1 in world.closed
        assert closes(framed(0x30, text(bad)))
        assert closes(framed(0x82, b"\0\1" + text(bad) + b"\0"))
        assert closes(framed(0xA2, b"\0\1" + text(bad)))


@holds("1.5.3-3", "4.7.3-4")
def nothing_in_a_name_is_stripped() -> None:
    world = pair()
    for name in ("\ufeffa", "A", "a/"):
        world.bytes_in(2, publish(name))
    assert world.take(1) == []


@holds("2.2.2-1", "2.2.2-2", "3.6.1-1", "3.8.1-1", "3.10.1-1", "3.14.1-1", "3.8.3-4")
def reserved_bits_close_the_connection() -> None:
    for data in (
        framed(0x60, b"\0\1"), framed(0x80, b"\0\1" + text("a") + b"\0"), framed(0xA0, b"\0\1" + text("a")),
        framed(0xE1, b""), framed(0xC1, b""), framed(0x82, b"\0\1" + text("a") + b"\4"),
        framed(0x82, b"\0\1" + text("a") + b"\3"),
    ):  # fmt: skip
        assert closes(data), data


@holds("2.3.1-1", "2.3.1-5", "3.3.1-4", "3.3.1-2", "3.8.3-3", "3.10.3-2")
def requests_that_contradict_themselves_close_the_connection() -> None:
    for data in (
        framed(0x36, text("a") + b"\0\1"), framed(0x38, text("a")), framed(0x32, text("a") + b"\0\0"),
        framed(0x82, b"\0\0" + text("a") + b"\0"), framed(0x82, b"\0\1"), framed(0xA2, b"\0\1"),
    ):  # fmt: skip
        assert closes(data), data
    world = pair(qos=0)
    world.bytes_in(2, framed(0x30, text("a") + b"\0\7"))
    assert world.take(1) == [framed(0x30, text("a") + b"\0\7")]


@holds("2.3.1-4", "2.3.1-6", "2.3.1-7", "3.3.4-1", "4.3.2-2", "4.3.3-2", "3.8.4-1", "3.8.4-2", "3.10.4-4", "3.10.4-5")
@holds("3.10.4-1", "3.10.4-6", "3.8.4-4", "3.8.4-5", "3.9.3-1", "3.9.3-2")
def acknowledgements_have_the_number_of_what_they_acknowledge() -> None:
    world = Wire()
    world.bytes_in(1, connect())
    assert world.bytes_in(1, publish("a")) == []
    assert world.bytes_in(1, publish("a", qos=1, number=17)) == [ack(4, 17)]
    for _ in range(2):
        assert world.bytes_in(1, publish("a", qos=2, number=18)) == [ack(5, 18)]
    assert len(world.published) == 3
    assert world.bytes_in(1, ack(6, 18)) == [ack(7, 18)]
    several = framed(0x82, b"\0\7" + text("a") + b"\1" + text("$omen/x") + b"\0" + text("b") + b"\2")
    assert world.bytes_in(1, several) == [framed(0x90, b"\0\7\1\x80\2")]
    assert world.bytes_in(1, framed(0xA2, b"\0\3" + text("a") + text("none"))) == [ack(11, 3)]


@holds("3.1.0-1", "3.1.0-2", "3.1.2-1", "3.1.2-2", "3.2.2-4", "3.2.2-5", "3.2.2-6")
def the_first_packet_is_one_connect_of_a_known_version() -> None:
    world = Wire()
    world.bytes_in(1, PING)
    assert 1 in world.closed
    assert closes(connect())
    for packet in (connect(level=6), connect(name="MQTX")):
        world = Wire()
        assert world.bytes_in(1, packet) == [b"\x20\x02\x00\x01"] and 1 in world.closed


@holds("3.1.2-3", "3.1.2-9", "3.1.2-11", "3.1.2-13", "3.1.2-14", "3.1.2-15", "3.1.2-19", "3.1.2-21", "3.1.2-22")
@holds("3.1.3-1", "3.1.3-3", "3.1.4-1")
def a_connect_that_contradicts_itself_is_refused() -> None:
    for packet in (
        connect(CLEAN | 1), connect(CLEAN | WILL, text("c")), connect(CLEAN | 8), connect(CLEAN | 0x20),
        connect(CLEAN | WILL | 0x18, text("c"), text("w"), text("x")), connect(CLEAN | PASSWORD, text("c"), text("p")),
        connect(CLEAN | USER, text("c")), connect(CLEAN | USER | PASSWORD, text("c"), text("u")), connect(CLEAN, b""),
    ):  # fmt: skip
        world = Wire()
        assert OK not in world.bytes_in(1, packet) and 1 in world.closed and not world.door.sessions, packet


@holds("3.1.2-4", "3.1.2-5", "3.1.2-6", "3.1.2-7", "3.2.2-1", "3.2.2-2", "3.2.2-3", "3.1.4-3", "3.1.4-4", "3.2.0-1")
@holds("3.1.3-2", "4.1.0-1", "4.1.0-2", "4.5.0-1", "4.6.0-5", "4.6.0-6")
def sessions_begin_go_on_and_end() -> None:
    world = pair(qos=1)
    world.bytes_in(2, publish("r", b"kept", flags=1))
    world.bytes_in(1, BYE)
    for number in range(5):
        world.bytes_in(2, publish("a", b"%d" % number, qos=1))
    hello, *messages = world.bytes_in(3, connect(0, text("sub")))
    assert hello == OK_PRESENT and [message[-1:] for message in messages] == [b"0", b"1", b"2", b"3", b"4"]
    assert world.bytes_in(4, connect(CLEAN, text("sub"))) == [OK]
    world.bytes_in(2, publish("a", qos=1))
    assert world.take(4) == []
    assert world.bytes_in(4, subscribe("r"))[1] == framed(0x31, text("r") + b"kept")
    world.bytes_in(4, BYE)
    assert world.bytes_in(5, connect(0, text("sub"))) == [OK]


@holds("3.1.2-8", "3.1.2-10", "3.1.2-12", "3.1.2-16", "3.1.2-17", "3.14.4-3", "3.1.2-24", "4.8.0-2")
def wills_and_keep_alive() -> None:
    for retain in (0, 0x20):
        world = Wire()
        world.bytes_in(1, connect(CLEAN | WILL | retain, text("c"), text("w"), text("gone"), keep_alive=10))
        world.door.tick(world.now + 14)
        assert world.closed == set()
        world.door.tick(world.now + 16)
        world.settle()
        assert [(one.payload, one.retain) for one in world.published] == [(b"gone", bool(retain))] and 1 in world.closed
    world = Wire()
    world.bytes_in(1, connect(CLEAN | WILL, text("c"), text("w"), text("gone")))
    world.bytes_in(1, BYE)
    world.bytes_in(2, connect())
    world.door.lost(2, world.now)
    world.settle()
    assert world.published == [] and 1 in world.closed


@holds("3.1.3-5", "3.1.3-6", "3.1.3-8", "3.1.3-9", "3.1.4-2", "3.1.4-5")
def client_ids() -> None:
    world = Wire()
    assert world.bytes_in(1, connect(CLEAN, text("0123456789abcdefghijABC"))) == [OK]
    for number in (2, 3):
        assert world.bytes_in(number, connect(CLEAN, text(""))) == [OK]
    assert len(world.door.sessions) == 3
    assert world.bytes_in(4, connect(0, text("")) + publish("a")) == [b"\x20\x02\x00\x02"] and 4 in world.closed
    assert world.published == []
    world.bytes_in(5, connect(CLEAN, text("0123456789abcdefghijABC")))
    assert 1 in world.closed


@holds("3.3.1-1", "3.3.1-3", "4.3.2-1", "4.3.3-1", "4.4.0-1")
def what_is_not_acknowledged_is_sent_again() -> None:
    world = pair()
    world.bytes_in(2, publish("a", b"1", qos=1, flags=8))
    world.bytes_in(2, publish("a", b"2", qos=2, number=6))
    one, two = world.take(1)
    assert one[0] == 0x32 and two[0] == 0x34
    assert world.bytes_in(1, ack(5, two[6])) == [ack(6, two[6])]
    world.door.lost(1, world.now)
    assert world.bytes_in(3, connect(0, text("sub"))) == [OK_PRESENT, bytes((0x3A,)) + one[1:], ack(6, two[6])]


@holds("3.3.1-5", "3.3.1-6", "3.3.1-7", "3.3.1-8", "3.3.1-9", "3.3.1-10", "3.3.1-11", "3.3.1-12", "3.8.4-3")
def retained_messages() -> None:
    world = pair(qos=0)
    world.bytes_in(2, publish("a", b"old", flags=1, qos=1))
    world.bytes_in(2, publish("a", b"new", flags=1))
    world.bytes_in(2, publish("a", b"passing"))
    assert [message[0] for message in world.take(1)] == [0x30, 0x30, 0x30]
    for _ in range(2):
        assert world.bytes_in(1, subscribe("a", 0))[1] == framed(0x31, text("a") + b"new")
    world.bytes_in(2, publish("a", b"", flags=1))
    world.take(1)
    assert len(world.bytes_in(1, subscribe("a", 0))) == 1


@holds("3.3.2-2", "3.3.2-3", "4.7.1-1", "4.7.1-2", "4.7.1-3", "4.7.2-1", "4.7.3-1", "4.7.3-3")
def names_and_filters() -> None:
    for name in ("a/+", "#", ""):
        assert closes(publish(name))
    assert matches("a/#", "a") and matches("+/b", "a/b") and not matches("+", "a/b") and not matches("#", "$SYS/x")
    assert not any(map(is_valid_filter, ("a#", "#/a", "a+", ""))) and not is_valid_name("a" * 65_536)


@holds("3.3.5-1", "3.8.4-6")
def overlapping_subscriptions_respect_the_highest_qos() -> None:
    world = pair(qos=1)
    world.bytes_in(1, subscribe("+", 2))
    for sent in (0, 1, 2):
        world.bytes_in(2, publish("a", qos=sent, number=sent + 1))
        assert [message[0] >> 1 & 3 for message in world.take(1)] == [sent]


@holds("3.3.5-2")
def what_may_not_be_published_is_acknowledged_and_goes_nowhere() -> None:
    world = Wire(rights=Rights(lambda *_: ConnAckReasonCode.SUCCESS, lambda *_: False, lambda *_: True))
    world.bytes_in(1, connect())
    assert world.bytes_in(1, publish("a", qos=1, number=3)) == [ack(4, 3)] and world.published == []


@holds("3.10.4-2", "3.10.4-3", "3.12.4-1", "4.3.1-1")
def after_unsubscribe_nothing_new_is_begun() -> None:
    world = pair()
    world.bytes_in(2, publish("a", qos=2))
    (begun,) = world.take(1)
    assert world.bytes_in(1, framed(0xA2, b"\0\3" + text("a")) + PING) == [ack(11, 3), PONG]
    world.bytes_in(2, publish("a", qos=0))
    assert world.take(1) == []
    assert world.bytes_in(1, ack(5, begun[6])) == [ack(6, begun[6])]


@holds("6.0.0-1", "6.0.0-2", "6.0.0-4")
def packets_come_in_any_pieces() -> None:
    """See tests/network/test_mqtt.py for WebSocket itself."""
    world = Wire()
    assert [answer for byte in connect() + PING for answer in world.bytes_in(1, bytes((byte,)))] == [OK, PONG]


@pytest.mark.parametrize(("ids", "check"), TABLE.checks, ids=[check.__name__ for _, check in TABLE.checks])
def test_a_statement_of_mqtt_3_1_1_holds(ids: tuple[str, ...], check: Check) -> None:
    check()


def test_every_statement_of_mqtt_3_1_1_is_held_or_of_clients_or_not_supported_with_a_reason() -> None:
    missing, twice, unknown = TABLE.account()
    assert (missing, twice, unknown) == ([], [], [])
