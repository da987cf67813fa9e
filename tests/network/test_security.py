"""Who may connect, who may speak: secrets, names in certificates, versions, access rules, counts and rates."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omen.cli.main import main
from omen.errors import Denied, InvalidInput, MissingDependency
from omen.net.access import Access
from omen.net.broker import Broker
from omen.net.credentials import Credentials
from omen.net.engine import load_engine
from omen.net.handshake import Handshake, certified_names, name_in_certificate
from omen.net.hello import PREFACE, Hello, Refused, read_hello, write_hello
from omen.net.inbox import Message
from omen.net.keys import make_authority, make_node, make_secret, read_certificate, security_from
from omen.net.limits import REMEMBERED, Backoff, Bucket, Census, Lines
from omen.net.names import topic_key
from omen.net.running import run
from omen.net.security import Rule, Security
from omen.net.settings import LIVE, NodeConfig, read_node_config
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import make_publication, stream_key

from .attackers import Attacker

PATIENCE_S = 180.0
QUICK = replace(LIVE, gossip_period=100_000, ready_rounds=2)
OLDER_HELLO = bytes.fromhex(
    "4f4d454e00010000002e96a46f6d656ecf363e603a4b887e73a56f6c646572ce1054e880ae3132372e302e302e313a37303730ce075bcd15"
)
"""As nodes of revision 0 said it, recorded from one."""


def go(test: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test

    load_engine()
    run(limited())


def config(name: str, *topics: str, join: tuple[str, ...] = (), **more: Any) -> NodeConfig:
    return NodeConfig(name=name, topics=topics, join=join, protocol=QUICK, **more)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    authority = make_authority(folder, "omen", 30)
    for name in ("ann", "bob", "cid", "eve", "client-*"):
        make_node(folder, authority, "omen", name, 30)
    make_secret(folder / "secret")
    return folder


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def hello(name: str, **more: Any) -> Hello:
    return Hello("omen", place_of(name), name, 7, "127.0.0.1:1", 5, 1, **more)


def meet(one: Handshake, other: Handshake) -> tuple[Hello | None, Hello | None]:
    """Two ends talk until both know each other, or one has had enough."""
    to_one, to_other = bytearray(other.opening), bytearray(one.opening)
    known: list[Hello | None] = [None, None]
    for _ in range(6):
        for side, (end, incoming, outgoing) in enumerate(((one, to_one, to_other), (other, to_other, to_one))):
            if known[side] is None:
                answer, known[side] = end.take(incoming)
                outgoing += answer
    return known[0], known[1]


def test_nothing_listens_beyond_loopback_unless_it_is_protected_or_said_to_be_open(keys: Path) -> None:
    for listen in ("10.0.0.1:7070", "[2001:db8::1]:7070", "myhost:7070"):
        with pytest.raises(InvalidInput, match=r"can be reached from other machines.*open = true"):
            NodeConfig(listen=listen)
        NodeConfig(listen=listen, security=Security(open=True))
        NodeConfig(listen=listen, security=Security(secrets=(str(keys / "secret"),)))
        NodeConfig(listen=listen, security=security_from(keys, "ann"))
    for listen in ("127.0.0.1:0", "127.8.9.1:0", "[::1]:0", "localhost:0"):
        NodeConfig(listen=listen)
    assert NodeConfig().listen.startswith("127.0.0.1:")
    assert not NodeConfig().http


def test_half_a_set_of_keys_a_short_secret_and_rules_without_certificates_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"security\.key"):
        Security(authorities=("ca.pem",), certificate="n.pem")
    (tmp_path / "short").write_text("sesame\n")
    with pytest.raises(InvalidInput, match="can be guessed"):
        Credentials(Security(secrets=(str(tmp_path / "short"),)))
    with pytest.raises(InvalidInput, match="No such file"):
        Credentials(Security(secrets=(str(tmp_path / "none"),)))
    with pytest.raises(InvalidInput, match="go by the names in certificates"):
        NodeConfig(access=(Rule(("*",), ("*",), ("*",)),))


def test_a_settings_file_gives_keys_relative_to_itself_and_rules_as_tables(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(
        'name = "n1"\n[security]\nauthorities = ["ca.pem"]\ncertificate = "n1.pem"\nkey = "n1.key"\n'
        '[[access]]\ntopics = ["prices/*"]\npublish = ["trader-*"]\nsubscribe = ["*"]\n'
    )
    settings = read_node_config(path)
    assert settings.security.certificate == str(tmp_path / "n1.pem")
    assert settings.access == (Rule(("prices/*",), ("trader-*",), ("*",)),)
    path.write_text('name = "n1"\n[[access]]\ntopic = ["prices/*"]\n')
    with pytest.raises(InvalidInput, match=r"unknown setting access\.topic; did you mean 'topics'"):
        read_node_config(path)


def test_both_ends_prove_the_secret_and_any_that_is_believed_will_do() -> None:
    old, new = b"o" * 32, b"n" * 32
    for ours, theirs in (((old,), (old,)), ((old,), (new, old)), ((new, old), (old, new))):
        one = Handshake(hello("ann"), True, secrets=ours)
        other = Handshake(hello("bob"), False, secrets=theirs)
        met = meet(one, other)
        assert met[0] is not None and met[0].name == "bob"
        assert met[1] is not None and met[1].name == "ann"
    for ours, theirs in (((old,), (new,)), ((old,), ()), ((), (new,))):
        with pytest.raises(Refused, match="secret") as refused:
            meet(Handshake(hello("ann"), True, secrets=ours), Handshake(hello("bob"), False, secrets=theirs))
        assert refused.value.why == "secret"


def test_neither_a_recording_nor_an_echo_passes_for_a_proof() -> None:
    secrets = (b"s" * 32,)
    dialler, acceptor = Handshake(hello("ann"), True, secrets=secrets), Handshake(hello("bob"), False, secrets=secrets)
    proof, _ = dialler.take(bytearray(acceptor.opening))
    assert acceptor.take(bytearray(dialler.opening + proof))[1] is not None
    again = Handshake(hello("bob"), False, secrets=secrets)
    with pytest.raises(Refused) as refused:
        again.take(bytearray(dialler.opening + proof))
    assert refused.value.why == "secret"
    mirror = Handshake(hello("ann"), True, secrets=secrets)
    with pytest.raises(Refused, match="its own name"):
        mirror.take(bytearray(mirror.opening))
    first = Handshake(hello("ann"), True, secrets=secrets)
    own_proof, _ = first.take(bytearray(Handshake(hello("eve"), False, secrets=secrets).opening))
    with pytest.raises(Refused, match="secret"):
        first.take(bytearray(own_proof))


def test_a_node_of_an_older_revision_is_served_where_no_secret_is_needed() -> None:
    greeting = read_hello(OLDER_HELLO)
    assert greeting is not None and (greeting.hello.name, greeting.hello.revision) == ("older", 0)

    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            older = await Attacker.dial(ann.address, "127.0.0.1")
            older.send(OLDER_HELLO)
            await until(lambda: place_of("older") in ann.driver.peers.table)  # type: ignore[union-attr]
            key = stream_key(topic_key("tea"), place_of("older"), 274000000)
            older.send_frame(make_publication(key, 1, b"as ever", opening=True).frame)
            async for message in ann.messages():
                assert isinstance(message, Message) and message.payload == b"as ever"
                break
            older.close()

    go(test())
    with pytest.raises(Refused, match="this cluster has a secret, and the other end is set to none"):
        Handshake(hello("ann"), False, secrets=(b"s" * 32,)).take(bytearray(OLDER_HELLO))


@pytest.mark.parametrize(("version", "word"), [(0, "an older"), (2, "a newer")])
def test_another_version_is_refused_with_one_clear_line_before_the_rest_is_looked_at(version: int, word: str) -> None:
    other = bytearray(OLDER_HELLO)
    other[4:6] = version.to_bytes(2, "big")
    line = f"the other end speaks {word} wire format, version {version}; this node speaks version 1"
    with pytest.raises(Refused, match=line) as refused:
        read_hello(bytes(other[: PREFACE.size]))
    assert refused.value.why == "version"


def test_fields_that_a_later_revision_adds_are_passed_over() -> None:
    body = msgspec.msgpack.encode([*msgspec.structs.astuple(hello("bob")), "of tomorrow", 7])
    greeting = read_hello(PREFACE.pack(b"OMEN", 1, len(body)) + body)
    assert greeting is not None and greeting.hello == hello("bob")


def test_a_certificate_gives_its_holder_the_names_in_it_and_no_other() -> None:
    ours = {"subjectAltName": (("URI", name_in_certificate("omen", "a/b é")), ("DNS", "other")), "subject": ()}
    assert certified_names(ours, "omen") == ("a/b é",)
    assert certified_names(ours, "elsewhere") == ()
    plain = {"subject": ((("commonName", "n*"),),), "subjectAltName": (("DNS", "n1.example"),)}
    names = certified_names(plain, "omen")
    Handshake(hello("ann"), False, certified=names).take(bytearray(write_hello(hello("n*"))))
    for name in ("n1", "n1.example.org"):
        with pytest.raises(Refused, match="certificate shown is for") as refused:
            Handshake(hello("ann"), False, certified=names).take(bytearray(write_hello(hello(name))))
        assert refused.value.why == "identity"
    many = certified_names({"subjectAltName": (("URI", name_in_certificate("omen", "client-*")),)}, "omen")
    assert Handshake(hello("ann"), False, certified=many).take(bytearray(write_hello(hello("client-7")))) is not None


def test_the_command_makes_an_authority_certificates_and_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["keys", "ca", "--cluster", "shop"]) == 0
    assert main(["keys", "node", "n1", "client-*", "--cluster", "shop", "--days", "7", "--json"]) == 0
    assert main(["keys", "secret"]) == 0
    assert {Path(f"keys/{name}").stat().st_mode & 0o777 for name in ("n1.key", "ca.key", "secret")} == {0o600}
    facts = read_certificate("keys/n1.pem")
    assert (facts.names, facts.cluster, (facts.ends - facts.begins).days) == (("n1",), "shop", 7)
    assert main(["keys", "show", "keys/ca.pem", "keys/client-any.pem"]) == 0
    assert "authority" in capsys.readouterr().out
    assert main(["keys", "ca", "--cluster", "shop"]) == 2
    assert "an authority is there already" in capsys.readouterr().err
    assert main(["keys", "node", "n2", "--cluster", "other"]) == 2
    assert main(["keys", "secret"]) == 2
    Credentials(security_from(tmp_path / "keys", "n1"))


RULES = (
    Rule(("prices/*",), ("ann", "trader-*"), ("bob", "ann")),
    Rule(("news",), ("ann",), ("*",)),
)


def test_the_first_rule_for_a_topic_decides_and_a_topic_without_one_is_nobodys() -> None:
    access = Access(RULES, "bob")
    access.check_subscribe(["prices/tea", "news"])
    with pytest.raises(
        Denied, match=r"'bob' may not publish on 'prices/tea': the rule for prices/\* lets ann, trader-\*"
    ):
        access.check_publish("prices/tea")
    with pytest.raises(Denied, match="no access rule is for this topic"):
        access.check_subscribe(["weather"])
    assert access.denied == {"publish": 1, "subscribe": 1}
    Access((), "bob").check_publish("weather")


def test_publications_are_taken_only_from_those_who_may_publish_or_carry_them() -> None:
    access = Access(RULES, "bob")
    for topic in ("prices/tea", "news"):
        access.know_topic(topic_key(topic), topic)

    def takes(sender: str, topic: str, publisher: str) -> bool:
        key = stream_key(topic_key(topic), place_of(publisher), 1)
        return access.takes(sender, make_publication(key, 1, b"", opening=True))

    assert takes("ann", "prices/tea", "ann")
    assert not takes("bob2", "prices/tea", "bob2")
    assert not takes("cid", "prices/tea", "ann"), "cid may not carry it"
    assert takes("ann", "prices/tea", "trader-7"), "ann has checked, and any trader may"
    assert takes("cid", "news", "ann")
    assert not takes("cid", "news", "dan"), "only ann may, and this is not her place"
    assert access.denied == {"received": 3}
    access.know_peer("eve")
    assert not takes("ann", "prices/tea", "eve"), "eve has been met, and is no trader"


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = Bucket(100.0)
    assert bucket.take(100, 10.0) == 0
    assert bucket.take(50, 10.0) == pytest.approx(0.5)
    assert bucket.take(0, 10.5) == 0
    assert bucket.take(1, 10.51) == pytest.approx(0.0)
    assert Bucket(0).take(10**9, 0.0) == 0


def test_pauses_double_end_and_are_forgotten_and_their_number_is_bounded() -> None:
    backoff = Backoff(1.0, 8.0)
    assert [backoff.strike("x", float(now)) for now in (0, 1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert backoff.pause_left("x", 5.0) == 7.0 and not backoff.pause_left("x", 12.0) and not backoff.pause_left("y", 0)
    assert backoff.strike("x", 100.0) == 1.0
    for number in range(2 * REMEMBERED):
        backoff.strike(number, 0.0)
    assert len(backoff) == REMEMBERED


def test_connections_are_counted_by_address_and_let_go() -> None:
    census = Census()
    for who in range(4):
        census.enter(who, "a" if who % 2 else "b")
    census.settle(1)
    census.settle(2)
    assert (len(census), census.by_address["a"], census.half_open_by_address["b"]) == (4, 2, 1)
    assert census.oldest_half_open() == 0
    for who in (0, 1, 2, 3, 3):
        census.leave(who)
    assert not census.by_address and not census.half_open_by_address and not census.members_by_address


def test_a_crowd_of_refusals_fills_no_log() -> None:
    lines = Lines()
    passed = [lines.skipped_before(1.0) for _ in range(1000)]
    assert sum(line is not None for line in passed) <= 21
    assert lines.skipped_before(2.0) == 1000 - sum(line is not None for line in passed)


def test_running_nodes_do_without_the_package_that_makes_keys(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert Credentials(security_from(keys, "ann")).contexts is not None
    make_secret(tmp_path / "secret")
    with pytest.raises(MissingDependency, match=r"omen-overlay\[keys\]"):
        make_authority(tmp_path, "omen", 30)
