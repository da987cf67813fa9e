"""Makes the files that protect a cluster: an authority, certificates for nodes, a secret.

Needs `cryptography` (the extra `keys`); a running node does not, unless publications are signed or verified. Keys are
on the curve P-256, which all TLS 1.3 takes, or Ed25519.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omen.errors import CannotWrite, InvalidInput, MissingDependency
from omen.net.names import check_name
from omen.net.security.config import Security
from omen.net.security.handshake import certified_names, name_in_certificate, plain_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, Name

    PrivateKey = EllipticCurvePrivateKey | Ed25519PrivateKey

AUTHORITY = "ca"
CERTIFICATE, KEY, REVOKED = ".pem", ".key", ".crl"
PRIVATE, PUBLIC = 0o600, 0o644
CLOCKS_DIFFER = timedelta(minutes=5)
SECRET_BYTES = 32
P256, ED25519 = "p256", "ed25519"
KEY_KINDS = (P256, ED25519)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Facts:
    """What a certificate says."""

    names: tuple[str, ...]
    cluster: str
    is_authority: bool
    begins: datetime
    ends: datetime


def _cryptography() -> Any:
    try:
        from cryptography import x509
    except ImportError as error:
        raise MissingDependency(
            "making keys needs the package cryptography: pip install 'omen-overlay[keys]' (running nodes do without)"
        ) from error
    return x509


def make_authority(folder: str | Path, cluster: str, days: int, name: str = AUTHORITY, kind: str = P256) -> Pair:
    """A new authority for a cluster: its key decides which nodes are members."""
    x509 = _cryptography()
    pair = _pair(folder, name)
    if pair.key.exists() or pair.certificate.exists():
        raise InvalidInput(f"{pair.certificate}: an authority is there already, and nodes believe it; choose a --name")
    key = _new_key(kind)
    subject = _subject(f"OMen authority of {cluster}", cluster)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = _builder(subject, subject, key.public_key(), days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    _write(pair, _sign(builder, key), key)
    return pair


def make_node(folder: str | Path, authority: Pair, cluster: str, name: str, days: int, kind: str = P256) -> Pair:
    """A certificate for one node, or (with a * in its name) for any whose name fits. An older one is replaced."""
    x509 = _cryptography()
    check_name(name)
    issuer, issuer_key = _read_pair(authority)
    known = cluster_of(issuer)
    if known is not None and known != cluster:
        raise InvalidInput(f"{authority.certificate}: the authority of cluster {known!r}, not of {cluster!r}")
    key = _new_key(kind)
    builder = _builder(_subject(name, cluster), issuer.subject, key.public_key(), days)
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    purposes = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    uri = x509.UniformResourceIdentifier(name_in_certificate(cluster, name))
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([uri]), critical=False)
    pair = _pair(folder, file_name(name))
    _write(pair, _sign(builder, issuer_key), key)
    return pair


def revoke(folder: str | Path, authority: Pair, certificates: Sequence[str | Path], days: int) -> Path:
    """Add certificates to the list of those that their authority revokes, and sign it anew; the list's file.

    Without certificates: a list as it was, or a new one that is empty. What is on it stays on it.
    """
    x509 = _cryptography()
    issuer, issuer_key = _read_pair(authority)
    path = Path(folder) / f"{authority.certificate.stem}{REVOKED}"
    now = datetime.now(UTC)
    former = _load_revoked(path) if path.exists() else None
    entries = {entry.serial_number: entry for entry in former or ()}
    for name in certificates:
        certificate = _load(Path(name))
        if certificate.issuer != issuer.subject:
            raise InvalidInput(f"{name}: not a certificate of {authority.certificate}")
        entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(now)
        entries.setdefault(certificate.serial_number, entry.build())
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
    builder = builder.last_update(now - CLOCKS_DIFFER).next_update(now + timedelta(days=days))
    for entry in entries.values():
        builder = builder.add_revoked_certificate(entry)
    number = int(now.timestamp() * 1000)
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    _put(path, _sign(builder, issuer_key).public_bytes(_pem()), PUBLIC)
    return path


def _load_revoked(path: Path) -> Any:
    x509 = _cryptography()
    try:
        return x509.load_pem_x509_crl(path.read_bytes())
    except ValueError as error:
        raise InvalidInput(f"{path}: not a list of revoked certificates in PEM form") from error


def _pem() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.PEM


def make_secret(path: str | Path) -> Path:
    """A secret that cannot be guessed, in a file that only its owner reads."""
    target = Path(path)
    if target.exists():
        raise InvalidInput(f"{target}: there already, and nodes may depend on it")
    _put(target, base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)) + b"\n", PRIVATE)
    return target


def make_cluster_keys(folder: Path, cluster: str, names: Sequence[str], days: int = 365) -> None:
    """For a cluster on one machine, for trying things: an authority and all its nodes in one folder."""
    authority = make_authority(folder, cluster, days) if not _pair(folder, AUTHORITY).key.exists() else None
    for name in names:
        make_node(folder, authority or authority_in(folder), cluster, name, days)


def security_from(folder: Path, name: str) -> Security:
    """The settings of a node whose files were made in a folder."""
    pair = _pair(folder, file_name(name))
    authority = _pair(folder, AUTHORITY)
    return Security((str(authority.certificate),), str(pair.certificate), str(pair.key))


def read_certificate(path: str | Path) -> Facts:
    """What a certificate in a file says."""
    x509 = _cryptography()
    certificate = _load(Path(path))
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    cluster = cluster_of(certificate) or ""
    is_authority = bool(constraints and constraints.ca)
    found = () if is_authority else tuple(map(plain_name, certified_names(names_in(certificate), cluster)))
    return Facts(found, cluster, is_authority, certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def names_in(certificate: Certificate) -> dict[str, Any]:
    """The names in a certificate, in the form in which `ssl` hands them over."""
    x509 = _cryptography()
    names: list[tuple[str, str]] = []
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += [("URI", value) for value in alternatives.get_values_for_type(x509.UniformResourceIdentifier)]
        names += [("DNS", value) for value in alternatives.get_values_for_type(x509.DNSName)]
    except x509.ExtensionNotFound:
        pass
    common = certificate.subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)
    return {"subjectAltName": names, "subject": [[("commonName", part.value)] for part in common]}


def authority_in(folder: str | Path, name: str = AUTHORITY) -> Pair:
    """The authority kept in a folder."""
    pair = _pair(folder, name)
    for path in (pair.certificate, pair.key):
        if not path.exists():
            raise InvalidInput(f"{path}: no authority there (`omen keys ca` makes one)")
    return pair


def cluster_of(certificate: Certificate) -> str | None:
    """The cluster that a certificate made here is for."""
    x509 = _cryptography()
    units = certificate.subject.get_attributes_for_oid(x509.oid.NameOID.ORGANIZATIONAL_UNIT_NAME)
    return str(units[0].value) if units else None


def file_name(name: str) -> str:
    """A node's name as a file's: * is `any`, whatever else files do not like is a number."""
    name = name.replace("*", "any")
    return "".join(char if char.isalnum() or char in "-_." else f"%{ord(char):x}" for char in name)


def _pair(folder: str | Path, name: str) -> Pair:
    return Pair(Path(folder) / f"{name}{CERTIFICATE}", Path(folder) / f"{name}{KEY}")


def _new_key(kind: str) -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if kind == ED25519:
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str, cluster: str) -> Name:
    x509 = _cryptography()
    parts = [(x509.oid.NameOID.COMMON_NAME, name), (x509.oid.NameOID.ORGANIZATIONAL_UNIT_NAME, cluster)]
    return x509.Name([x509.NameAttribute(kind, value[:64]) for kind, value in parts])  # type: ignore[no-any-return]


def _builder(subject: Name, issuer: Name, public_key: Any, days: int) -> CertificateBuilder:
    x509 = _cryptography()
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - CLOCKS_DIFFER).not_valid_after(now + timedelta(days=days))
    made: CertificateBuilder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False
    )
    return made


def _sign(builder: Any, by: PrivateKey) -> Any:
    """A certificate or a list of revoked ones, by the key of an authority."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    x509 = _cryptography()
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False)
    return builder.sign(by, None if isinstance(by, Ed25519PrivateKey) else hashes.SHA256())


def _load(path: Path) -> Certificate:
    x509 = _cryptography()
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())  # type: ignore[no-any-return]
    except ValueError as error:
        raise InvalidInput(f"{path}: not a certificate in PEM form") from error


def _read_pair(pair: Pair) -> tuple[Certificate, PrivateKey]:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key: Any = load_pem_private_key(pair.key.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{pair.key}: not a private key in PEM form without a password") from error
    return _load(pair.certificate), key


def _write(pair: Pair, certificate: Certificate, key: PrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    _put(pair.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), PRIVATE)
    _put(pair.certificate, certificate.public_bytes(Encoding.PEM), PUBLIC)


def _put(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by more than it is meant for."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
        aside.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}") from error


def describe(name: str, facts: Facts) -> Sequence[tuple[str, Any]]:
    """A certificate, for people and for JSON."""
    return [
        ("file", name),
        ("kind", "authority" if facts.is_authority else "node"),
        ("names", ", ".join(facts.names) or None),
        ("cluster", facts.cluster or None),
        ("from", f"{facts.begins:%Y-%m-%d %H:%M}"),
        ("until", f"{facts.ends:%Y-%m-%d %H:%M}"),
        ("days_left", (facts.ends - datetime.now(UTC)).days),
    ]
