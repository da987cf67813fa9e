"""Certificates, secrets and access rules in running clusters, and keys replaced while they run."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.errors import Denied, InvalidInput
from omen.net.broker import Broker, NotJoined
from omen.net.errors import NotHeld
from omen.net.inbox import Message
from omen.net.names import topic_key
from omen.net.observe.node_metrics import metrics_of
from omen.net.security.config import Rule, Security
from omen.net.security.hello import read_hello
from omen.net.security.key_files import authority_in, make_authority, make_node, make_secret, security_from
from omen.net.settings import Limits
from omen.net.transport import peers
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import make_publication, stream_key

from .attackers import Attacker
from .brokers import PATIENCE_S, config, go, take, until

OLDER_HELLO = bytes.fromhex(
    "4f4d454e00010000002e96a46f6d656ecf363e603a4b887e73a56f6c646572ce1054e880ae3132372e302e302e313a37303730ce075bcd15"
)
"""As nodes of revision 0 said it, recorded from one."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    authority = make_authority(folder, "omen", 30)
    for name in ("ann", "bob", "cid", "eve"):
        make_node(folder, authority, "omen", name, 30)
    return folder


def test_a_node_that_shows_no_certificate_a_wrong_one_or_an_expired_one_is_told_and_counted(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = make_authority(tmp_path, "omen", 30)
    make_node(tmp_path, stranger, "omen", "bob", 30)
    make_node(tmp_path / "late", authority_in(keys), "omen", "bob", 0)
    make_node(tmp_path / "elsewhere", authority_in(keys), "omen", "cid", 30)
    ours = str(keys / "ca.pem")
    quick = Limits(join_timeout_s=1.0)
    words = {
        "none": "refused by the other end: this cluster uses certificates",
        "unknown authority": "refused by the other end: it does not believe the authority of this node's certificate",
        "expired": "refused by the other end: this node's certificate has expired",
        "another's": "the certificate shown is for 'cid', not for 'bob'",
        "refused": "'eve' is among the names that are refused",
    }
    attempts = {
        "none": config("bob", "tea", limits=quick),
        "unknown authority": config("bob", "tea", security=shown(tmp_path, "bob", ours)),
        "expired": config("bob", "tea", security=shown(tmp_path / "late", "bob", ours)),
        "another's": config("bob", "tea", security=shown(tmp_path / "elsewhere", "cid", ours)),
        "refused": config("eve", "tea", security=security_from(keys, "eve")),
    }

    monkeypatch.setattr("omen.net.broker.check_own", lambda *_: None)  # as a node of an earlier version

    async def test() -> None:
        own = replace(security_from(keys, "ann"), refuse=("ev*",))
        async with Broker(config("ann", "tea", security=own)) as ann:
            for what, attempt in attempts.items():
                ann.admission.bans.lift_all()
                before = ann.admission.refused.total()
                with pytest.raises(NotJoined, match=words[what]):
                    async with Broker(replace(attempt, join=(ann.address,), limits=quick)):
                        pass
                assert ann.admission.refused.total() > before, what
            counted = ann.admission.refused
            assert (
                counted["not_a_node"]
                and counted["certificate"] >= 2
                and counted["identity"]
                and counted["refused_name"]
            )
            ann.admission.bans.lift_all()
            async with Broker(config("bob", "tea", join=(ann.address,), security=security_from(keys, "bob"))) as bob:
                await ann.publish("tea", b"green")
                async for message in bob.messages():
                    assert isinstance(message, Message) and message.payload == b"green"
                    break

    go(test())


def shown(folder: Path, name: str, believed: str) -> Security:
    """A certificate from one folder, whatever the holder believes."""
    return Security((believed,), str(folder / f"{name}.pem"), str(folder / f"{name}.key"))


class Rotated:
    """Nodes that publish and hear while their keys are changed under them."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.brokers = brokers
        self.heard: dict[str, list[int]] = {broker.name: [] for broker in brokers}
        self.said = 0
        self._tasks = [asyncio.ensure_future(self._listen(broker)) for broker in brokers[1:]]
        self._tasks.append(asyncio.ensure_future(self._speak()))

    async def _listen(self, broker: Broker) -> None:
        async for item in broker.messages():
            assert isinstance(item, Message)
            self.heard[broker.name].append(item.sequence)

    async def _speak(self) -> None:
        while True:
            self.said = await self.brokers[0].publish("tea", b"x")
            await asyncio.sleep(0.01)

    async def settle(self) -> None:
        """Until all that was said is heard, and all connections are by the keys in force."""
        said = self.said + 5
        await until(lambda: all(len(self.heard[broker.name]) >= said for broker in self.brokers[1:]))

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for broker in self.brokers[1:]:
            heard = self.heard[broker.name]
            assert heard == list(range(1, len(heard) + 1))
            assert broker.gaps == 0 and broker.driver is not None and broker.driver.counters.rejoins == 0


def versions(brokers: list[Broker]) -> set[int]:
    return {connection.key_version for broker in brokers for connection in broker.driver.peers.connections()}  # type: ignore[union-attr]


def test_certificates_and_their_authority_are_replaced_while_the_cluster_runs(tmp_path: Path) -> None:
    names = ("ann", "bob", "cid")
    old = make_authority(tmp_path, "omen", 30)
    for name in names:
        make_node(tmp_path, old, "omen", name, 30)
    both, new_alone = tmp_path / "authorities.pem", make_authority(tmp_path, "omen", 30, "ca2")
    both.write_bytes(old.certificate.read_bytes())

    async def test() -> None:
        brokers: list[Broker] = []
        for name in names:
            security = replace(security_from(tmp_path, name), authorities=(str(both),), watch_s=0.1)
            join = tuple(broker.address for broker in brokers[:1])
            brokers.append(Broker(config(name, "tea", join=join, security=security)))
            await brokers[-1].start()
        rotated = Rotated(brokers)
        await rotated.settle()
        both.write_bytes(old.certificate.read_bytes() + new_alone.certificate.read_bytes())
        await until(lambda: versions(brokers) == {2})
        await rotated.settle()
        for name in names:
            make_node(tmp_path, new_alone, "omen", name, 30)
            await asyncio.sleep(0.3)
        await until(lambda: min(versions(brokers), default=0) >= 3)
        await rotated.settle()
        both.write_bytes(new_alone.certificate.read_bytes())
        await until(lambda: min(versions(brokers), default=0) >= 4)
        await rotated.settle()
        make_node(tmp_path / "old", old, "omen", "bob2", 30)
        late = shown(tmp_path / "old", "bob2", str(both))
        with pytest.raises(InvalidInput, match=r"issuer.*security\.authorities"):
            joins = (brokers[0].address,)
            async with Broker(config("bob2", "tea", join=joins, security=late, limits=Limits(join_timeout_s=1.0))):
                pass
        rotated.end()
        for broker in brokers:
            await broker.abandon()

    go(test())


def test_the_secret_is_replaced_while_the_cluster_runs(tmp_path: Path) -> None:
    old, new = make_secret(tmp_path / "old"), make_secret(tmp_path / "new")

    async def test() -> None:
        brokers: list[Broker] = []
        for name in ("ann", "bob", "cid"):
            join = tuple(broker.address for broker in brokers[:1])
            brokers.append(Broker(config(name, "tea", join=join, security=Security(secrets=(str(old),)))))
            await brokers[-1].start()
        rotated = Rotated(brokers)
        for step in ((old, new), (new, old), (new,)):
            security = Security(secrets=tuple(map(str, step)))
            told = [replace(broker.config, security=security) for broker in brokers]
            assert all(await asyncio.gather(*map(Broker.renew_keys, brokers, told)))
            assert not any(await asyncio.gather(*map(Broker.renew_keys, brokers, told)))
            await rotated.settle()
        stale = config("dan", "tea", join=(brokers[0].address,), security=Security(secrets=(str(old),)))
        with pytest.raises(NotJoined, match="secret"):
            async with Broker(stale):
                pass
        rotated.end()
        for broker in brokers:
            await broker.abandon()

    go(test())


def test_keys_that_cannot_be_read_leave_the_former_ones_in_force(tmp_path: Path) -> None:
    secret = make_secret(tmp_path / "secret")

    async def test() -> None:
        security = Security(secrets=(str(secret),), watch_s=0.05)
        async with Broker(config("ann", "tea", security=security)) as ann:
            secret.write_text("short")
            await until(lambda: ann.admission.counters.key_renewal_failures)
            assert ann.admission.credentials.version == 1 and len(ann.admission.credentials.secrets[0]) > 16

    go(test())


def test_denied_means_an_error_for_the_caller_and_nothing_for_those_who_claim(keys: Path) -> None:
    rules = (Rule(("tea",), ("ann",), ("ann", "bob")), Rule(("jazz",), ("*",), ("*",)))

    def ruled(name: str, *topics: str, join: tuple[str, ...] = ()) -> Broker:
        hasty = Limits(leave_timeout_s=0.5)
        return Broker(config(name, *topics, join=join, security=security_from(keys, name), access=rules, limits=hasty))

    async def test() -> None:
        async with (
            ruled("ann", "tea", "jazz") as ann,
            ruled("bob", "tea", join=(ann.address,)) as bob,
            ruled("cid", "jazz", join=(ann.address,)) as cid,
        ):
            with pytest.raises(Denied, match="'bob' may not publish on 'tea'"):
                await bob.publish("tea", b"mine")
            with pytest.raises(Denied, match="'cid' may not subscribe to 'tea'"):
                await cid.subscribe("tea")
            await ann.publish("tea", b"green")
            async for message in bob.messages():
                assert isinstance(message, Message) and message.payload == b"green"
                break
            cid.admission.access.set_rules(())
            with pytest.raises(TimeoutError):
                await cid.subscribe("tea", replay=True, timeout=1.0)
            await ann.publish("tea", b"black")
            await cid.publish("tea", b"forged")
            await until(lambda: ann.admission.access.denied["claimed"])
            assert ann.admission.refused["access"] >= 1
            page = metrics_of(ann)
            assert re.search(r'^omen_connections_refused_total\{reason="access"\} [1-9]', page, re.MULTILINE)
            assert re.search(r'^omen_access_denied_total\{action="claimed"\} [1-9]', page, re.MULTILINE)
            assert cid.delivered == 1, "its own word, and nothing else"
            assert bob.delivered == 1 or bob.delivered == 2
            async for message in bob.messages():
                assert isinstance(message, Message) and message.payload == b"black"
                break
            with pytest.raises(NotHeld, match="do not hold 1 of its publications"):
                await cid.stop()

    go(test())


def test_a_connection_ends_with_the_certificate_it_was_made_by_and_is_made_again(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "SWEEP_S", 0.1)

    async def test() -> None:
        async with (
            Broker(config("ann", "tea", security=security_from(keys, "ann"))) as ann,
            Broker(config("bob", "tea", join=(ann.address,), security=security_from(keys, "bob"))) as bob,
        ):
            assert ann.driver is not None
            (connection,) = ann.driver.peers.connections()
            assert 29 * 86_400 < connection.valid_until - time.time() < 31 * 86_400
            connection.valid_until = time.time() - 1
            await until(lambda: ann.admission.refused["certificate"])
            await ann.publish("tea", b"green")
            async for message in bob.messages():
                assert isinstance(message, Message) and message.payload == b"green"
                break
            assert connection.is_closed

    go(test())


def test_a_node_takes_other_keys_and_rules_over_on_a_hangup_signal(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_secret(tmp_path / name)
    settings = tmp_path / "node.toml"
    settings.write_text('name = "n1"\n[security]\nsecrets = ["one"]\nwatch_s = 1000.0\n')
    command = [sys.executable, "-m", "omen.cli", "node", "--config", str(settings), "--json"]
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert node.stdout is not None and json.loads(node.stdout.readline())["name"] == "n1"
        settings.write_text('name = "n1"\n[security]\nsecrets = ["two", "missing"]\n')
        node.send_signal(signal.SIGHUP)
        wait_for_line(tmp_path / "log", "key_renewal_failed")
        settings.write_text('name = "n1"\n[security]\nsecrets = ["two", "one"]\n')
        node.send_signal(signal.SIGHUP)
        wait_for_line(tmp_path / "log", "keys_renewed")
        wait_for_line(tmp_path / "log", "settings_reloaded changed=security.secrets")
        assert node.poll() is None
    finally:
        node.kill()
        node.wait()


def wait_for_line(path: Path, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while words not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)


def test_a_cluster_with_certificates_takes_clients_with_one_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    omen = (sys.executable, "-m", "omen.cli")
    try:
        up = [*omen, "cluster", "up", "--nodes", "4", "--tls", "--json"]
        assert subprocess.run(up, capture_output=True, timeout=PATIENCE_S).returncode == 0
        assert main(["status", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        node = told["status"][0]
        assert (told["refused"], told["denied"]) == ({}, {})
        topic, join = node["topics"][0]["topic"], ("--join", node["address"])
        key = ("--config", "omen-cluster/client.toml")
        Path("plain.toml").write_text("limits.join_timeout_s = 1.0\n")
        plain = [*omen, "pub", topic, "x", *join, "--config", "plain.toml"]
        refused = subprocess.run(plain, capture_output=True, text=True, timeout=PATIENCE_S)
        assert refused.returncode == 2 and "certificates" in refused.stderr
        said = subprocess.run([*omen, "pub", topic, "x", *join, *key], capture_output=True, timeout=PATIENCE_S)
        assert said.returncode == 0
        assert main(["cluster", "start", node["name"]]) == 2
        main(["status", "--json"])
        assert "refused" in json.loads(capsys.readouterr().out.splitlines()[-1])
    finally:
        main(["cluster", "down"])


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
            (message,) = await take(ann, 1)
            assert message.payload == b"as ever"
            older.close()

    go(test())
