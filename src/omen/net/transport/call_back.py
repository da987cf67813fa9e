"""Whether a node can be reached where it says: behind a forwarded port or in a container it cannot tell by itself."""

from __future__ import annotations

import asyncio

from omen.net.names import split_address
from omen.net.security.credentials import Contexts, explain
from omen.net.security.hello import LARGEST, PREFACE, Hello, Refused, read_hello

PATIENCE_S = 3.0


def is_doubtful(hello: Hello, remote: str) -> bool:
    """Whether a node that joins has another address than the one its connection comes from, or was told which."""
    host, _ = split_address(hello.address)
    return hello.joining and (not hello.is_direct or host != remote)


async def call_back(hello: Hello, contexts: Contexts | None) -> str:
    """Dial the address that a node gives: why that node is not there; empty where it is."""
    try:
        host, port = split_address(hello.address)
        async with asyncio.timeout(PATIENCE_S):
            found = await _read_hello(host, port, contexts)
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except Refused as refusal:
        return str(refusal)
    except OSError as error:
        return str(explain(error) if contexts is not None and not isinstance(error, ConnectionError) else error)
    if found.session != hello.session:
        return f"another node, {found.name!r}, answers there"
    return ""


async def _read_hello(host: str, port: int, contexts: Contexts | None) -> Hello:
    context = contexts.client if contexts is not None else None
    name = "" if contexts is not None else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
    try:
        data = b""
        while (greeting := read_hello(data)) is None:
            more = await reader.read(PREFACE.size + LARGEST)
            if not more:
                raise ConnectionResetError("closed before a hello came")
            data += more
        return greeting.hello
    finally:
        writer.transport.abort()
