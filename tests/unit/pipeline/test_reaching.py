from __future__ import annotations

import socket

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


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        require_reachable(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")
        require_reachable(f"sc://127.0.0.1:{port}/;token=abc")


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


@pytest.mark.parametrize("url", ["", "local[2]", "yarn", "k8s://https://127.0.0.1:1"])
def test_other_addresses_are_left_to_spark(url: str) -> None:
    require_reachable(url)
