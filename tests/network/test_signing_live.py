"""Signed publications in running clusters, and a member that forges."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from omen.net.broker import Broker
from omen.net.names import topic_key
from omen.net.observe.node_metrics import metrics_of
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials
from omen.net.security.key_files import make_authority, make_node, security_from
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import make_publication, stream_key

from .attackers import Attacker, context_of, hello_of
from .brokers import config, go, take, until


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    authority = make_authority(folder, "omen", 30)
    for name in ("ann", "bob", "cid", "eve"):
        make_node(folder, authority, "omen", name, 30, "ed25519" if name == "cid" else "p256")
    return folder


def security(keys: Path, name: str, verify: str = "require", sign: bool = True) -> Security:
    return replace(security_from(keys, name), sign=sign, verify=verify)


def test_a_member_that_may_carry_a_topic_cannot_forge_for_another(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before: whatever Eve said in Ann's name was delivered as Ann's."""
    caplog.set_level(logging.WARNING, "omen.node")

    async def test() -> None:
        async with (
            Broker(config("ann", "tea", security=security(keys, "ann"))) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=security(keys, "bob"))) as bob,
        ):
            await ann.publish("tea", b"green", {"kind": "loose"})
            (first,) = await take(bob, 1)
            assert first.verified and first.headers == {"kind": "loose"} and first.publisher == "ann"
            (own,) = await take(ann, 1)
            assert own.verified
            eve = await Attacker.dial(bob.address, "127.0.0.1", context_of(Credentials(security_from(keys, "eve"))))
            assert await eve.greet(hello_of("eve")) is not None
            await eve.become_neighbour("eve", topic_key("tea"))
            key = stream_key(topic_key("tea"), place_of("ann"), first.incarnation)
            for block in (b"", first.fields):
                eve.send_frame(make_publication(key, 2, b"poison", False, block).frame)
            await until(lambda: bob.admission.signatures.counts["forged"])  # type: ignore[union-attr]
            await ann.publish("tea", b"black")
            (second,) = await take(bob, 1)
            assert (second.payload, second.sequence, second.verified) == (b"black", 2, True)
            assert bob.gaps == 0
            eve.close()
            assert 'omen_publications_verified_total{verdict="forged"} 1' in metrics_of(bob)
            assert 'omen_publications_verified_total{verdict="unsigned"} 1' in metrics_of(bob)
        lines = [record for record in caplog.records if record.getMessage() == "publication_refused"]
        assert [line.fields["cause"] for line in lines] == ["unsigned", "forged"]  # type: ignore[attr-defined]
        assert {line.fields["peer"] for line in lines} == {"eve"}  # type: ignore[attr-defined]

    go(test())


def test_one_that_comes_late_verifies_what_it_is_handed_also_of_the_time_before(keys: Path) -> None:
    """Bob, in between, does not look at signatures, and passes them on as they are."""

    async def test() -> None:
        async with (
            Broker(config("ann", "tea", security=security(keys, "ann"))) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=security(keys, "bob", "off", False))) as bob,
        ):
            for number in range(20):
                await ann.publish("tea", bytes((number,)))
            assert not any(message.verified for message in await take(bob, 20))
            async with Broker(config("cid", join=(bob.address,), security=security(keys, "cid"))) as cid:
                await cid.subscribe("tea", replay=True)
                for number in range(20, 30):
                    await ann.publish("tea", bytes((number,)))
                found = await take(cid, 30)
                assert [message.payload[0] for message in found] == list(range(30))
                assert all(message.verified for message in found) and cid.gaps == 0
                await cid.publish("tea", b"by cid")
                messages = await take(ann, 31)
                assert messages[-1].payload == b"by cid" and messages[-1].verified

    go(test())


def test_where_signatures_are_marked_unsigned_publications_come_through_as_such(keys: Path) -> None:
    async def test() -> None:
        async with (
            Broker(config("ann", "tea", security=security_from(keys, "ann"))) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=security(keys, "bob", "mark"))) as bob,
        ):
            await ann.publish("tea", b"plain")
            await ann.renew_keys(replace(ann.config, security=security(keys, "ann", "off")))
            await ann.publish("tea", b"signed")
            plain, signed = await take(bob, 2)
            assert (plain.payload, plain.verified) == (b"plain", False)
            assert (signed.payload, signed.verified) == (b"signed", True)

    go(test())


def test_what_is_made_up_in_a_nodes_own_name_is_not_shown_to_it_as_verified(keys: Path) -> None:
    """Before: where signatures are marked, anything in a publisher's own name passed for its own."""

    async def test() -> None:
        async with Broker(config("bob", "tea", security=security(keys, "bob", "mark"))) as bob:
            eve = await Attacker.dial(bob.address, "127.0.0.1", context_of(Credentials(security_from(keys, "eve"))))
            assert await eve.greet(hello_of("eve")) is not None
            await eve.become_neighbour("eve", topic_key("tea"))
            await bob.publish("tea", b"mine")
            own, place = bob.status().ref.incarnation, place_of("bob")
            for incarnation, sequence in ((own, 2), (own - 1, 1)):
                key = stream_key(topic_key("tea"), place, incarnation)
                eve.send_frame(make_publication(key, sequence, b"made up", True).frame)
            found = await take(bob, 2)
            assert [(each.payload, each.verified) for each in found] == [(b"mine", True), (b"made up", False)]
            assert found[1].incarnation == own - 1
            eve.close()

    go(test())
