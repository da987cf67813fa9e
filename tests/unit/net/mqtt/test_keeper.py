"""What the keeper of a door does with the stored records of the cluster, without a cluster."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from omen.net.groups import Member
from omen.net.mqtt import keeper
from omen.net.mqtt.keeper import Keeper
from omen.net.mqtt.outputs import Claim, Retained, TellGroup
from omen.net.mqtt.records import ClientHere, DoorHere, GroupMembers, SessionHanded
from omen.net.mqtt.session import ApplicationMessage
from omen.net.mqtt.shares import Shares
from omen.net.mqtt.stored import Change, Published, SessionHead, write_head
from omen.net.records import Found, Records
from omen.protocol.messages.records import Record


class Front:
    """A front door at a node whose two successors have `copies` of each record."""

    def __init__(self, copies: int) -> None:
        self.told: list[str] = []
        self.copies = copies
        status = SimpleNamespace(
            config=SimpleNamespace(resilience=2), membership=SimpleNamespace(ring=dict.fromkeys("ab"))
        )
        self.broker: Any = SimpleNamespace(
            name="n",
            node=1,
            status=lambda: status,
            log=SimpleNamespace(warning=lambda what, **_: self.told.append(what)),
        )
        self.broker.records = Records(self.broker)
        self.broker.records.store = self._store
        self.door = SimpleNamespace(groups=Shares())

    async def _store(self, _: Any) -> int:
        return self.copies


@pytest.mark.parametrize(("copies", "is_held"), [(2, True), (1, False)])
def test_successors_that_are_full_are_not_asked_for_ever(
    copies: int, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "STORE_FOR_S", 0.02)
    monkeypatch.setattr(keeper, "RETRY_S", 0.01)
    front, heard = Front(copies), list[bool]()
    one = Keeper(front)  # type: ignore[arg-type]
    message = Published(ApplicationMessage("a", b"x", qos=1), ("a", 1, 1), 1)
    asyncio.run(asyncio.wait_for(one.hold(message, heard.append), 2))
    assert heard == [is_held]
    assert one.unheld == (not is_held) and ("mqtt_not_held" in front.told) != is_held


@pytest.mark.parametrize("waits", [True, False])
def test_a_session_that_goes_on_elsewhere_already_is_not_stored_over(waits: bool) -> None:
    front, said = Front(2), list[object]()
    front.door = SimpleNamespace(
        groups=Shares(), release=lambda *_: [Change(b"k", b"v", 1.0)], has_will=lambda _: False
    )
    stored: list[object] = []

    async def say(_: str, record: object) -> None:
        said.append(record)

    async def store(written: list[object]) -> int:
        stored.extend(written)
        return 2

    front.say, front.act, front.broker.records.store = say, lambda: None, store  # type: ignore[attr-defined]
    asyncio.run(Keeper(front).give(ClientHere("me", "n2", 7, wants_session=waits)))  # type: ignore[arg-type]
    assert len(stored) == waits
    assert said == [SessionHanded("n2", 7, "" if waits else "me")]


def test_doors_hear_again_and_again_that_a_door_has_no_members_any_more() -> None:
    """Who missed that the last one went would choose it for ever."""
    front, told = Front(2), list[object]()
    front.tell = lambda _, record: told.append(record)  # type: ignore[attr-defined]
    one = Keeper(front)  # type: ignore[arg-type]
    one.hear(DoorHere("n2#b"), 1.0)
    assert told == [], "it never had any"
    one.tell_group(TellGroup("$share/g/a", (Member("ann"),)))
    one.tell_group(TellGroup("$share/g/a", ()))
    one.hear(DoorHere("n4#b"), 1.0)
    assert told[-1] == GroupMembers(one.owner, {}, is_all=True)


def test_a_goodbye_that_has_come_is_read_before_a_client_is_taken_for_replaced() -> None:
    """Else its will would be published."""
    front, order = Front(2), list[str]()
    front.door = SimpleNamespace(groups=Shares(), has_will=lambda _: True, release=lambda *_: order.append("release"))
    front.act = lambda: None  # type: ignore[attr-defined]

    async def give() -> None:
        asyncio.get_running_loop().call_soon(order.append, "goodbye")
        await Keeper(front).give(ClientHere("me", "n2", 7, wants_session=True))  # type: ignore[arg-type]

    asyncio.run(give())
    assert order == ["goodbye", "release"]


def test_of_two_retained_messages_the_later_one_is_stored_whichever_is_stored_last() -> None:
    """After a restart of the whole cluster nothing else is known of them."""
    front, orders = Front(2), dict[bytes, tuple[int, int]]()

    async def store(written: list[Record]) -> int:
        orders.update({one.value: one.order for one in written})
        return 2

    front.broker.records.store = store
    one = Keeper(front)  # type: ignore[arg-type]

    async def retain() -> None:
        for at in (2000, 1000):  # the second is one with QoS 2 that its client sent once more
            await one.retain(Retained((at, "n"), ApplicationMessage("a", b"%d" % at, retain=True)))

    asyncio.run(retain())
    assert max(orders, key=lambda value: orders[value]).count(b"2000") == 1


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_node_that_is_slow_decides_on_the_will_of_its_client_and_for_one_that_is_gone_the_next_does(
    is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A goodbye may wait there, unread."""
    monkeypatch.setattr(keeper, "SESSION_TIMEOUT_S", 0.01)
    monkeypatch.setattr(keeper, "SETTLE_POLL_S", 0.01)
    will = ApplicationMessage("w", b"gone", 1)
    head = write_head(SessionHead("me", "n2#1", True, 60, None, will=will), 1.0)
    front, wills, done = Front(2), list[object](), list[str]()

    async def fetch(_: str) -> Found:
        return Found((Record(0, head.key, 1, 2, head.value, 1),), True)

    async def say(*_: object) -> None:
        pass

    front.broker.records.fetch, front.broker.has_neighbours = fetch, lambda _: True
    front.say, front.act, front.start = say, lambda: None, asyncio.ensure_future  # type: ignore[attr-defined]
    front.door = SimpleNamespace(
        groups=Shares(), publish_will_of=lambda one: wills.append(one.will), store_again=done.append
    )

    async def come() -> None:
        one = Keeper(front)  # type: ignore[arg-type]
        one.doors.is_settled = lambda now: True  # type: ignore[method-assign]
        there = [True]
        one.doors.is_there = lambda *_: there[0]  # type: ignore[method-assign]
        brought: list[Any] = []
        front.door.claimed = lambda _, stored, now: brought.append(stored)
        front.broker.kept = lambda _: []
        front.door.sessions = {}
        await one.claim(Claim(7, "me", wants_session=True))
        assert brought[0].head.will is None and wills == []
        if is_slow:
            one.handed(7)
        else:
            there[0] = False
        await asyncio.sleep(0.05)

    asyncio.run(come())
    assert (wills, done) == (([], ["me"]) if is_slow else ([will], []))
