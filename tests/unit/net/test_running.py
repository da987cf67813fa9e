"""Nodes as commands run them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.net.broker import Broker, NotHeld
from omen.net.observe.logs import LOGGER
from omen.net.reload import SettingsFile
from omen.net.running import prepare_node, run_node
from omen.net.settings import NodeConfig


@pytest.fixture
def log_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handlers that a node gives its logger are taken from it again."""
    logger = logging.getLogger(LOGGER)
    monkeypatch.setattr(logger, "handlers", list(logger.handlers))
    monkeypatch.setattr(logger, "propagate", logger.propagate)


@pytest.mark.usefixtures("log_as_before")
def test_a_deprecated_setting_stands_in_the_log_of_the_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "node.toml"
    path.write_text("name = 'n1'\n[protocol]\nmend_rho = 7.5\n")
    assert prepare_node(SettingsFile(str(path))).protocol.repair_rho == 7.5
    assert 'warning n1: deprecated what="the setting protocol.mend_rho' in capsys.readouterr().err


async def leave_badly(broker: Broker) -> None:
    """As a broker does whose neighbours hold nothing."""
    await broker.abandon()
    raise NotHeld("node 'n1' has left: neighbours do not hold 3 of its publications")


def test_a_signal_ends_a_node_with_what_its_neighbours_do_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broker, "stop", leave_badly)
    with pytest.raises(NotHeld, match="do not hold 3"):
        run_node(NodeConfig(name="n1"), lambda broker: os.kill(os.getpid(), signal.SIGTERM))


def test_the_command_says_how_many_publications_are_not_held_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise NotHeld("node 'n1' has left: neighbours do not hold 3 of its publications")

    path = tmp_path / "node.toml"
    path.write_text("name = 'n1'\n")
    monkeypatch.setattr("omen.net.running.prepare_node", lambda *_: NodeConfig(name="n1"))
    monkeypatch.setattr("omen.net.running.run_node", run)
    assert main(["node", "--config", str(path)]) == 1
    assert capsys.readouterr().err == "node 'n1' has left: neighbours do not hold 3 of its publications\n"


BAD = {
    'listen = "127.0.0.1:99999"': "listen '127.0.0.1:99999': must be HOST:PORT",
    'listen = "127.0.0.1:x"': "listen '127.0.0.1:x': must be HOST:PORT",
    'listen = "nohost.invalid:7000"\ncluster = "c"\nsecurity.open = true': "cannot listen at nohost.invalid:7000",
    'join = ["127.0.0.1"]': "join '127.0.0.1': must be HOST:PORT",
    'mqtt = "127.0.0.1:0"\nmqtt_users = "nope"': "nope: the users of MQTT cannot be read: No such file or directory",
    '[security]\nsecrets = ["nope"]': "security: nope: No such file or directory",
    '[security]\nauthorities = ["z"]\ncertificate = "x"\nkey = "y"': "security: z: No such file or directory",
    '[security]\nauthorities = ["garbage"]\ncertificate = "garbage"\nkey = "garbage"': "no certificate in PEM form",
    "topics = [": "not TOML",
    'nmae = "n1"': "unknown setting nmae; did you mean 'name'?",
}


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize(("settings", "words"), BAD.items(), ids=[words.split(":")[0] for words in BAD.values()])
def test_settings_that_cannot_be_end_a_node_with_one_line(
    settings: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("node.toml").write_text(f"{settings}\n")
    Path("garbage").write_text("no key, no certificate")
    Path("garbage").chmod(0o600)
    assert main(["node", "--config", "node.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("omen: ") and words in line


@pytest.mark.usefixtures("log_as_before")
def test_a_file_of_seeds_that_is_not_there_is_told_at_once_and_ends_a_node_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("node.toml").write_text('join_file = "nope"\nlimits.join_timeout_s = 0.1\n')
    assert main(["node", "--config", "node.toml"]) == 2
    *told, ended = capsys.readouterr().err.splitlines()
    assert told and all("seeds_not_read" in line and "nope" in line for line in told), "at each attempt, nothing else"
    assert ended.startswith("omen: no member to join through within 0.1 s: join_file nope:")


@pytest.mark.parametrize("where", ["99999", "x:y", "-1"])
def test_a_port_for_mqtt_that_cannot_be_is_one_line(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "--mqtt", where]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("omen: mqtt ") and "must be HOST:PORT" in line


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (signal.SIGTERM, signal.SIGTERM, ["node_leaving", "node_abandoned"]),
        (signal.SIGTERM, signal.SIGQUIT, ["node_leaving", "node_abandoned"]),
        (signal.SIGQUIT, None, ["node_started", "node_abandoned"]),
        (signal.SIGTERM, None, ["node_leaving", "node_left"]),
    ],
)
def test_why_a_node_stops_stands_in_its_log(
    first: signal.Signals,
    second: signal.Signals | None,
    told: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def wait_long(*_: object) -> int:
        if second is not None:
            os.kill(os.getpid(), second)
            await asyncio.sleep(60)
        return 0

    monkeypatch.setattr("omen.net.member.wait_until_held", wait_long)
    with caplog.at_level(logging.INFO, LOGGER):
        run_node(NodeConfig(name="n1"), lambda broker: os.kill(os.getpid(), first))
    assert [record.getMessage() for record in caplog.records][-2:] == told


def test_a_node_that_is_stopped_while_it_looks_for_others_says_so(caplog: pytest.LogCaptureFixture) -> None:
    config = NodeConfig(name="n1", join=("127.0.0.1:1",))
    kill = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    kill.start()
    with caplog.at_level(logging.INFO, LOGGER):
        run_node(config, lambda broker: None)
    assert caplog.records[-1].getMessage() == "node_abandoned"
