"""Publications that carry their publisher's signature, so that a node that passes them on cannot forge them.

Signed is, by the key of the publisher's certificate: the cluster, topic, publisher, incarnation and sequence, whether a
run begins, all fields but the signature, and the payload. The signature field holds the first 16 bytes of the digest of
the publisher's certificate field, then the signature (ECDSA on P-256, or Ed25519).

What it can be verified with travels with the publications: the first of a run carries the publisher's name and
certificate as a field, and so does one in each `CARRY_S` or `CARRY_EACH`. So nodes that do not verify pass it on like
anything else, and one that has just come hears it soon. What comes before that is refused where signatures are
required, and fetched again like anything that is missing.

Needs `cryptography` (the extra `keys`), which is loaded only where `sign` or `verify` is set.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from omen.errors import InvalidInput, MissingDependency
from omen.net.security.config import OFF, REQUIRE, Security
from omen.net.security.handshake import certified_names
from omen.net.security.hello import Hello
from omen.net.security.key_files import names_in
from omen.protocol.events import Deliver, NodeId
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import (
    CERTIFICATE,
    FIELDS_BYTES_AT_MOST,
    SIGNATURE,
    Publication,
    RawFields,
    StreamKey,
    split_fields,
    stream_key,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateRevocationList

DOMAIN = b"omen publication 1\0"
DIGEST_BYTES = 16
CARRY_S, CARRY_EACH = 1.0, 256
LARGEST_CERTIFICATE = 8 << 10
KNOWN_BYTES = 16 << 20
KEY_BYTES = 4 << 10
"""What a certificate and its key take in memory beside their bytes, at most."""
RECENT = 4096
CARRIED_TOPICS = 1 << 14
_HEAD = struct.Struct(">QBH")
_encode = msgspec.msgpack.encode


class Verdict(StrEnum):
    """What is known of a publication's signature. `UNKNOWN`: no certificate that is believed has come for it yet."""

    VERIFIED = "verified"
    UNSIGNED = "unsigned"
    UNKNOWN = "unknown_signer"
    FORGED = "forged"


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """The certificate field: the publisher's name, and its certificate as DER."""

    name: str
    certificate: bytes


class Identity(msgspec.Struct, frozen=True):
    """A publisher whose certificate is believed. `check` raises where a signature is not by its key."""

    name: str
    place: NodeId
    check: Callable[[bytes, bytes], None]
    begins: float
    ends: float
    size: int


