"""HTTP as a node's pages speak it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from omen.net.event_loop import run
from omen.net.observe.serving import LARGEST_BODY, STREAMS_AT_MOST, Reply, Request, Server, Stream, is_named_by_address

ended: list[str] = []


async def count() -> AsyncIterator[bytes]:
    try:
        for number in range(1_000_000):
            yield f"{number}\n".encode()
            await asyncio.sleep(0.01)
    finally:
        ended.append("count")


async def handle(request: Request) -> Reply | Stream:
    if request.path == "/count":
        return Stream("text/plain", count())
    told = f"{request.method} {request.path} {dict(request.query)} {request.headers.get('x-word')} {request.body!r}"
    return Reply(HTTPStatus.OK, "text/plain", told.encode(), (("X-More", "yes"),))


def serving(test: Any) -> None:
    async def limited() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        server = await Server(handle).start(listener)
        async with asyncio.timeout(30):
            await test(listener.getsockname()[1])
        server.close()

    run(limited())


async def say(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_request_is_read_whole_and_answered_once() -> None:
    async def test(port: int) -> None:
        text = b"POST /a/b?x=1&y=%41 HTTP/1.1\r\nHost: h\r\nX-Word: tea\r\nContent-Length: 3\r\n\r\nabc"
        head, _, body = (await say(port, text)).partition(b"\r\n\r\n")
        assert body == b"POST /a/b {'x': '1', 'y': 'A'} tea b'abc'"
        lines = head.decode().lower().split("\r\n")
        assert lines[0] == "http/1.1 200 ok"
        for wanted in (
            "x-more: yes",
            "connection: close",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ):
            assert wanted in lines
        assert f"content-length: {len(body)}" in lines

    serving(test)


def test_a_head_has_no_body_and_an_old_client_is_answered() -> None:
    async def test(port: int) -> None:
        assert (await say(port, b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")).endswith(b"\r\n\r\n")
        assert (await say(port, b"GET / HTTP/1.0\r\n\r\n")).endswith(b"GET / {} None b''")

    serving(test)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20_000, b"431"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n" + b"a" * (LARGEST_BODY + 1), b"413"),
    ],
)
def test_what_is_no_request_is_refused(text: bytes, status: bytes) -> None:
    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        assert (await reader.readline()).split(b" ")[1] == status
        writer.close()

    serving(test)


def test_a_stream_goes_on_until_its_reader_has_gone() -> None:
    async def test(port: int) -> None:
        ended.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /count HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"12\n")
        assert ended == []
        writer.close()
        while not ended:
            await asyncio.sleep(0.01)

    serving(test)


def test_a_process_that_stops_while_a_page_is_open_logs_no_error() -> None:
    errors: list[dict[str, Any]] = []

    async def test(port: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /count HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"1\n")

    serving(test)
    assert not errors


def test_there_are_only_so_many_streams_and_other_pages_are_answered_beside_them() -> None:
    async def test(port: int) -> None:
        writers = []
        for _ in range(STREAMS_AT_MOST):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /count HTTP/1.1\r\nHost: h\r\n\r\n")
            await reader.readuntil(b"0\n")
            writers.append(writer)
        assert b" 503 " in (await say(port, b"GET /count HTTP/1.1\r\nHost: h\r\n\r\n")).splitlines()[0]
        assert b" 200 " in (await say(port, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")).splitlines()[0]
        for writer in writers:
            writer.close()

    serving(test)


def test_a_host_is_an_address_or_this_machine() -> None:
    here = ("localhost", "localhost:80", "127.0.0.1:9090", "127.0.0.1", "[::1]:80", "[::1]", "LOCALHOST:1")
    assert [host for host in here if not is_named_by_address(host)] == []
    assert [
        host
        for host in ("evil.example", "evil.example:9090", "", "127.0.0.1.evil.example")
        if is_named_by_address(host)
    ] == []
