"""Asking nodes how they are, over their pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from omen.net.event_loop import run
from omen.net.names import split_address

LARGEST = 16 << 20  # of an answer


async def fetch(address: str, path: str, timeout_s: float = 5.0) -> tuple[int, str]:
    """Status and text of one page. Raises OSError (also for an answer without end) or TimeoutError."""
    host, port = split_address(address)
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            data = bytearray()
            while part := await reader.read(1 << 16):
                data += part
                if len(data) > LARGEST:
                    raise ConnectionError(f"{address}: an answer of more than {LARGEST} bytes")
        finally:
            writer.close()
    head, _, body = data.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[1].isdigit():
        raise ConnectionError(f"{address}: what answers there is not a node")
    return int(words[1]), body.decode()


async def _fetch_json(address: str, path: str, timeout_s: float) -> dict[str, Any] | None:
    try:
        _, text = await fetch(address, path, timeout_s)
        values = json.loads(text)
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


async def ask_many(addresses: Iterable[str], path: str, timeout_s: float = 5.0) -> list[dict[str, Any] | None]:
    """The same page of many nodes at once; None where no node answers."""
    return await asyncio.gather(*(_fetch_json(address, path, timeout_s) for address in addresses))


def ask(addresses: Iterable[str], path: str, timeout_s: float = 5.0) -> list[dict[str, Any] | None]:
    """The same, outside an event loop."""
    return run(ask_many(list(addresses), path, timeout_s))