class Signer:
    """Signs what this node publishes."""

    def __init__(
        self, security: Security, cluster: str, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = hashlib.sha256(cluster.encode()).digest()
        certificate, self._sign = _load_own(security)
        field = _encode(Shown(name, certificate))
        self.digest = _digest(field)
        self._field = msgspec.Raw(_encode(field))
        self._clock = clock
        self._carried: OrderedDict[StreamKey, tuple[float, int]] = OrderedDict()

    def seal(self, key: StreamKey, sequence: int, opening: bool, payload: bytes, block: bytes) -> bytes:
        """The block of fields with the signature, and now and then the certificate. InvalidInput: it is too large."""
        fields = split_fields(block)
        if self._is_due(key, sequence, opening):
            fields[CERTIFICATE] = self._field
        signature = self.digest + self._sign(_signed(self._cluster, key, sequence, opening, fields, payload))
        fields[SIGNATURE] = msgspec.Raw(_encode(signature))
        sealed = _encode(fields)
        if len(sealed) > FIELDS_BYTES_AT_MOST:
            most = FIELDS_BYTES_AT_MOST
            raise InvalidInput(f"headers of {len(block)} bytes leave no room for a signature: {most} in all at most")
        return sealed

    def _is_due(self, key: StreamKey, sequence: int, opening: bool) -> bool:
        now = self._clock()
        at, last = self._carried.get(key, (0.0, 0))
        if not opening and last and now - at < CARRY_S and sequence - last < CARRY_EACH:
            return False
        self._carried[key] = (now, sequence)
        self._carried.move_to_end(key)
        if len(self._carried) > CARRIED_TOPICS:
            self._carried.popitem(last=False)
        return True


class Verifier:
    """Verifies what comes in. `met`: told the name of a publisher whose certificate is believed, once.

    What it keeps is bounded: certificates in bytes, and how the last few thousand publications were found.
    """

    def __init__(
        self, security: Security, cluster: str, met: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self.is_required = security.verify == REQUIRE
        self._cluster_name = cluster
        self._cluster = hashlib.sha256(cluster.encode()).digest()
        self._authorities = _load_authorities(security)
        self._refused = security.refuse
        self._met = met
        self._clock = clock
        self._known: OrderedDict[bytes, Identity] = OrderedDict()
        self.known_bytes = 0
        self._recent: OrderedDict[tuple[StreamKey, int], int] = OrderedDict()

    def check(self, publication: Publication) -> Verdict:
        """What its signature is worth."""
        opening = publication.is_opening
        verdict = self._check(
            publication.key,
            publication.sequence,
            opening,
            publication.publisher,
            publication.fields,
            publication.payload,
        )
        if verdict is Verdict.VERIFIED:
            self._recent[publication.key, publication.sequence] = hash(publication.fields)
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)
        return verdict

    def blames(self, peer: Hello, publication: Publication, verdict: Verdict) -> bool:
        """Whether the peer it came from is to blame. One that passes on what another has forged may be honest: it does
        not verify, or has no certificate to do it by. Only what bears its own name and incarnation is its own: no node
        takes such from others.
        """
        own = (peer.node, peer.incarnation)
        return verdict is Verdict.FORGED and (publication.publisher, publication.incarnation) == own

    def is_verified(self, delivery: Deliver) -> bool:
        """Whether a publication that is delivered now was signed by its publisher. It may have been kept for long."""
        if not delivery.fields:
            return False
        key = stream_key(delivery.topic, delivery.publisher, delivery.incarnation)
        # By its fields too: what was verified and not kept may have made way for another of its number, unsigned.
        if self._recent.get((key, delivery.sequence)) == hash(delivery.fields):
            return True
        return any(
            self._check(key, delivery.sequence, opening, delivery.publisher, delivery.fields, delivery.payload)
            is Verdict.VERIFIED
            for opening in (False, True)
        )

    def _check(
        self, key: StreamKey, sequence: int, opening: bool, publisher: NodeId, block: bytes, payload: bytes
    ) -> Verdict:
        try:
            fields = split_fields(block)
            raw = fields.get(SIGNATURE)
            if raw is None:
                return Verdict.UNSIGNED
            signature = msgspec.msgpack.decode(raw, type=bytes)
            shown = fields.get(CERTIFICATE)
            carried = None if shown is None else msgspec.msgpack.decode(shown, type=bytes)
        except msgspec.MsgspecError:
            return Verdict.FORGED
        digest = signature[:DIGEST_BYTES]
        identity = self._known.get(digest)
        if identity is not None:
            self._known.move_to_end(digest)
        elif carried is not None and _digest(carried) == digest:
            identity = self._learn(digest, carried)
        if identity is None or not identity.begins <= self._clock() <= identity.ends:
            return Verdict.UNKNOWN
        if identity.place != publisher:
            return Verdict.FORGED
        text = _signed(self._cluster, key, sequence, opening, fields, payload)
        try:
            identity.check(signature[DIGEST_BYTES:], text)
        except Exception:  # InvalidSignature, or bytes that are none
            return Verdict.FORGED
        return Verdict.VERIFIED

    def _learn(self, digest: bytes, field: bytes) -> Identity | None:
        """Whose certificate this is, if it is believed. What makes it unbelievable may be news that others lack."""
        if len(field) > LARGEST_CERTIFICATE:
            return None
        try:
            shown = msgspec.msgpack.decode(field, type=Shown)
            identity = self._believe(shown)
        except (msgspec.MsgspecError, ValueError):
            return None
        if identity is None:
            return None
        self._known[digest] = identity
        self.known_bytes += identity.size
        while self.known_bytes > KNOWN_BYTES:
            self.known_bytes -= self._known.popitem(last=False)[1].size
        self._met(identity.name)
        return identity

    def _believe(self, shown: Shown) -> Identity | None:
        certificate = _x509().load_der_x509_certificate(shown.certificate)
        names = certified_names(names_in(certificate), self._cluster_name)
        if not any(fnmatchcase(shown.name, pattern) for pattern in names):
            return None
        if any(fnmatchcase(shown.name, pattern) for pattern in self._refused):
            return None
        now = self._clock()
        vouching = [authority for authority in self._authorities if authority.vouches_for(certificate, now)]
        if not vouching:
            return None
        begins, ends = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        ends = min(ends, max(authority.ends for authority in vouching))
        size = len(shown.certificate) + len(shown.name) + KEY_BYTES
        return Identity(shown.name, place_of(shown.name), _checker(certificate.public_key()), begins, ends, size)


class Authority(msgspec.Struct, frozen=True):
    """One that is believed, and its list of revoked certificates where one is required."""

    certificate: Any
    revoked: Any
    needs_list: bool

    @property
    def ends(self) -> float:
        """Until when its word counts: as long as its own certificate and its list are good."""
        until: float = self.certificate.not_valid_after_utc.timestamp()
        listed = self.revoked.next_update_utc if self.needs_list and self.revoked is not None else None
        return until if listed is None else min(until, listed.timestamp())

    def vouches_for(self, certificate: Certificate, now: float) -> bool:
        from cryptography.exceptions import InvalidSignature

        issuer: Certificate = self.certificate
        if not issuer.not_valid_before_utc.timestamp() <= now <= issuer.not_valid_after_utc.timestamp():
            return False
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature):
            return False
        if not self.needs_list:
            return True
        found: CertificateRevocationList | None = self.revoked
        if found is None or found.next_update_utc is None or found.next_update_utc < datetime.fromtimestamp(now, UTC):
            return False
        return found.get_revoked_certificate_by_serial_number(certificate.serial_number) is None


