"""How two ends make sure of each other before any frame is interpreted.

Each end begins with a hello. Then each sends a proof, the one that dialled first: HMAC-SHA256 with the cluster's secret
over which end it is and both hellos as they went over the wire. Where there is a secret each hello holds a number drawn
for this connection alone, so that neither a recording nor the other end's own proof is of use to an attacker. Without
a secret the key is empty: the proof only says that this end accepts the name the other gives. On the wire a proof is
`OMPR`, the version, a length and the 32 bytes. Nodes of revision 0 send none; without a secret they are served.

A node with a certificate may only go by a name in it: `omen://CLUSTER/NAME` among the alternative names of its
subject, in which * stands for anything; where there is no such name the common name or a DNS name, as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from omen.errors import InvalidInput
from omen.net.names import check_name
from omen.net.security.hello import (
    PREFACE,
    REFUSAL,
    VERSION,
    Hello,
    Reason,
    Refused,
    check_hello,
    read_hello,
    write_hello,
)
from omen.protocol.membership.ring import place_of

PROOF = b"OMPR"
PROOF_BYTES = 32
NONCE_BYTES = 16
SCHEME = "omen://"
DIALLER, ACCEPTOR = b"dialler", b"acceptor"


class Handshake:
    """One end of it, without I/O: bytes in, bytes out. `secrets`: those believed, the first is the one to prove.

    `expected`: the place that was dialled, None for any. `certified`: names the other end's certificate allows, None
    without certificates.
    """

    def __init__(
        self,
        own: Hello,
        dialled: bool,
        expected: int | None = None,
        secrets: Sequence[bytes] = (),
        certified: Sequence[str] | None = None,
        refused: Sequence[str] = (),
    ) -> None:
        self._own = msgspec.structs.replace(own, nonce=os.urandom(NONCE_BYTES)) if secrets else own
        self._dialled = dialled
        self._expected = expected
        self._secrets = tuple(secrets)
        self._keys = self._secrets or (b"",)
        self._certified = certified
        self._refused = refused
        self._theirs: Hello | None = None
        self._their_bytes = b""
        self.opening = write_hello(self._own)

    def take(self, buffer: bytearray) -> tuple[bytes, Hello | None]:
        """Take what is complete out of the buffer: what to answer, and the hello of the peer once it is proven."""
        answer = b""
        if self._theirs is None:
            greeting = read_hello(buffer)
            if greeting is None:
                return b"", None
            check_hello(greeting.hello, self._own)
            self._check_identity(greeting.hello)
            self._theirs, self._their_bytes = greeting.hello, bytes(buffer[: greeting.size])
            del buffer[: greeting.size]
            if not self._secrets and self._theirs.revision == 0:
                return b"", self._theirs
            if self._dialled:
                answer = self._prove(self._keys[0], DIALLER)
        if len(buffer) >= 4 and bytes(buffer[:4]) != PROOF:
            if bytes(buffer[:4]) != REFUSAL:
                raise Refused("nothing may be said before the secret is proven", Reason.SECRET)
            read_hello(buffer)  # raises what the other end says, once it is complete
            return answer, None
        if len(buffer) < PREFACE.size + PROOF_BYTES:
            return answer, None
        used = self._verify(bytes(buffer[: PREFACE.size + PROOF_BYTES]))
        del buffer[: PREFACE.size + PROOF_BYTES]
        if not self._dialled:
            answer = self._prove(used, ACCEPTOR)
        return answer, self._theirs

    def _check_identity(self, hello: Hello) -> None:
        """Check that the other end may go by the name it gives; raises Refused."""
        try:
            check_name(hello.name)
        except InvalidInput as error:
            raise Refused(str(error), Reason.HELLO) from error
        if hello.node != place_of(hello.name):
            raise Refused(f"{hello.name!r} does not belong at the place it claims", Reason.IDENTITY)
        if self._certified is not None and not any(fnmatchcase(hello.name, name) for name in self._certified):
            names = ", ".join(repr(plain_name(name)) for name in self._certified) or "no node of this cluster"
            raise Refused(f"the certificate shown is for {names}, not for {hello.name!r}", Reason.IDENTITY)
        if any(fnmatchcase(hello.name, pattern) for pattern in self._refused):
            raise Refused(f"{hello.name!r} is among the names that are refused", Reason.REFUSED_NAME)
        if self._expected is not None and hello.node != self._expected:
            raise Refused(f"another node, {hello.name!r}, answers at this address", Reason.UNEXPECTED_NODE)
        if self._secrets and len(hello.nonce) != NONCE_BYTES:
            raise Refused("this cluster has a secret, and the other end is set to none", Reason.SECRET)
        if hello.nonce and not self._secrets:
            raise Refused("the other end asks for a secret, and none is set here", Reason.SECRET)

    def _prove(self, secret: bytes, role: bytes) -> bytes:
        proof = prove(secret, role, self.opening, self._their_bytes)
        return PREFACE.pack(PROOF, VERSION, PROOF_BYTES) + proof

    def _verify(self, proof: bytes) -> bytes:
        """The secret that the other end has proven."""
        _, _, length = PREFACE.unpack_from(proof)
        role = ACCEPTOR if self._dialled else DIALLER
        if length == PROOF_BYTES:
            for secret in self._keys:
                right = prove(secret, role, self._their_bytes, self.opening)
                if hmac.compare_digest(right, proof[PREFACE.size :]):
                    return secret
        raise Refused("the secrets of the two ends differ", Reason.SECRET)


def prove(secret: bytes, role: bytes, own: bytes, theirs: bytes) -> bytes:
    """The proof of one end; of the two hellos, its own stands first."""
    text = b"omen proof 1 " + role + hashlib.sha256(own).digest() + hashlib.sha256(theirs).digest()
    return hmac.digest(secret, text, "sha256")


def name_in_certificate(cluster: str, name: str) -> str:
    """A node's name as it stands in its certificate; * stays what it is."""
    return f"{SCHEME}{quote(cluster, safe='')}/{quote(name, safe='*')}"


def certified_names(certificate: Mapping[str, Any], cluster: str) -> tuple[str, ...]:
    """The names that a certificate (as `ssl` hands it over) gives its holder in a cluster, patterns among them."""
    others: list[str] = []
    ours: list[str] = []
    is_ours = False
    for kind, value in certificate.get("subjectAltName", ()):
        if kind == "URI" and value.startswith(SCHEME):
            is_ours = True
            where, _, name = value[len(SCHEME) :].partition("/")
            if unquote(where) == cluster:
                ours.append(_literally(unquote(name), "?["))
        elif kind == "DNS":
            others.append(value)
    if is_ours:
        return tuple(ours)
    for part in certificate.get("subject", ()):
        others += [value for field, value in part if field == "commonName"]
    return tuple(_literally(name) for name in others)


def _literally(name: str, special: str = "*?[") -> str:
    """As a pattern in which these characters stand for themselves."""
    return "".join(f"[{char}]" if char in special else char for char in name)


def plain_name(pattern: str) -> str:
    """A name as its certificate has it, from the pattern made of it."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)
