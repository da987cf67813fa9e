"""Whether Spark answers at the address of a cluster: Spark itself tries for minutes, and says nothing meanwhile.

Something else may listen there: a proxy, or a server that hangs. So each is asked one thing that it answers in its own
protocol, and that leaves nothing behind: a master for a stream that does not exist (Spark's transport: a frame with its
length, the kind of message, a text), a Connect server, unless it is behind TLS, for its HTTP/2 settings.
"""

from __future__ import annotations

import re
import socket
import struct

from omen.errors import InvalidInput

PATIENCE_S = 5.0
"""For each address and step; a cluster that takes longer to accept a connection is not going to run a job."""

_CONNECT_PORT = 15002
_MASTER_PORT = 7077
_STREAM_REQUEST = 6
_STREAM = b"omen"
_MASTER_QUESTION = struct.pack(">QBI", 13 + len(_STREAM), _STREAM_REQUEST, len(_STREAM)) + _STREAM
_NO_SETTINGS = struct.pack(">IBI", 4, 0, 0)  # length (3 bytes) and kind, flags, stream
_CONNECT_QUESTION = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _NO_SETTINGS
_PLAIN = re.compile(r"local|local\[.+\]|local-cluster\[.+\]|yarn")
_TLS = re.compile(r";(?:use_ssl=true|token=)", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:/;]+))(?::(?P<port>\d+))?")


def require_reachable(url: str, patience_s: float = PATIENCE_S) -> None:
    """Refuse, in one line, `spark://HOST:PORT[,HOST:PORT]` and `sc://HOST[:PORT]/...` at which no Spark answers.

    Other addresses (local, yarn, k8s://) are Spark's own business, but for words that are none.
    """
    if url and "://" not in url and _PLAIN.fullmatch(url) is None:
        raise InvalidInput(
            f"no Spark is reached at {url!r}: give local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT,"
            " or sc://HOST:PORT as --remote"
        )
    for scheme, port, question in (
        ("spark://", _MASTER_PORT, _MASTER_QUESTION),
        ("sc://", _CONNECT_PORT, b"" if _TLS.search(url) else _CONNECT_QUESTION),
    ):
        if url.startswith(scheme):
            addresses = url.removeprefix(scheme).split("/")[0].split(",")
            failures = [_failure(address, port, question, patience_s) for address in addresses]
            if all(failures):
                raise InvalidInput(f"Spark cannot be reached at {url}: {'; '.join(filter(None, failures))}")


def _failure(address: str, default_port: int, question: bytes, patience_s: float) -> str | None:
    """Why no Spark answers there; None where one does."""
    found = _ADDRESS.match(address)
    if found is None:
        return f"{address!r} is no address"
    host, port = found["six"] or found["host"], int(found["port"] or default_port)
    try:
        with socket.create_connection((host, port), timeout=patience_s) as connection:
            if not question or _is_answered(connection, question):
                return None
        return f"{host} port {port} closes the connection: no Spark listens there"
    except TimeoutError:
        return f"{host} port {port} does not answer within {patience_s:g} s"
    except (OSError, OverflowError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{host} port {port}: {reason}"


def _is_answered(connection: socket.socket, question: bytes) -> bool:
    connection.sendall(question)
    return bool(connection.recv(4096))
