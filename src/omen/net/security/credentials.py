"""A node's keys as they are in force now: read from files, read again when they change, without a stop.

Python's own `ssl` is all that a running node needs; `keys` makes the files.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from omen.errors import InvalidInput
from omen.net.security.alerts import SpeakingContext, refused_by_alert
from omen.net.security.config import Security
from omen.net.security.handshake import certified_names
from omen.net.security.hello import Reason, Refused

SHORTEST_SECRET = 16
HANDSHAKE_TURNS = 10

Stamp = tuple[tuple[str, int, int, int], ...]


class Contexts(msgspec.Struct, frozen=True):
    """For connections that come in, and for those that go out."""

    server: ssl.SSLContext
    client: ssl.SSLContext


Check = Callable[[Contexts, str], None]
"""Raises InvalidInput where a certificate, in this file, is of no use."""


class Credentials:
    """`contexts`: None without certificates. `version` grows whenever something else is in force."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self.contexts: Contexts | None = None
        self.secrets: tuple[bytes, ...] = ()
        self.version = 0
        self._stamp: Stamp = ()
        self._digest = b""
        self.renew(security)

    def renew(self, security: Security, check: Check | None = None) -> bool:
        """Read everything again; whether anything is different. Raises InvalidInput, and then all stays as it was.

        `check`: what else may be wrong with certificates.
        """
        stamp = _stamp(security)
        if security == self.security:
            self._stamp = stamp  # what is of no use now is looked at again when it has changed, and not before
        digest = _digest(security)
        if self.version and digest == self._digest:
            self.security, self._stamp = security, stamp
            return False
        contexts = _read_contexts(security) if security.has_certificates else None
        if contexts is not None and check is not None:
            check(contexts, security.certificate)
        secrets = tuple(read_secret(path) for path in security.secrets)
        for path in (security.key, *security.secrets):
            if path:
                check_private(path)
        self.security, self.contexts, self.secrets = security, contexts, secrets
        self._stamp, self._digest = stamp, digest
        self.version += 1
        return True

    def has_changed(self) -> bool:
        """Whether a file is not what it was when it was last looked at."""
        stamp = _stamp(self.security)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        return True


def check_private(path: str) -> None:
    """Raises InvalidInput where others than its owner can read a key; a group may where the owner is another user."""
    try:
        state = Path(path).stat()
    except OSError as error:
        raise InvalidInput(f"security: {path}: {error.strerror}") from error
    forbidden = 0o077 if state.st_uid == os.getuid() else 0o007
    if state.st_mode & forbidden:
        raise InvalidInput(f"security: {path}: mode {state.st_mode & 0o777:03o} lets others read it: chmod 600 {path}")


def read_secret(path: str, setting: str = "security.secrets") -> bytes:
    """The secret in a file that a setting names, blanks around it left out."""
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as error:
        raise InvalidInput(f"{setting}: {path}: {error.strerror}") from error
    if len(secret) < SHORTEST_SECRET:
        raise InvalidInput(
            f"{setting}: {path}: {len(secret)} bytes can be guessed, at least {SHORTEST_SECRET} are needed"
            " (`omen keys secret` makes a good one)"
        )
    return secret


def _read_contexts(security: Security) -> Contexts:
    server, client = SpeakingContext(ssl.PROTOCOL_TLS_SERVER), SpeakingContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # a node is known by the name in its certificate, not by where it is
    server.num_tickets = 0  # a connection taken up again would be judged by former authorities
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        for path in security.authorities:
            try:
                context.load_verify_locations(path)
            except (OSError, ssl.SSLError) as error:
                raise InvalidInput(f"security.authorities: {path}: {_reason(error)}") from error
        for path in security.revoked:
            try:
                context.load_verify_locations(path)
            except (OSError, ssl.SSLError) as error:
                raise InvalidInput(f"security.revoked: {path}: {_reason(error)}") from error
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        try:
            context.load_cert_chain(security.certificate, security.key)
        except (OSError, ssl.SSLError) as error:
            files = f"{security.certificate}, {security.key}"
            raise InvalidInput(f"security.certificate, security.key: {files}: {_reason(error)}") from error
    return Contexts(server, client)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return {
            "KEY_VALUES_MISMATCH": "the key is not that of the certificate",
            "NO_CERTIFICATE_OR_CRL_FOUND": "no certificate in PEM form is in it",
            "NO_START_LINE": "nothing in PEM form is in it",
            "PEM_LIB": "not in PEM form",
        }.get(error.reason or "", str(error.reason or error))
    return str(error.strerror or error)


