"""Malformed packets of MQTT end their own connection and touch no other client. An hour: tests/network/fuzz_mqtt.py."""

from __future__ import annotations

import pytest
from tests.network.fuzz_mqtt import Attack


@pytest.mark.parametrize("seed", [1, 2])
def test_malformed_packets_harm_nobody_else(seed: int) -> None:
    attack = Attack(seed)
    for _ in range(600):
        attack.one()
    assert attack.results["closed"] > 100 and attack.results["open"] > 20
