"""Two sides on one loopback: a node that dials across goes through a proxy, which can be told to swallow everything.

A node of side `b` listens at 127.0.0.2 and one of side `a` at 127.0.0.1; a child that enters a side has its connections
to the other side's address led through the proxy of that side, by wrapping how sockets connect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

ADDRESSES = {"a": "127.0.0.1", "b": "127.0.0.2"}


class Proxies:
    """One process that passes bytes on, or (stopped) does not."""

    def __init__(self) -> None:
        self._plug = socket.create_server(("127.0.0.3", 0))
        self._port = self._plug.getsockname()[1]
        self._pid = os.fork()
        if self._pid == 0:
            try:
                asyncio.run(_serve(self._plug))
            finally:
                os._exit(0)

    def address_of(self, side: str) -> str:
        return ADDRESSES[side]

    def cut(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)

    def heal(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def enter(self, side: str) -> None:
        """From here on this process reaches the other side through the proxy alone."""
        far = next(address for other, address in ADDRESSES.items() if other != side)
        loop_class = asyncio.SelectorEventLoop
        direct = loop_class.create_connection
        port = self._port

        async def create_connection(loop: Any, factory: Any, host: Any = None, to: Any = None, **more: Any) -> Any:
            if host != far:
                return await direct(loop, factory, host, to, **more)
            plug = socket.create_connection(("127.0.0.3", port))
            plug.sendall(f"{host} {to}\n".encode())
            plug.setblocking(False)
            return await direct(loop, factory, sock=plug, **more)

        loop_class.create_connection = create_connection  # type: ignore[method-assign, assignment]

    def remove(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._plug.close()


async def _serve(plug: socket.socket) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            host, port = (await reader.readline()).decode().split()
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        writer.close()

    async with await asyncio.start_server(pass_on, sock=plug) as server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def laid_proxies() -> Iterator[Proxies]:
    proxies = Proxies()
    try:
        yield proxies
    finally:
        proxies.remove()