def _stamp(security: Security) -> Stamp:
    found = []
    for path in security.files:
        try:
            state = Path(path).stat()
            found.append((path, state.st_mtime_ns, state.st_size, state.st_ino))
        except OSError:
            found.append((path, 0, 0, 0))
    return tuple(found)


def _digest(security: Security) -> bytes:
    """Over what the files hold, and which of them counts for what."""
    whole = hashlib.sha256(repr(_told(security)).encode())
    for path in security.files:
        try:
            whole.update(hashlib.sha256(Path(path).read_bytes()).digest())
        except OSError as error:
            raise InvalidInput(f"security: {path}: {error.strerror}") from error
    return whole.digest()


def _told(security: Security) -> tuple[object, ...]:
    """What the settings themselves say."""
    listed = (security.authorities, security.revoked, security.secrets, security.refuse)
    return (*listed, security.sign, security.verify)


def explain(error: BaseException) -> Refused:
    """Why an encrypted connection did not come about.

    The error's traces are let go: they form circles with buffers of a quarter of a megabyte, which would stay until the
    next full collection, thousands of attempts later.
    """
    part: BaseException | None = error
    while part is not None and part.__traceback__ is not None:
        part.__traceback__ = None
        part = part.__context__
    if isinstance(error, ssl.SSLCertVerificationError):
        return Refused(f"the certificate of the other end: {error.verify_message}", Reason.CERTIFICATE)
    if isinstance(error, ssl.SSLError):
        said = refused_by_alert(error)
        if said is not None:
            return said
        if "CERTIFICATE" in (error.reason or ""):
            words = str(error.reason).lower().replace("_", " ")
            return Refused(f"no agreement on certificates: {words}", Reason.CERTIFICATE)
        return Refused(
            "what came in does not begin an encrypted connection: no node, or one without certificates",
            Reason.NOT_A_NODE,
        )
    if isinstance(error, (TimeoutError, ConnectionAbortedError)):
        return Refused("no certificate in time", Reason.HELLO_TIMEOUT)
    return Refused("closed before an encrypted connection was made", Reason.HELLO_TIMEOUT)


def check_own(credentials: Credentials, cluster: str, name: str) -> None:
    """Raises InvalidInput where this node's own certificate would be refused by a node like itself."""
    if credentials.contexts is not None:
        check_certificate(credentials.contexts, credentials.security.certificate, cluster, name)


def check_certificate(contexts: Contexts, path: str, cluster: str, name: str) -> None:
    """The node shakes hands with itself, in memory: that finds what its peers would, by the same rules."""
    try:
        shown = _shake_hands(contexts)
    except ssl.SSLError as error:
        words = getattr(error, "verify_message", "") or error.reason or str(error)
        hint = "; is it signed by one of security.authorities?" if "issuer" in words or "self-signed" in words else ""
        raise InvalidInput(f"security.certificate: {path}: {words}{hint}") from None
    names = certified_names(shown, cluster)
    if not any(fnmatchcase(name, pattern) for pattern in names):
        for_whom = ", ".join(map(repr, names)) or f"no node of cluster {cluster!r}"
        raise InvalidInput(f"security.certificate: {path}: it is for {for_whom}, and this node is {name!r}")


def _shake_hands(contexts: Contexts) -> dict[str, Any]:
    """What the certificate shows; both ends believe it."""
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts.server.wrap_bio(inward, outward, server_side=True)
    client = contexts.client.wrap_bio(outward, inward)
    waiting = [client, server]
    for _ in range(HANDSHAKE_TURNS):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return server.getpeercert() or {}
    raise ssl.SSLError("the handshake with itself does not end")


def expires_at(certificate: dict[str, Any]) -> float:
    """When a certificate is good no longer, in seconds since 1970."""
    return float(ssl.cert_time_to_seconds(certificate["notAfter"]))
