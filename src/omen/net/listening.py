"""Sockets that take connections."""

from __future__ import annotations

import socket

from omen.errors import InvalidInput
from omen.net.names import split_address


def listen_on(address: str) -> socket.socket:
    """A socket that takes connections at an address from now on."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    plug = socket.socket(family, socket.SOCK_STREAM)
    try:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        plug.bind((host, port))
        plug.listen(256)
    except (OSError, OverflowError) as error:
        plug.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot listen at {address}: {reason}") from error
    plug.setblocking(False)
    return plug
