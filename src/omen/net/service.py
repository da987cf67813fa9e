"""A node as a service of systemd (`Type=notify`): it says when it is ready, that its event loop turns, that it stops.

The protocol is a few lines to a datagram socket (sd_notify); without `NOTIFY_SOCKET` nothing is said.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Service:
    """What the service manager is told. No error in here stops a node."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watchdog_s = 0.0
        if environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
            with suppress(ValueError):
                self._watchdog_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6
        self._watching: asyncio.Task[None] | None = None
        self._is_ready = False

    def say(self, *lines: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.sendto("\n".join(lines).encode(), address)

    def ready(self, status: str) -> None:
        """The node is part of its cluster. From now on the watchdog is told that the event loop turns."""
        self._is_ready = True
        self.say("READY=1", f"STATUS={status}")
        if self._watchdog_s and self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while True:
            self.say("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / 3)

    def reloading(self) -> None:
        if self._is_ready:
            self.say("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self, status: str) -> None:
        """READY=1 ends a reload; of a node that has not joined yet, or that leaves, it would not be true."""
        self.say(*(("READY=1",) if self._is_ready else ()), f"STATUS={status}")

    def stopping(self) -> None:
        """The node leaves in good order: neighbours take over what it holds first. The watchdog goes on meanwhile."""
        self._is_ready = False
        self.say("STOPPING=1", "STATUS=leaving in good order")

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
