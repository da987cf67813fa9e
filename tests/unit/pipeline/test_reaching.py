from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from omen.errors import InvalidInput
from omen.pipeline.reaching import require_reachable


def free_port() -> int:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return int(closed.getsockname()[1])


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_an_address_at_which_nothing_listens_is_refused_in_one_line(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}"
    with pytest.raises(InvalidInput, match=r"Spark cannot be reached at .*: 127\.0\.0\.1 port \d+: Connection refused"):
        require_reachable(url)


@contextmanager
def listener(answer: bytes | None) -> Iterator[int]:
    """At the port that is yielded each connection is answered so once it has asked; None: it is closed unread."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        ended = threading.Event()

        def serve() -> None:
            server.settimeout(0.05)
            while not ended.is_set():
                with suppress(TimeoutError):
                    connection, _ = server.accept()
                    with connection:
                        if answer is None:
                            continue
                        connection.recv(4096)
                        connection.sendall(answer)
                        connection.settimeout(5.0)
                        connection.recv(1)

        pool.submit(serve)
        try:
            yield int(server.getsockname()[1])
        finally:
            ended.set()


def test_one_of_several_masters_is_enough() -> None:
    with listener(b"answer") as port:
        require_reachable(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")
        require_reachable(f"sc://127.0.0.1:{port}/;user_id=me")


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_listener_that_is_silent_or_closes_is_no_spark(scheme: str) -> None:
    """Before: no word for 100 s and more, or after two minutes that a stopped SparkContext has no methods."""
    with listener(b"") as port, pytest.raises(InvalidInput, match=r"does not answer within 0\.2 s"):
        require_reachable(f"{scheme}://127.0.0.1:{port}", patience_s=0.2)
    with listener(None) as port, pytest.raises(InvalidInput, match=r"no Spark listens there|reset"):
        require_reachable(f"{scheme}://127.0.0.1:{port}")


def test_behind_tls_a_connect_server_is_asked_nothing() -> None:
    with listener(b"") as port:
        require_reachable(f"sc://127.0.0.1:{port}/;token=abc", patience_s=0.2)
        require_reachable(f"sc://127.0.0.1:{port}/;use_ssl=true;user_id=me", patience_s=0.2)


def test_a_listener_that_does_not_accept_is_told_by_its_patience() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        with pytest.raises(InvalidInput, match=r"does not answer within 0\.2 s"):
            require_reachable(f"spark://127.0.0.1:{port}", patience_s=0.2)
        for one in waiting:
            one.close()


@pytest.mark.parametrize("url", ["nonsense", "127.0.0.1:7077", "local2", "spark:/host"])
def test_a_word_that_is_no_address_is_refused_before_spark_starts(url: str) -> None:
    """Before: 16 s, then an exception of Java's."""
    with pytest.raises(InvalidInput, match=r"no Spark is reached at .*: give local\[N\], spark://HOST:PORT"):
        require_reachable(url)


@pytest.mark.parametrize("url", ["", "local", "local[2]", "local[*,3]", "yarn", "k8s://https://127.0.0.1:1"])
def test_other_addresses_are_left_to_spark(url: str) -> None:
    require_reachable(url)
