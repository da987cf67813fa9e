"""What a front door says of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mqtt5 import Will
from tests.unit.net.mqtt.doors import Stored

from omen.net.mqtt.facts import facts_of
from omen.net.mqtt.session import ApplicationMessage


def test_a_front_door_counts_what_it_has_and_what_came_of_it() -> None:
    world = Stored()
    world.connect(1, "ann", session_expiry_interval=60, receive_max=1, will=Will("w", will_delay_interval=5))
    world.subscribe(1, "a/+", qos=2)
    world.subscribe(1, "$share/g/s", qos=1)
    world.connect(2, "bob", will=Will("w"))
    world.publish(2, "r", b"kept", retain=True)
    for _ in range(2):
        world.door.deliver(ApplicationMessage("a/b", b"twice", qos=2, mark="n/1"), world.now)
    world.door.deliver(ApplicationMessage("a/b", b"waits", qos=1), world.now)
    world.door.address(ApplicationMessage("s", b"shared"))
    world.settle()
    for number in (1, 2):
        world.door.lost(number, world.now)
    world.settle()
    keeper = SimpleNamespace(unheld=1, unstored=2, adopted=3, recovered=4)
    publisher = SimpleNamespace(failed=5, held_back=6)
    front: Any = SimpleNamespace(door=world.door, keeper=keeper, publisher=publisher)
    facts = facts_of(front)
    assert (facts.clients, facts.sessions, facts.subscriptions, facts.retained, facts.queued) == (0, 1, 2, 1, 1)
    assert (facts.marks, facts.repeated, facts.shares, facts.share_members, facts.shared) == (1, 1, 1, 1, 1)
    assert (facts.wills, facts.waiting_wills, facts.received, facts.sent) == (1, 1, 1, 1)
    assert (facts.unheld, facts.unstored, facts.adopted, facts.recovered) == (1, 2, 3, 4)
    assert (facts.failed, facts.held_back) == (5, 6) and facts.queued_bytes and facts.retained_bytes
