"""Admission control: limits by address, bans, rate limits by node, keys that stay in force."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pytest

from omen.net.observe.logs import Log
from omen.net.security.admission import AdmissionControl
from omen.net.security.config import Security
from omen.net.security.hello import Hello, Reason, Refused
from omen.net.settings import Limits
from omen.protocol.membership.ring import place_of

EVE = Hello("omen", place_of("eve"), "eve", 1, "127.0.0.66:1", 1)
HERE, THERE = "10.0.0.1", "10.0.0.2"


def admission(**limits: int) -> AdmissionControl:
    return AdmissionControl(Limits(**limits), Log("ann"), "omen", "ann")


def reason_for(control: AdmissionControl, address: str, now: float = 0.0) -> Reason | None:
    refusal = control.turn_away(address, now)
    return None if refusal is None else refusal.reason


def add(control: AdmissionControl, address: str, *connections: Hashable) -> None:
    for connection in connections:
        control.inbound.add(connection, address)


def test_an_address_that_breaks_the_protocol_is_banned_for_a_while() -> None:
    control = admission()
    control.note_refusal(Refused("noise", Reason.NOT_A_NODE), HERE, None, 100.0)
    assert reason_for(control, HERE, 100.1) is Reason.BANNED
    assert reason_for(control, THERE, 100.1) is None
    assert reason_for(control, HERE, 100.3) is None
    assert control.refused == {"not_a_node": 1}


def test_an_address_with_a_peer_behind_it_is_not_banned_as_a_whole() -> None:
    control = admission()
    add(control, HERE, 1)
    control.admit(1, EVE, 0.0)
    control.note_refusal(Refused("noise", Reason.FRAME), HERE, None, 0.0)
    assert reason_for(control, HERE, 0.1) is None


def test_a_node_that_breaks_the_protocol_is_not_admitted_and_not_dialled() -> None:
    control = admission()
    control.note_refusal(Refused("noise", Reason.FRAME), HERE, EVE, 0.0)
    with pytest.raises(Refused) as refused:
        control.admit(1, EVE, 0.1)
    assert refused.value.reason is Reason.BANNED
    assert control.redial_delay(EVE.node, 0.1) == pytest.approx(0.1)


def test_a_node_that_refuses_this_one_is_dialled_later_and_not_banned() -> None:
    control = admission()
    control.note_refusal(Refused("no", Reason.REFUSED_BY_PEER, by_peer=True), "", EVE, 0.0)
    assert control.redial_delay(EVE.node, 0.0) > 0
    control.admit(1, EVE, 0.0)


def test_connections_are_limited_in_all_by_address_and_while_half_open() -> None:
    control = admission(connections=3, connections_per_address=2, half_open_per_address=1)
    add(control, HERE, 1)
    assert reason_for(control, HERE) is Reason.CONNECTION_LIMIT, "one is half-open"
    control.admit(1, EVE, 0.0)
    assert reason_for(control, HERE) is None
    add(control, HERE, 2)
    control.inbound.settle(2)
    assert reason_for(control, HERE) is Reason.CONNECTION_LIMIT, "two from this address"
    assert reason_for(control, THERE) is None
    add(control, THERE, 3)
    assert reason_for(control, "10.0.0.3") is Reason.CONNECTION_LIMIT, "three in all"


def test_to_connect_again_brings_no_further_rate() -> None:
    control = admission()
    first = control.admit(1, EVE, 0.0)
    assert control.admit(2, EVE, 1.0) is first


def test_keys_that_cannot_be_read_again_leave_the_former_ones_in_force(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 32)
    path.chmod(0o600)
    security = Security(secrets=(str(path),))
    control = AdmissionControl(Limits(), Log("ann"), "omen", "ann", security)
    path.write_text("short")
    assert not control.renew()
    assert control.renewal_error and not control.credentials.has_changed(), "it would be told twice"
    assert (control.credentials.secrets, control.counters.key_renewal_failures) == ((b"s" * 32,), 1)
    path.write_text("t" * 32)
    assert control.renew() and not control.renewal_error
    assert (control.credentials.secrets, control.counters.key_renewals) == ((b"t" * 32,), 1)
