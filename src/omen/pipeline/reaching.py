"""Whether anything listens at the address of a cluster: Spark itself tries for minutes, and says nothing meanwhile."""

from __future__ import annotations

import re
import socket

from omen.errors import InvalidInput

PATIENCE_S = 5.0
"""For each address; a cluster that takes longer to accept a connection is not going to run a job."""

_CONNECT_PORT = 15002
_MASTER_PORT = 7077
_ADDRESS = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:/;]+))(?::(?P<port>\d+))?")


def require_reachable(url: str, patience_s: float = PATIENCE_S) -> None:
    """Refuse, in one line, `spark://HOST:PORT[,HOST:PORT]` and `sc://HOST[:PORT]/...` at which nothing listens.

    Other addresses (local, yarn, k8s://) are Spark's own business.
    """
    for scheme, port in (("spark://", _MASTER_PORT), ("sc://", _CONNECT_PORT)):
        if url.startswith(scheme):
            addresses = url.removeprefix(scheme).split("/")[0].split(",")
            failures = [_failure(address, port, patience_s) for address in addresses]
            if all(failures):
                raise InvalidInput(f"Spark cannot be reached at {url}: {'; '.join(filter(None, failures))}")


def _failure(address: str, default_port: int, patience_s: float) -> str | None:
    """Why nothing answers there; None where something does."""
    found = _ADDRESS.match(address)
    if found is None:
        return f"{address!r} is no address"
    host, port = found["six"] or found["host"], int(found["port"] or default_port)
    try:
        socket.create_connection((host, port), timeout=patience_s).close()
    except TimeoutError:
        return f"{host} port {port} does not answer within {patience_s:g} s"
    except (OSError, OverflowError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{host} port {port}: {reason}"
    return None
