"""A full disk under the log, recording and state of a node, a pipe that nobody reads: none touches the protocol."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from omen.net.broker import Broker
from omen.net.observe.logs import LOGGER, write_log

from .brokers import PATIENCE_S, config, go, take, until
from .cold_starts import free_ports

FULL = "/dev/full"  # every write to it fails as on a full disk


@pytest.fixture
def log_to_full_disk() -> Iterator[None]:
    logger = logging.getLogger(LOGGER)
    former = (list(logger.handlers), logger.propagate, logger.level)
    stream = Path(FULL).open("w")  # noqa: SIM115 -- closing it fails too
    write_log("text", stream)
    yield
    logger.handlers[:], logger.propagate = former[0], former[1]
    logger.setLevel(former[2])
    with suppress(OSError):
        stream.close()


@pytest.mark.usefixtures("log_to_full_disk")
@pytest.mark.skipif(not Path(FULL).exists(), reason=f"there is no {FULL} here")
def test_a_node_on_a_full_disk_joins_delivers_keeps_its_timers_and_leaves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def test() -> None:
        state = str(tmp_path / "file" / "state")
        async with Broker(config("ann", "tea")) as ann:
            full = config("bob", "tea", join=(ann.address,), record=FULL, state=state)
            async with Broker(full) as bob:
                driver = bob.driver
                assert driver is not None
                for number in range(2000):
                    await ann.publish("tea", str(number).encode())
                assert [int(message.payload) for message in await take(bob, 2000)] == list(range(2000))
                await until(lambda: driver.counters.recording_errors)
                sent = driver.sender.messages
                heard = sent["Heartbeat"] + sent["DigestOffer"]
                await until(lambda: sent["Heartbeat"] + sent["DigestOffer"] > heard + 3)
                assert (driver.counters.recording_errors, driver.counters.core_errors) == (1, 0)
                await bob.publish("tea", b"still here")
                assert (await take(ann, 2001))[-1].payload == b"still here"
            await until(lambda: not ann.status().links)

    go(test())


def test_a_recording_that_cannot_begin_does_not_stop_a_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with Broker(config("ann", "tea", record=str(tmp_path / "none" / "ann"))) as ann:
            assert ann.is_joined
            assert ann.driver is not None
            assert ann.driver.counters.recording_errors == 1
            await asyncio.sleep(0)

    with caplog.at_level("WARNING"):
        go(test())
    (line,) = [record for record in caplog.records if record.msg == "recording_ended"]
    assert line.exc_info is None, "a file that cannot be written is no bug"


@pytest.mark.skipif(not Path(FULL).exists(), reason=f"there is no {FULL} here")
def test_a_node_whose_addresses_cannot_be_printed_goes_on(tmp_path: Path) -> None:
    settings = tmp_path / "node.toml"
    settings.write_text('name = "ann"\nlisten = "127.0.0.1:0"\n')
    command = [sys.executable, "-m", "omen.cli", "node", "--config", str(settings)]
    with Path(FULL).open("wb") as full, (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(command, stdout=full, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while "addresses_not_printed" not in (tmp_path / "log").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        assert node.poll() is None, (tmp_path / "log").read_text()
        node.send_signal(signal.SIGTERM)
        assert node.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()
    finally:
        node.kill()
        node.wait()


def full_pipe() -> tuple[int, int]:
    inward, outward = os.pipe()
    fcntl.fcntl(outward, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(outward, False)
    with suppress(BlockingIOError):
        while True:
            os.write(outward, b"." * 64)
    os.set_blocking(outward, True)
    return inward, outward


def test_a_subscriber_whose_output_nobody_reads_stays_a_member_that_a_signal_ends() -> None:
    """Its event loop stood still at the first message for which the pipe had no room."""
    inward, outward = full_pipe()

    async def test() -> None:
        async with Broker(config("ann", "tea")) as ann:
            command = [sys.executable, "-m", "omen.cli", "sub", "tea", "--join", ann.address, "--name", "sub"]
            node = subprocess.Popen(command, stdout=outward, stderr=subprocess.DEVNULL)
            try:
                await until(lambda: ann.has_neighbours("tea"))
                assert await ann.wait_held("tea", await ann.publish("tea", b"hot"), PATIENCE_S)
                await asyncio.sleep(0.5)
                node.send_signal(signal.SIGTERM)
                await until(lambda: node.poll() is not None)
                assert node.returncode == 0
            finally:
                node.kill()
                node.wait()

    try:
        go(test())
    finally:
        os.close(inward)
        os.close(outward)


def test_a_node_whose_output_nobody_reads_joins_answers_and_leaves(tmp_path: Path) -> None:
    """Its event loop stood still at the first line for which the pipe had no room."""
    inward, outward = full_pipe()
    (page,) = free_ports(1)
    settings = tmp_path / "node.toml"
    settings.write_text(f'name = "ann"\nhttp = "127.0.0.1:{page}"\n')
    command = [sys.executable, "-m", "omen.cli", "node", "--config", str(settings), "--log-level", "debug"]
    node = subprocess.Popen(command, stdout=outward, stderr=outward)
    try:
        deadline = time.monotonic() + PATIENCE_S
        status = ""
        while status != "ok":
            assert time.monotonic() < deadline and node.poll() is None
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{page}/readyz", timeout=1) as answer:
                status = json.loads(answer.read())["status"]
            time.sleep(0.05)
        node.send_signal(signal.SIGTERM)
        assert node.wait(PATIENCE_S) == 0
    finally:
        node.kill()
        node.wait()
        os.close(inward)
        os.close(outward)
