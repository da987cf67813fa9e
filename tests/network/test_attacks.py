"""Attacks on live nodes: they stay up, memory stays bounded, honest traffic arrives, every refusal is counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from omen.net.names import topic_key
from omen.net.security.hello import MAGIC, PREFACE, VERSION, Hello, write_hello
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import EventId, EventKind
from omen.protocol.messages.overlay import (
    Descriptor,
    Descriptors,
    Digest,
    LinkOpen,
    Locate,
    LossReport,
    Ref,
    Status,
)
from omen.protocol.messages.publications import Announce, StreamMark, make_publication, stream_key

from .attackers import Attacker, address, be_member, hello_of, many
from .besieged import TOPIC, Siege, besieged
from .withstanding import refusals, withstand


@pytest.fixture(scope="module")
def open_siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    with besieged(tmp_path_factory.mktemp("open"), "open") as siege:
        yield siege


@pytest.fixture(scope="module")
def secret_siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    with besieged(tmp_path_factory.mktemp("secret"), "secret") as siege:
        yield siege


def test_random_bytes_are_refused_and_counted(open_siege: Siege) -> None:
    async def one(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(open_siege.address_of["ann"], address())
        attacker.send(b"\x00" + draw.randbytes(draw.choice((3, 100, 60_000))))
        await attacker.read_to_end()

    counted = withstand(open_siege, lambda: many(150, one))
    assert refusals(counted, "not_a_node") == 150
    assert counted["not_a_node"] > 50


def test_an_address_that_goes_on_breaking_the_protocol_is_heard_ever_less(open_siege: Siege) -> None:
    async def attack() -> None:
        for _ in range(60):
            attacker = await Attacker.dial(open_siege.address_of["ann"], "127.0.5.5")
            attacker.send(b"GET / HTTP/1.1\r\n\r\n")
            await attacker.read_to_end()
            await asyncio.sleep(0.02)

    counted = withstand(open_siege, attack)
    assert refusals(counted, "not_a_node") == 60
    assert counted["banned"] > counted["not_a_node"]


def test_truncated_hellos_end_after_a_time_and_truncated_frames_at_once(open_siege: Siege) -> None:
    async def cut_hello(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(open_siege.address_of["ann"], address())
        whole = write_hello(hello_of("eve-1"))
        attacker.send(whole[: draw.randrange(1, len(whole))])
        await attacker.read_to_end()

    async def cut_frame(number: int, draw: random.Random) -> None:
        attacker = await be_member(open_siege, f"eve-cut{number}")
        attacker.send_frame(make_publication(stream_key(1, 2, 3), 4, b"", opening=True).frame[: draw.randrange(1, 29)])
        await attacker.read_to_end()

    async def attack() -> None:
        await asyncio.gather(many(30, cut_hello, 30), many(30, cut_frame))

    counted = withstand(open_siege, attack)
    assert refusals(counted, "hello_timeout") >= 30
    assert counted["frame"] == counted["unreadable_frames"] == 30


def test_oversized_frames_are_refused_before_they_are_kept(open_siege: Siege) -> None:
    async def one(number: int, draw: random.Random) -> None:
        attacker = await be_member(open_siege, f"eve-big{number}")
        head = draw.choice((1 << 31, (1 << 20) + 1, (1 << 32) - 1)).to_bytes(4, "big")
        cut = draw.randrange(5)
        attacker.send(head[:cut])
        await asyncio.sleep(0.01)
        attacker.send(head[cut:] + bytes(4 << 20))
        await attacker.read_to_end()

    async def attack() -> None:
        await many(40, one, 8)
        huge = await Attacker.dial(open_siege.address_of["ann"], address())
        huge.send(PREFACE.pack(MAGIC, VERSION, 1 << 30) + bytes(1 << 20))
        await huge.read_to_end()

    counted = withstand(open_siege, attack)
    assert counted["frame"] + counted.get("frame_timeout", 0) == 40
    assert counted["frame"] >= 30
    assert refusals(counted, "hello") >= 1


def test_a_flood_of_hellos_keeps_no_member_out(open_siege: Siege) -> None:
    async def one(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(open_siege.address_of["ann"], f"127.0.9.{1 + number % 4}")
        attacker.send(write_hello(hello_of(f"eve-{number}", cluster="elsewhere")))
        await attacker.read_to_end()

    async def silent(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(open_siege.address_of["ann"], f"127.0.9.{10 + number % 8}")
        await attacker.read_to_end()

    async def attack() -> None:
        crowd = asyncio.ensure_future(many(150, silent, 150))
        await many(600, one, 50)
        assert await be_member(open_siege, "eve-honest")
        await crowd

    counted = withstand(open_siege, attack)
    assert refusals(counted, "cluster", "hello_timeout") >= 750
    assert counted["connection_limit"] > 0


def test_a_slow_reader_is_given_no_more_than_its_queue_and_let_go(open_siege: Siege) -> None:
    async def attack() -> None:
        loop = asyncio.get_running_loop()
        for number in range(3):
            name = f"eve-slow-reader{number}"
            attacker = await be_member(open_siege, name)
            await attacker.become_neighbour(name, topic_key(TOPIC))
            attacker.stop_reading()
        await loop.run_in_executor(None, lambda: open_siege.tell(do="payload", size=30_000))
        await asyncio.sleep(6.0)
        await loop.run_in_executor(None, lambda: open_siege.tell(do="payload", size=100))

    counted = withstand(open_siege, attack)
    assert counted.get("slow_consumers", 0) + counted.get("stalled", 0) >= 1


def test_a_member_that_floods_is_read_from_later(open_siege: Siege) -> None:
    async def flood(number: int, draw: random.Random) -> None:
        name = f"eve-flood{number}"
        attacker = await be_member(open_siege, name)
        me = Ref(place_of(name), attacker.incarnation, "127.0.0.66:1")
        for nonce in range(1500):
            attacker.say(Locate(me, nonce, nonce))
        await asyncio.sleep(2.0)
        attacker.close()

    assert withstand(open_siege, lambda: many(4, flood))["throttled_reads"] >= 4


def test_a_slow_sender_is_let_go(open_siege: Siege) -> None:
    async def trickle(attacker: Attacker, data: bytes) -> None:
        with pytest.raises(ConnectionError):
            for position in range(len(data)):
                attacker.writer.write(data[position : position + 1])
                await attacker.writer.drain()
                await asyncio.sleep(0.1)

    async def attack() -> None:
        members = [await be_member(open_siege, f"eve-slow{number}") for number in range(5)]
        strangers = [await Attacker.dial(open_siege.address_of["ann"], address()) for _ in range(5)]
        frame = (1000).to_bytes(4, "big") + bytes(1000)
        await asyncio.gather(
            *(trickle(member, frame) for member in members),
            *(trickle(stranger, write_hello(hello_of("eve-x"))) for stranger in strangers),
        )

    counted = withstand(open_siege, attack)
    assert counted["frame_timeout"] >= 5
    assert counted["hello_timeout"] >= 5


def test_a_wrong_secret_none_and_a_recording_of_the_right_one_are_refused(secret_siege: Siege) -> None:
    recordings: list[bytes] = []

    async def one(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(secret_siege.address_of["ann"], address())
        if number % 3 == 0:
            assert await attacker.greet(hello_of(f"eve-{number}"), (draw.randbytes(32),)) is None
        elif number % 3 == 1:
            attacker.send(write_hello(hello_of(f"eve-{number}")) + bytes(1000))
        else:
            attacker.send(recordings[0])
        await attacker.read_to_end()

    async def attack() -> None:
        member = await be_member(secret_siege, "eve-recorded")
        member.say(Status(Digest(Ref(place_of("eve-recorded"), 1, "x:1"), 1, 1), (), ()))
        recordings.append(member.sent)
        await asyncio.sleep(0.1)
        member.close()
        await many(90, one)

    counted = withstand(secret_siege, attack)
    assert refusals(counted, "secret") == 90
    assert counted["secret"] > 30


def test_a_recording_of_an_open_session_is_of_a_former_incarnation(open_siege: Siege) -> None:
    async def attack() -> None:
        member = await be_member(open_siege, "eve-twice")
        later = await Attacker.dial(open_siege.address_of["ann"], address())
        assert await later.greet(hello_of("eve-twice")) is not None
        again = await Attacker.dial(open_siege.address_of["ann"], address())
        again.send(member.sent)
        assert b"is taken by a node that is alive" in await again.read_to_end()
        later.close()

    assert refusals(withstand(open_siege, attack), "former_incarnation", "name_taken") >= 1


def test_a_peer_that_lies_about_its_id_is_refused(open_siege: Siege) -> None:
    async def one(number: int, draw: random.Random) -> None:
        claims: list[Hello] = [
            hello_of("eve-1", node=place_of("bob")),
            hello_of("eve-1", node=draw.getrandbits(64)),
            hello_of("ann"),
            hello_of("eve 1\n"),
        ]
        attacker = await Attacker.dial(open_siege.address_of["ann"], address())
        attacker.send(write_hello(claims[number % 4]))
        await attacker.read_to_end()

    counted = withstand(open_siege, lambda: many(80, one))
    # who goes by the node's own name gets no further than its proof, which does not come
    assert refusals(counted, "identity", "hello", "hello_timeout") == 80
    assert counted["identity"] >= 20


def test_a_member_that_lies_about_neighbours_topics_and_sequences_harms_no_honest_traffic(open_siege: Siege) -> None:
    key = topic_key(TOPIC)

    async def lie(number: int, draw: random.Random) -> None:
        name = f"eve-liar{number}"
        made_up = [Ref(draw.getrandbits(64), 1, "127.0.0.66:1") for _ in range(200)]
        topics = tuple(sorted({key, *(draw.getrandbits(63) for _ in range(2000))}))
        attacker = await be_member(open_siege, name)
        me = await attacker.become_neighbour(name, key)
        attacker.say(Status(Digest(me, 5, 5), tuple(made_up), tuple(made_up[:3])))
        attacker.say(Descriptors((Descriptor(Digest(me, 1 << 40, 1 << 40), topics, tuple(made_up)),)))
        attacker.say(LinkOpen(Descriptor(Digest(me, 9, 9), topics, tuple(made_up)), tuple(made_up[:3])))
        attacker.say(LossReport(EventId(me.id, me.incarnation, EventKind.LEAVE), me, topics[:50]))
        attacker.say(Status(Digest(made_up[0], 5, 5), (), ()))
        mine = stream_key(key, me.id, me.incarnation)
        for sequence in (0, 1 << 62, (1 << 64) - 1, 5, 3, 3, 1 << 40, *(draw.getrandbits(50) for _ in range(50))):
            attacker.send_frame(make_publication(mine, sequence, b"x" * 50, opening=draw.randrange(2) == 0).frame)
        marks = tuple(StreamMark(me.id, me.incarnation, 1, 1, draw.getrandbits(60), -1, 0) for _ in range(50))
        attacker.say(Announce(((key, marks),), compare=True))
        await asyncio.sleep(0.5)
        attacker.close()

    counted = withstand(open_siege, lambda: many(12, lie, 4))
    assert counted["impossible"] >= 12
    assert counted["dropped false"] >= 12


def test_ten_thousand_mutated_frames_raise_nothing_and_change_no_delivery(secret_siege: Siege) -> None:
    answers: list[dict[str, Any]] = []

    async def over_the_wire(number: int, draw: random.Random) -> None:
        attacker = await be_member(secret_siege, f"eve-mutant{number}")
        attacker.send_frame(draw.randbytes(40))
        await attacker.read_to_end()

    async def attack() -> None:
        loop = asyncio.get_running_loop()
        told = loop.run_in_executor(None, lambda: secret_siege.tell(do="mutate", count=10_000, seed=7))
        await many(40, over_the_wire)
        answers.append(await told)

    counted = withstand(secret_siege, attack)
    (answer,) = answers
    print(answer)
    assert answer["failures"] == 0
    assert sum(answer["refusals"].values()) > 1000
    assert counted["frame"] >= 30