class Signatures:
    """What a node signs with, and verifies by, as settings and files say now. `counts`: publications by verdict."""

    def __init__(self, security: Security, cluster: str, name: str, met: Callable[[str], None]) -> None:
        self._cluster, self._name, self._met = cluster, name, met
        self.counts: Counter[str] = Counter()
        self.signer: Signer | None = None
        self.verifier: Verifier | None = None
        self.renew(security)

    def renew(self, security: Security) -> None:
        """Go by these; what was believed by former authorities is not. InvalidInput, and all stays as it was."""
        signer = Signer(security, self._cluster, self._name) if security.sign else None
        self.verifier = Verifier(security, self._cluster, self._met) if security.verify != OFF else None
        self.signer = signer

    def takes(self, verifier: Verifier, publication: Publication) -> Verdict | None:
        """None: it goes on. Otherwise why it does not."""
        verdict = verifier.check(publication)
        self.counts[verdict] += 1
        if verdict is Verdict.VERIFIED or (verdict is not Verdict.FORGED and not verifier.is_required):
            return None
        return verdict


def _signed(cluster: bytes, key: StreamKey, sequence: int, opening: bool, fields: RawFields, payload: bytes) -> bytes:
    """What is signed. Fields stand in the order of their numbers, each as it is on the wire."""
    others = [number for number in sorted(fields) if number != SIGNATURE]
    parts = [DOMAIN, cluster, key, _HEAD.pack(sequence, opening, len(others))]
    for number in others:
        raw = bytes(fields[number])
        parts += (number.to_bytes(9, "big", signed=True), len(raw).to_bytes(4, "big"), raw)
    parts.append(payload)
    return b"".join(parts)


def _digest(field: bytes) -> bytes:
    return hashlib.sha256(field).digest()[:DIGEST_BYTES]


def _x509() -> Any:
    try:
        from cryptography import x509
    except ImportError as error:
        raise MissingDependency(
            "signed publications need the package cryptography: pip install 'omen-overlay[keys]'"
        ) from error
    return x509


def _load_own(security: Security) -> tuple[bytes, Callable[[bytes], bytes]]:
    """This node's certificate, and what signs by its key."""
    x509 = _x509()
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(Path(security.certificate).read_bytes())
        key = load_pem_private_key(Path(security.key).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"security.certificate, security.key: {error}") from error
    der: bytes = certificate.public_bytes(Encoding.DER)
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return der, key.sign
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        algorithm = ec.ECDSA(hashes.SHA256())
        signing: ec.EllipticCurvePrivateKey = key
        return der, lambda text: signing.sign(text, algorithm)
    raise InvalidInput(f"security.key: {security.key}: signing takes a key on P-256 or Ed25519 (`omen keys node`)")


def _checker(key: Any) -> Callable[[bytes, bytes], None]:
    """Takes signature and text. ValueError: a kind of key that nothing is signed with here."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PublicKey):
        return key.verify
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        algorithm = ec.ECDSA(hashes.SHA256())
        public: ec.EllipticCurvePublicKey = key
        return lambda signature, text: public.verify(signature, text, algorithm)
    raise ValueError("neither P-256 nor Ed25519")


def _load_authorities(security: Security) -> list[Authority]:
    x509 = _x509()
    try:
        issuers = [
            issuer
            for path in security.authorities
            for issuer in x509.load_pem_x509_certificates(Path(path).read_bytes())
        ]
        lists = [x509.load_pem_x509_crl(Path(path).read_bytes()) for path in security.revoked]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"security.authorities, security.revoked: {error}") from error

    def list_of(issuer: Certificate) -> Any:
        public: Any = issuer.public_key()
        own = (found for found in lists if found.issuer == issuer.subject and found.is_signature_valid(public))
        return max(own, key=lambda found: found.last_update_utc, default=None)

    return [Authority(issuer, list_of(issuer), bool(security.revoked)) for issuer in issuers]
