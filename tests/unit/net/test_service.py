"""A node as a service of systemd: what is said to its socket."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from omen.net.service import Service


def heard(channel: socket.socket) -> list[str]:
    said = []
    channel.setblocking(False)
    try:
        while True:
            said.append(channel.recv(4096).decode())
    except BlockingIOError:
        return said


def test_ready_the_watchdog_and_stopping_are_said(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000", "WATCHDOG_PID": str(os.getpid())}

    async def test() -> list[str]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.bind(address)
            service = Service(environment)
            service.ready("ann has joined")
            await asyncio.sleep(0.1)
            service.reloading()
            service.reloaded("again")
            service.stopping()
            service.close()
            return heard(channel)

    said = asyncio.run(test())
    assert said[0] == "READY=1\nSTATUS=ann has joined"
    assert 2 <= said.count("WATCHDOG=1") <= 6
    assert said[-3].startswith("RELOADING=1\nMONOTONIC_USEC=") and said[-2].startswith("READY=1")
    assert said[-1].startswith("STOPPING=1")


def test_a_reload_before_the_join_or_while_leaving_does_not_say_that_the_node_is_ready(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")

    async def test() -> list[str]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.bind(address)
            service = Service({"NOTIFY_SOCKET": address})
            service.reloading()
            service.reloaded("settings were read again")
            service.ready("ann has joined")
            service.stopping()
            service.reloading()
            service.reloaded("settings were read again")
            service.close()
            return heard(channel)

    before, ready, stopping, after = asyncio.run(test())
    assert before == after == "STATUS=settings were read again"
    assert ready.startswith("READY=1") and stopping.startswith("STOPPING=1")


def test_without_a_manager_or_when_it_is_gone_nothing_is_said_and_nothing_fails(tmp_path: Path) -> None:
    async def test() -> None:
        for environment in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "no number"}):
            service = Service(environment)
            service.ready("ann has joined")
            service.stopping()
            service.close()

    asyncio.run(test())


def test_the_watchdog_of_another_process_is_not_fed() -> None:
    async def test() -> set[asyncio.Task[object]]:
        service = Service({"NOTIFY_SOCKET": "@nowhere", "WATCHDOG_USEC": "60000", "WATCHDOG_PID": "1"})
        service.ready("ann has joined")
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    assert asyncio.run(test()) == set()
