"""Settings that are read again while a node runs: what is taken over, and what says that it needs a start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from omen.errors import Denied
from omen.net.broker import Broker
from omen.net.inbox import Gap, Message
from omen.net.observe.health import readiness_of
from omen.net.observe.logs import LOGGER
from omen.net.reload import Reloaded, Reloader, SettingsFile, differences, reload_settings
from omen.net.security.config import Rule, Security
from omen.net.security.key_files import authority_in, make_cluster_keys, make_node
from omen.net.service import Service
from omen.net.settings import LIVE, Limits, NodeConfig

QUICK = replace(LIVE, gossip_period=100_000, ready_rounds=1)


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """The log as it was before, afterwards."""
    logger = logging.getLogger(LOGGER)
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before[0], before[1], before[2]


def config(**values: object) -> NodeConfig:
    return replace(NodeConfig(name="ann", topics=("tea", "jazz"), protocol=QUICK), **values)  # type: ignore[arg-type]


def test_differences_name_the_setting_and_its_section() -> None:
    other = config(http="127.0.0.1:9090", limits=Limits(connections=5), protocol=replace(QUICK, attempts=9))
    assert differences(config(), other) == ["http", "protocol.attempts", "limits.connections"]
    assert differences(config(), config()) == []


def test_topics_limits_log_level_and_seeds_are_taken_over_and_the_rest_needs_a_start(logger: logging.Logger) -> None:
    async def test() -> Reloaded:
        async with Broker(config()) as ann:
            await ann.subscribe("own")
            limits = Limits(inbox_messages=1, payload_bytes=5, connections=7)
            fresh = config(
                topics=("jazz", "chess"),
                limits=limits,
                join=("127.0.0.1:7",),
                log_level="debug",
                cluster="other",
                http="127.0.0.1:0",
            )
            reloaded = await reload_settings(ann, fresh)
            assert ann.topics == ["chess", "jazz", "own"]
            assert ann.admission.limits is limits and ann.driver is not None and ann.driver.peers.limits is limits
            assert (ann.config.cluster, ann.config.http, ann.config.join) == ("omen", "", ("127.0.0.1:7",))
            for payload in (b"1", b"2", b"3"):
                await ann.publish("jazz", payload)
            taken = [await anext(ann.messages()) for _ in range(2)]
            assert isinstance(taken[0], Message) and isinstance(taken[1], Gap) and taken[1].last == 3
            return reloaded

    reloaded = asyncio.run(test())
    assert set(reloaded.changed) == {
        "topics",
        "join",
        "log_level",
        "limits.inbox_messages",
        "limits.payload_bytes",
        "limits.connections",
    }
    assert reloaded.after_restart == ("cluster", "http")
    assert logger.level == logging.DEBUG


def test_rates_of_connected_peers_follow() -> None:
    async def test() -> None:
        async with Broker(config()) as ann, Broker(config(name="bob", join=(ann.address,))) as bob:
            assert ann.driver is not None
            await reload_settings(ann, config(limits=Limits(frames_per_s=20.0)))
            for _ in range(200):
                await bob.publish("tea", b"x")
            for _ in range(100):
                await asyncio.sleep(0.02)
                if ann.admission.counters.throttled_reads:
                    break
            assert ann.admission.counters.throttled_reads

    asyncio.run(test())


def test_topics_that_the_new_rules_forbid_change_nothing() -> None:
    async def test() -> None:
        async with Broker(config()) as ann:
            certified = Security(authorities=("ca.pem",), certificate="ann.pem", key="ann.key")
            rules = (Rule(topics=("tea",), subscribe=("ann",)), Rule(topics=("chess",)))
            with pytest.raises(Denied):
                await reload_settings(ann, config(access=rules, security=certified, topics=("tea", "chess")))
            assert ann.topics == ["jazz", "tea"] and ann.config == config()

    asyncio.run(test())


def test_a_file_that_cannot_be_read_leaves_everything_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "node.toml"
    path.write_text("topics = ['tea', 'jazz']\n")

    async def test() -> None:
        async with Broker(config()) as ann:
            reloader = Reloader(ann, SettingsFile(str(path)), Service({}))
            for text in ("topics = [", "limits = 3", "topix = ['tea']"):
                path.write_text(text)
                await reloader.reload()
            path.unlink()
            await reloader.reload()
            assert ann.config == config()

    with caplog.at_level(logging.INFO, LOGGER):
        asyncio.run(test())
    assert [record.getMessage() for record in caplog.records].count("reload_failed") == 4


def test_a_name_that_is_made_up_stays_and_the_level_of_the_command_line_too(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text("topics = ['tea']\nlog_level = 'error'\n")
    file = SettingsFile(str(path), "debug")
    first = file.read()
    again = file.read_again(first)
    assert (again.name, again.log_level) == (first.name, "debug") and differences(first, again) == []


def test_what_the_command_line_added_is_no_difference_between_two_readings(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text("name = 'ann'\ntopics = ['tea']\n")

    async def test() -> None:
        async with Broker(config(record=str(tmp_path / "recording"))) as ann:
            reloader = Reloader(ann, SettingsFile(str(path)), Service({}))
            path.write_text("name = 'ann'\ntopics = ['tea', 'chess']\n")
            await reloader.reload()
            assert ann.topics == ["chess", "jazz", "tea"] and ann.config.record

    asyncio.run(test())


def test_what_needs_a_start_is_told_against_what_runs_and_not_against_the_last_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "node.toml"
    path.write_text("name = 'ann'\ncluster = 'one'\n")
    found: list[tuple[str, ...]] = []

    async def test() -> None:
        async with Broker(config(cluster="one")) as ann:
            reloader = Reloader(ann, SettingsFile(str(path)), Service({}))
            for cluster in ("one", "two", "two", "one"):
                path.write_text(f"name = 'ann'\ncluster = '{cluster}'\n")
                await reloader.reload()
                warnings = readiness_of(ann)["warnings"]
                found.append(ann.health.after_restart if "settings_need_restart" in warnings else ())
            assert ann.config.cluster == "one"

    with caplog.at_level(logging.INFO, LOGGER):
        asyncio.run(test())
    assert found == [(), ("cluster",), ("cluster",), ()]
    told = [record.getMessage() for record in caplog.records]
    assert (told.count("settings_need_restart"), told.count("restart_not_needed")) == (2, 1)


BAD_KEYS = {
    "missing": "No such file or directory",
    "garbage": "PEM",
    "expired": "certificate has expired",
    "another": "it is for 'bob', and this node is 'ann'",
}


@pytest.mark.parametrize("what", BAD_KEYS)
def test_keys_that_are_of_no_use_are_told_as_a_failed_renewal_and_change_nothing(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_cluster_keys(tmp_path, "omen", ["ann", "bob"], 30)
    (tmp_path / "garbage.pem").write_text("garbage")
    make_node(tmp_path / "late", authority_in(tmp_path), "omen", "ann", 0)
    shown = {"expired": "late/ann", "another": "bob"}.get(what, "ann")
    certificate = {"missing": "none.pem", "garbage": "garbage.pem"}.get(what, f"{shown}.pem")
    path = tmp_path / "node.toml"

    def write(topics: str, certificate: str, key: str) -> None:
        security = f"authorities = ['ca.pem']\ncertificate = '{certificate}'\nkey = '{key}'\n"
        path.write_text(f"name = 'ann'\ntopics = {topics}\n[security]\n{security}")

    async def test() -> None:
        write("['tea']", "ann.pem", "ann.key")
        file = SettingsFile(str(path))
        async with Broker(file.read()) as ann:
            reloader, keys = Reloader(ann, file, Service({})), ann.admission.credentials.contexts
            write("['tea', 'jazz']", certificate, f"{shown}.key")
            await reloader.reload()
            assert ann.admission.credentials.contexts is keys and ann.topics == ["tea"]
            assert "keys_not_renewed" in readiness_of(ann)["warnings"]
            write("['tea', 'jazz']", "ann.pem", "ann.key")
            await reloader.reload()
            assert ann.topics == ["jazz", "tea"] and "keys_not_renewed" not in readiness_of(ann)["warnings"]

    with caplog.at_level(logging.INFO, LOGGER):
        asyncio.run(test())
    told = [(record.getMessage(), record.__dict__["fields"].get("cause", "")) for record in caplog.records]
    assert [event for event, _ in told if "reload" in event] == ["reload_failed", "settings_reloaded"]
    assert all(BAD_KEYS[what] in cause for event, cause in told if event in ("reload_failed", "key_renewal_failed"))
    assert "key_renewal_failed" in [event for event, _ in told]
