"""What attackers are made of: connections from addresses of their own, with or without the keys of a member."""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from omen.net.names import split_address
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials
from omen.net.security.handshake import Handshake
from omen.net.security.hello import REVISION, Hello, Refused
from omen.protocol.membership.ring import place_of
from omen.protocol.messages import wire
from omen.protocol.messages.overlay import Descriptor, Digest, LinkOk, LinkOpen, LinkSeen, Ref

from .besieged import Siege, security_of

PATIENCE_S = 60.0
TRIES = 6
ADDRESSES = tuple(f"127.0.{third}.{last}" for third in (6, 7, 8) for last in range(1, 250))
_numbers = itertools.count(1)
_addresses = itertools.count()


def hello_of(name: str, **changes: Any) -> Hello:
    values: dict[str, Any] = {
        "cluster": "omen",
        "node": place_of(name),
        "name": name,
        "incarnation": 300_000_000 + next(_numbers),
        "address": "127.0.0.66:1",
        "session": next(_numbers),
        "revision": REVISION,
    }
    return Hello(**(values | changes))


class Attacker:
    """One connection to a node. `sent` and `heard`: all bytes of it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heard = b""
        self.sent = b""
        self.incarnation = 0

    @classmethod
    async def dial(cls, address: str, local: str, context: ssl.SSLContext | None = None) -> Attacker:
        host, port = split_address(address)
        name = "" if context is not None else None
        streams = asyncio.open_connection(host, port, local_addr=(local, 0), ssl=context, server_hostname=name)
        return cls(*await asyncio.wait_for(streams, PATIENCE_S))

    def send(self, data: bytes) -> None:
        self.sent += data
        self.writer.write(data)

    def send_frame(self, body: bytes) -> None:
        self.send(len(body).to_bytes(4, "big") + body)

    def say(self, message: Any) -> None:
        self.send_frame(wire.encode(message))

    async def read_to_end(self) -> bytes:
        """Until the node closes."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while piece := await self.reader.read(1 << 16):
                    self.heard += piece
        except (ConnectionError, ssl.SSLError):
            pass
        return self.heard

    async def greet(self, hello: Hello, secrets: tuple[bytes, ...] = ()) -> Hello | None:
        """The handshake of a member; None: refused."""
        self.incarnation = hello.incarnation
        shake = Handshake(hello, dialled=True, secrets=secrets)
        self.send(shake.opening)
        buffer = bytearray()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while piece := await self.reader.read(1 << 16):
                    self.heard += piece
                    buffer += piece
                    answer, peer = shake.take(buffer)
                    self.send(answer)
                    if peer is not None:
                        return peer
        except (ConnectionError, Refused):
            pass
        return None

    async def read_until(self, kind: type) -> None:
        """Until a message of a kind has come."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                length = int.from_bytes(await self.reader.readexactly(4), "big")
                if length and type(wire.decode(await self.reader.readexactly(length))) is kind:
                    return

    async def become_neighbour(self, name: str, topic: int) -> Ref:
        """A link for a topic, as the protocol makes it."""
        me = Ref(place_of(name), self.incarnation, "127.0.0.66:1")
        self.say(LinkOpen(Descriptor(Digest(me, 1, 1), (topic,), ()), ()))
        await self.read_until(LinkOk)
        self.say(LinkSeen())
        return me

    def stop_reading(self) -> None:
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.writer.transport.abort()


def keys_of(siege: Siege, name: str) -> Credentials:
    """What a member of the besieged cluster has."""
    return Credentials(security_of(siege.folder, siege.mode, name))


def context_of(credentials: Credentials) -> ssl.SSLContext | None:
    return credentials.contexts.client if credentials.contexts is not None else None


async def be_member(siege: Siege, name: str, to: str = "ann", holds: str = "eve-*", local: str = "") -> Attacker:
    """A connection of one who has the keys, and may do as it likes."""
    credentials = keys_of(siege, holds)
    for _ in range(TRIES):  # on a busy machine an attacker may itself be too slow for a hello
        attacker = await Attacker.dial(siege.address_of[to], local or address(), context_of(credentials))
        if await attacker.greet(hello_of(name), credentials.secrets) is not None:
            return attacker
        attacker.close()
    raise TimeoutError(name)


def address() -> str:
    """An address that was not used yet, or not lately: one that broke the protocol is banned for a while."""
    return ADDRESSES[next(_addresses) % len(ADDRESSES)]


def other_keys(folder: Path) -> Security:
    """Certificates of an authority that the cluster does not know."""
    from omen.net.security.key_files import make_cluster_keys, security_from

    make_cluster_keys(folder, "omen", ["eve-*"])
    return security_from(folder, "eve-*")


async def many(count: int, one: Callable[[int, random.Random], Awaitable[None]], at_once: int = 20) -> None:
    """The same attack again and again, some at a time."""
    room = asyncio.Semaphore(at_once)

    async def guarded(number: int) -> None:
        async with room:
            with suppress(ConnectionError, ssl.SSLError, TimeoutError):
                await one(number, random.Random(number))

    await asyncio.gather(*(guarded(number) for number in range(count)))
