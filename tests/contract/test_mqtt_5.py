"""MQTT 5: each normative statement that concerns a server has a check, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import tests.contract.test_mqtt_5_behaviour
import tests.contract.test_mqtt_5_connect
import tests.contract.test_mqtt_5_format
import tests.contract.test_mqtt_5_publish
import tests.contract.test_mqtt_5_subscribe
from tests.contract.mqtt_5_table import TABLE
from tests.contract.mqtt_table import Wire

from omen.net import mqtt
from omen.net.mqtt.outputs import DoorLimits

SECTIONS = (
    tests.contract.test_mqtt_5_behaviour,
    tests.contract.test_mqtt_5_connect,
    tests.contract.test_mqtt_5_format,
    tests.contract.test_mqtt_5_publish,
    tests.contract.test_mqtt_5_subscribe,
)


def test_every_statement_of_mqtt_5_is_held_or_of_clients_or_not_supported_with_a_reason() -> None:
    assert all(TABLE.checks_of(section.__name__) for section in SECTIONS)
    missing, twice, unknown = TABLE.account()
    assert (missing, twice, unknown) == ([], [], [])
    assert all(TABLE.not_supported.values())


def test_the_reasons_why_statements_are_not_supported_still_hold() -> None:
    sources = "".join(path.read_text() for path in Path(mqtt.__file__).parent.glob("*.py"))
    assert "reason_string" not in sources and "AuthPacket" not in sources
    hello = Wire().connect(1)
    assert hello.max_qos in (None, 2) and hello.retain_available in (None, True)


def test_limits_are_told() -> None:
    hello = Wire(limits=DoorLimits(receive_max=7, topic_aliases=5, packet_bytes=5000)).connect(1)
    assert (hello.receive_max, hello.topic_alias_max, hello.max_packet_size) == (7, 5, 5000)
