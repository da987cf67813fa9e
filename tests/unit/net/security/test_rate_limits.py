"""Buckets, bans, counts of connections, and a limit for the log."""

from __future__ import annotations

import pytest

from omen.net.security.rate_limits import REMEMBERED, Bans, Bucket, InboundConnections


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = Bucket(100.0)
    assert bucket.take(100, 10.0) == 0
    assert bucket.take(50, 10.0) == pytest.approx(0.5)
    assert bucket.take(0, 10.5) == 0
    assert bucket.take(1, 10.51) == pytest.approx(0.0)
    assert Bucket(0).take(10**9, 0.0) == 0


def test_bans_double_end_and_are_forgotten_and_their_number_is_bounded() -> None:
    bans = Bans(1.0, 8.0)
    assert [bans.ban("x", float(now)) for now in (0, 1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert bans.remaining("x", 5.0) == 7.0 and not bans.remaining("x", 12.0) and not bans.remaining("y", 0)
    assert (bans.active(5.0), bans.active(12.5)) == (1, 0)
    assert bans.ban("x", 100.0) == 1.0
    for number in range(2 * REMEMBERED):
        bans.ban(number, 0.0)
    assert len(bans) == REMEMBERED
    for number in range(2 * REMEMBERED, 3 * REMEMBERED):
        bans.ban_for(number, 0.0, 60.0)  # a member with as many names as it likes: each is banned by the core
    assert len(bans) == REMEMBERED and bans.remaining(3 * REMEMBERED - 1, 0.0) == 60.0
    bans.lift_all()
    assert len(bans) == 0


def test_connections_are_counted_by_address_and_let_go() -> None:
    inbound = InboundConnections()
    for number in range(4):
        inbound.add(number, "a" if number % 2 else "b")
    inbound.settle(1)
    inbound.settle(2)
    assert (len(inbound), inbound.by_address["a"], inbound.half_open_by_address["b"]) == (4, 2, 1)
    assert inbound.oldest_half_open() == 0
    for number in (0, 1, 2, 3, 3):
        inbound.remove(number)
    assert not inbound.by_address and not inbound.half_open_by_address and not inbound.peers_by_address
