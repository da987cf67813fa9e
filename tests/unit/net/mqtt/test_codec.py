"""Packets of 3.1.1 are read and written as its standard has them; damaged ones are refused and never crash."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode, QoS, SubAckReasonCode

from omen.net.mqtt.codec import LONGEST_EXPIRY, V3, V5, Decoder, Malformed, encode

CONNECT_3 = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x"
CONNECT_5 = mqtt5.ConnectPacket("x", keep_alive=60).write()


def decoder(first: bytes) -> Decoder:
    made = Decoder(1 << 16)
    made.feed(first)
    return made


def test_a_connect_of_3_1_1_becomes_one_of_5() -> None:
    will = b"\x00\x01w\x00\x03bye"
    body = b"\x00\x04MQTT\x04" + bytes([0b11101100]) + b"\x00\x0a\x00\x02me" + will + b"\x00\x01u\x00\x01p"
    (packet,) = Decoder(1 << 16).feed(b"\x10" + bytes([len(body)]) + body)
    assert isinstance(packet, mqtt5.ConnectPacket)
    assert (packet.client_id, packet.username, packet.password) == ("me", "u", b"p")
    assert not packet.clean_start
    assert packet.session_expiry_interval == LONGEST_EXPIRY
    assert packet.keep_alive == 10
    assert packet.will is not None
    assert (packet.will.topic, packet.will.payload, packet.will.retain) == ("w", b"bye", True)
    assert packet.will.qos == QoS.AT_LEAST_ONCE


def test_publish_both_ways() -> None:
    data = b"\x3b\x07\x00\x01a\x00\x07hi"
    (packet,) = decoder(CONNECT_3).feed(data)
    assert isinstance(packet, mqtt5.PublishPacket)
    assert (packet.topic, packet.payload, packet.packet_id) == ("a", b"hi", 7)
    assert packet.retain
    assert packet.duplicate
    assert encode(packet, V3) == data


def test_answers_of_3_1_1() -> None:
    failed = mqtt5.SubAckPacket(5, [SubAckReasonCode.GRANTED_QOS_EXACTLY_ONCE, SubAckReasonCode.NOT_AUTHORIZED])
    assert encode(failed, V3) == b"\x90\x04\x00\x05\x02\x80"
    refused = mqtt5.ConnAckPacket(reason_code=ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, session_present=True)
    assert encode(refused, V3) == b"\x20\x02\x00\x04"
    assert encode(mqtt5.PubRelPacket(3), V3) == b"\x62\x02\x00\x03"
    assert encode(mqtt5.DisconnectPacket(), V3) == b""  # a server of 3.1.1 has no word for it
    assert encode(mqtt5.PingRespPacket(), V3) == b"\xd0\x00"


@pytest.mark.parametrize("first", [CONNECT_3, CONNECT_5])
def test_packets_come_in_pieces(first: bytes) -> None:
    made = Decoder(1 << 16)
    assert [packet for byte in first for packet in made.feed(bytes((byte,)))]
    assert made.version == (V3 if first is CONNECT_3 else V5)
    assert len(made.feed(b"\xc0\x00\xc0\x00\xc0")) == 2
    assert len(made.feed(b"\x00")) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\xc0\x00",  # not CONNECT first
        b"G",  # of HTTP's GET, before its length can be read
        b"\x10\x0c\x00\x06MQIsdp\x03\x02\x00\x3c",  # MQTT 3.1
        b"\x10\xff\xff\xff\xff\x01",
        b"\x10\xff\xff\x7f",  # larger than allowed
        b"\x10\x0d\x00\x04MQTT\x04\x03\x00\x3c\x00\x01x",  # the reserved flag
    ],
)
def test_no_beginning(data: bytes) -> None:
    with pytest.raises(Malformed):
        Decoder(1 << 16).feed(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x60\x02\x00\x01",  # PUBREL without its flag
        b"\x82\x02\x00\x01",  # no filter
        b"\x82\x06\x00\x01\x00\x01a\x03",  # QoS 3
        b"\x32\x05\x00\x01a\x00\x00",  # number 0
        b"\x36\x05\x00\x01a\x00\x01",  # QoS 3
        b"\xc0\x01x",
        b"\xf0\x00",
        b"\x30\x03\x00\x01\xff",
    ],
)
def test_malformed_packets_of_3_1_1(data: bytes) -> None:
    with pytest.raises(Malformed):
        decoder(CONNECT_3).feed(data)


@settings(max_examples=300)
@given(st.sampled_from([CONNECT_3, CONNECT_5]), st.binary(max_size=60))
def test_any_bytes_are_packets_or_malformed(first: bytes, data: bytes) -> None:
    made = decoder(first)
    try:
        for packet in made.feed(data):
            encode(packet, made.version)
    except Malformed:
        pass
