"""Delivery latency: stamped now and then, compared where it is delivered."""

from __future__ import annotations

from omen.net.observe.latency import DeliveryLatency
from omen.protocol.messages.publications import Fields, read_fields, write_fields


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_publication_is_stamped_twice_per_second_at_most() -> None:
    clock = Clock(1000.0)
    latency = DeliveryLatency(clock)
    stamped = 0
    for _ in range(500):
        clock.now += 0.01
        stamped += bool(latency.stamp(b""))
    assert stamped in (10, 11)  # of 5 s
    clock.now -= 500  # the clock was set back: it goes on all the same
    assert latency.stamp(b"")


def test_what_an_application_sends_along_is_left_as_it_is() -> None:
    headers = write_fields(Fields(headers={"kind": "green"}))
    assert DeliveryLatency(Clock(5.0)).stamp(headers) == headers


def test_the_time_between_the_stamp_and_the_delivery_counts() -> None:
    sender, receiver = Clock(1000.0), Clock(1000.4)
    fields = DeliveryLatency(sender).stamp(b"")
    assert read_fields(fields).timestamp == 1_000_000
    latency = DeliveryLatency(receiver)
    latency.observe(fields)
    receiver.now = 999.0  # its clock is behind
    latency.observe(fields)
    latency.observe(write_fields(Fields(headers={"kind": "green"})))
    latency.observe(b"no fields at all")
    assert latency.times.count == 2 and abs(latency.times.total - 0.4) < 1e-6
