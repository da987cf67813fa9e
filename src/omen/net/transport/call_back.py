"""Whether a node can be reached where it says: behind a forwarded port or in a container it cannot tell by itself."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from omen.net.names import split_address
from omen.net.security.credentials import Contexts, explain
from omen.net.security.hello import LARGEST, PREFACE, Hello, Reason, Refused, read_hello
from omen.net.security.rate_limits import REMEMBERED

if TYPE_CHECKING:
    from omen.net.security.admission import AdmissionControl
    from omen.net.transport.connection import Connection

PATIENCE_S = 3.0


class CallBacks:
    """Each process that joins is called back once, where there is doubt; one that cannot be reached is refused.

    It costs a dial to where a stranger says, so the address that the connection came from pays for it, and only so many
    are made at once. What is not paid for is not made: the check helps those who set a wrong address, and keeps no
    node out.
    """

    def __init__(self, admission: AdmissionControl) -> None:
        self._admission = admission
        self._called: OrderedDict[int, None] = OrderedDict()
        self._calls: set[asyncio.Task[None]] = set()

    def consider(self, connection: Connection, hello: Hello, own_address: str) -> None:
        """A node has come in by this connection."""
        if not is_doubtful(hello, connection.remote) or hello.session in self._called or not self._may_dial(connection):
            return
        self._called[hello.session] = None
        if len(self._called) > REMEMBERED:
            self._called.popitem(last=False)
        task = asyncio.get_running_loop().create_task(self._call(connection, hello, own_address))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _may_dial(self, connection: Connection) -> bool:
        """By address, not by node: a process that may go by any name would have a budget for each."""
        admission = self._admission
        if len(self._calls) >= admission.limits.dials_at_once:
            return False
        return admission.dials.pay(connection.remote, asyncio.get_running_loop().time())

    async def _call(self, connection: Connection, hello: Hello, own_address: str) -> None:
        cause = await call_back(hello, self._admission.credentials.contexts)
        if cause:
            self._called.pop(hello.session, None)
            where = f"cannot be reached at {hello.address}, the address it gives, from {own_address}"
            connection.refuse(Refused(f"{hello.name!r} {where}: {cause}", Reason.UNREACHABLE))

    def close(self) -> None:
        for call in self._calls:
            call.cancel()


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
