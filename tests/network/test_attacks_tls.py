"""Attacks on nodes with certificates and access rules."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from omen.net.names import topic_key
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials
from omen.net.security.hello import write_hello
from omen.net.security.key_files import authority_in, make_cluster_keys, make_node, security_from
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.overlay import Descriptor, Digest, LinkOpen, Ref
from omen.protocol.messages.publications import make_publication, stream_key

from .attackers import Attacker, address, be_member, context_of, hello_of, keys_of, many
from .besieged import TOPIC, Siege, besieged
from .withstanding import refusals, withstand


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    with besieged(tmp_path_factory.mktemp("tls"), "tls") as siege:
        yield siege


def wrong_certificates(siege: Siege, folder: Path) -> list[Security]:
    """Of an unknown authority under our names; of ours, but expired; of ours, for another cluster."""
    believed = (str(siege.folder / "ca.pem"),)
    make_cluster_keys(folder / "unknown", "omen", ["eve-1"])
    unknown = security_from(folder / "unknown", "eve-1")
    late = make_node(folder / "late", authority_in(siege.folder), "omen", "eve-1", 0)
    return [
        Security(believed, unknown.certificate, unknown.key),
        Security(believed, str(late.certificate), str(late.key)),
    ]


def test_no_certificate_a_wrong_one_and_an_expired_one_are_refused_and_counted(siege: Siege, tmp_path: Path) -> None:
    contexts = [context_of(Credentials(security)) for security in wrong_certificates(siege, tmp_path)]
    for context in contexts:
        assert context is not None

    async def one(number: int, draw: random.Random) -> None:
        kind = number % 4
        attacker = await Attacker.dial(siege.address_of["ann"], address(), contexts[kind] if kind < 2 else None)
        if kind == 2:
            attacker.send(write_hello(hello_of("eve-1")))
        elif kind == 3:
            attacker.send(draw.randbytes(2000))
        else:
            attacker.send(write_hello(hello_of("eve-1")))
        await attacker.read_to_end()

    counted = withstand(siege, lambda: many(240, one, 8), growth_mb=24.0)
    assert refusals(counted, "certificate", "not_a_node", "hello_timeout") == 240
    assert counted["certificate"] >= 60
    assert counted["not_a_node"] >= 60


def test_a_member_that_claims_the_name_of_another_is_refused(siege: Siege) -> None:
    context = context_of(keys_of(siege, "eve-*"))

    async def one(number: int, draw: random.Random) -> None:
        attacker = await Attacker.dial(siege.address_of["ann"], address(), context)
        attacker.send(write_hello(hello_of(draw.choice(("bob", "cid", "eve", "Eve-1")))))
        heard = await attacker.read_to_end()
        assert not heard or b"the certificate shown is for 'eve-*'" in heard

    counted = withstand(siege, lambda: many(40, one, 8))
    assert refusals(counted, "identity") == 40
    assert counted["identity"] >= 20


def test_a_recording_of_an_encrypted_session_is_of_no_use(siege: Siege) -> None:
    recorded: list[bytes] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = siege.address_of["ann"].split(":")
        there, back = await asyncio.open_connection(host, int(port))

        async def answers() -> None:
            while piece := await there.read(1 << 16):
                writer.write(piece)

        returning = asyncio.ensure_future(answers())
        while piece := await reader.read(1 << 16):
            recorded.append(piece)
            back.write(piece)
        back.close()
        returning.cancel()

    async def one(number: int, draw: random.Random) -> None:
        again = await Attacker.dial(siege.address_of["ann"], address())
        again.send(b"".join(recorded))
        await again.read_to_end()

    async def attack() -> None:
        proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        credentials = keys_of(siege, "eve-*")
        member = await Attacker.dial(f"127.0.0.1:{port}", "127.0.0.1", context_of(credentials))
        assert await member.greet(hello_of("eve-recorded")) is not None
        member.close()
        await asyncio.sleep(0.1)
        proxy.close()
        assert sum(map(len, recorded)) > 500
        await many(20, one)

    counted = withstand(siege, attack)
    assert refusals(counted, "not_a_node", "certificate", "hello_timeout") == 20


def test_a_member_that_may_not_carry_a_topic_neither_publishes_it_nor_is_handed_it(siege: Siege) -> None:
    key = topic_key(TOPIC)

    async def attack() -> None:
        me = Ref(place_of("liar"), 300_000_000, "127.0.0.66:1")
        speaker = await be_member(siege, "liar", holds="liar")
        speaker.send_frame(make_publication(stream_key(key, me.id, 1), 1, b"lie", opening=True).frame)
        assert b"may not publish on this topic" in await speaker.read_to_end()
        await asyncio.sleep(1.0)
        listener = await be_member(siege, "liar", to="bob", holds="liar")
        listener.say(LinkOpen(Descriptor(Digest(me, 1, 1), (key,), ()), ()))
        heard = await listener.read_to_end()
        assert b"may not carry a topic that it lays claim to" in heard
        relayed = await be_member(siege, "liar", to="cid", holds="liar")
        ann = stream_key(key, place_of("ann"), 1)
        for sequence in range(1, 21):
            relayed.send_frame(make_publication(ann, sequence, b"forged", opening=True).frame)
        await asyncio.sleep(0.5)
        relayed.close()

    counted = withstand(siege, attack)
    assert counted["received"] == 21
    assert counted["claimed"] == 1
    assert counted["access"] == 2
