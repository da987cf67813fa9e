"""What an end of an encrypted connection says when it refuses the other: an alert. It is sent, and put into words.

Event loops drop the alert of a handshake that fails, together with the connection. So it is taken from the handshake
here, and sent where the connection was made. Under TLS 1.3 it comes to an end that takes itself for connected.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

from omen.net.security.hello import Reason, Refused, write_refusal

ALERTS = {
    "UNKNOWN_CA": "it does not believe the authority of this node's certificate",
    "CERTIFICATE_EXPIRED": "this node's certificate has expired",
    "CERTIFICATE_REVOKED": "this node's certificate was revoked",
    "CERTIFICATE_REQUIRED": "it asks for a certificate, and this node has shown none",
    "BAD_CERTIFICATE": "it finds this node's certificate broken",
    "UNSUPPORTED_CERTIFICATE": "this node's certificate is not for this use",
    "CERTIFICATE_UNKNOWN": "it does not accept this node's certificate",
    "ACCESS_DENIED": "this node's address is banned there for a while",
    "INTERNAL_ERROR": "it takes no more connections now",
    "PROTOCOL_VERSION": "the two ends speak different versions of TLS",
}
"""What the other end says, in words."""

CERTIFICATES_NEEDED = "this cluster uses certificates, and the other end has shown none"
BANNED, CROWDED = (bytes((21, 3, 3, 0, 2, 2, code)) for code in (49, 80))  # records of TLS: access denied, no room
LINGER_S = 0.25  # a connection closed at once may be reset before the other end has read why


class _Speaking(ssl.SSLObject):
    """Leaves its alert with the error by which its handshake fails."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            error.__dict__["alert"] = self.outgoing.read()
            raise


class SpeakingContext(ssl.SSLContext):
    """A context whose connections leave their alert with the error: see `alert_in`."""

    sslobject_class = _Speaking

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _Speaking)
        made.outgoing = outgoing
        return made


def alert_in(error: BaseException) -> bytes:
    """What to send to the other end before the connection is closed; empty where there is nothing to say."""
    alert = error.__dict__.get("alert", b"")
    return alert if isinstance(alert, bytes) else b""


def refused_by_alert(error: ssl.SSLError) -> Refused | None:
    """What the other end has said, where the error is an alert of it."""
    reason = error.reason or ""
    if "ALERT" not in reason:
        return None
    for alert, words in ALERTS.items():
        if alert in reason:
            passes = {"ACCESS_DENIED": Reason.BANNED, "INTERNAL_ERROR": Reason.CONNECTION_LIMIT}
            why = passes.get(alert, Reason.CERTIFICATE)
            return Refused(f"refused by the other end: {words}", why, by_peer=True, said=why)
    words = reason.lower().replace("_", " ")
    return Refused(f"no agreement on certificates: {words}", Reason.CERTIFICATE, by_peer=True, said=Reason.CERTIFICATE)


def turning_away(refusal: Refused, encrypted: bool) -> bytes:
    """What to say to one whose connection goes no further, before anything is read from it."""
    if not encrypted:
        return write_refusal(str(refusal), refusal.reason)
    return BANNED if refusal.reason is Reason.BANNED else CROWDED


def say_last(tcp: socket.socket, words: bytes) -> None:
    """Send this, where there is room for it. Keep the socket for `LINGER_S` after it."""
    if words:
        with suppress(OSError):
            tcp.send(words)
            tcp.shutdown(socket.SHUT_WR)
