"""Signatures of publications: what is covered, what can verify them, what is kept for it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from omen.errors import InvalidInput
from omen.net.security import signing
from omen.net.security.config import Security
from omen.net.security.hello import Hello
from omen.net.security.key_files import authority_in, make_authority, make_node, revoke, security_from
from omen.net.security.signing import Signatures, Signer, Verdict, Verifier
from omen.protocol.events import Deliver
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.publications import (
    FIELDS_BYTES_AT_MOST,
    Fields,
    Publication,
    make_publication,
    parse_publication,
    read_fields,
    stream_key,
    write_fields,
)

TOPIC, INCARNATION = 7, 3


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    authority = make_authority(folder, "shop", 30)
    for name in ("ann", "bob", "client-*"):
        make_node(folder, authority, "shop", name, 30)
    make_node(folder, authority, "shop", "eddy", 30, "ed25519")
    return folder


def signer_of(keys: Path, name: str, held: str = "") -> Signer:
    return Signer(security_from(keys, held or name), "shop", name)


def verifier_of(keys: Path, verify: str = "mark", cluster: str = "shop", **more: object) -> Verifier:
    return Verifier(replace(security_from(keys, "bob"), verify=verify, **more), cluster, lambda _: None)  # type: ignore[arg-type]


def signed(
    signer: Signer,
    name: str = "ann",
    sequence: int = 1,
    payload: bytes = b"tea",
    opening: bool = True,
    block: bytes = b"",
) -> Publication:
    key = stream_key(TOPIC, place_of(name), INCARNATION)
    sealed = signer.seal(key, sequence, opening, payload, block)
    return parse_publication(make_publication(key, sequence, payload, opening, sealed).frame)


@pytest.mark.parametrize(("name", "held"), [("ann", "ann"), ("eddy", "eddy"), ("client-7", "client-*")])
def test_a_signed_publication_is_verified_by_the_certificate_it_carries(keys: Path, name: str, held: str) -> None:
    met: list[str] = []
    security = replace(security_from(keys, "bob"), verify="mark")
    verifier = Verifier(security, "shop", met.append)
    signer = signer_of(keys, name, held)
    block = write_fields(Fields(headers={"kind": "green"}, expiry=5))
    first = signed(signer, name, block=block)
    assert verifier.check(first) is Verdict.VERIFIED
    assert read_fields(first.fields).headers == {"kind": "green"} and read_fields(first.fields).expiry == 5
    second = signed(signer, name, 2, opening=False)
    assert read_fields(second.fields).certificate is None
    assert verifier.check(second) is Verdict.VERIFIED and met == [name]


def test_whatever_is_altered_shows(keys: Path) -> None:
    """Each part alone: a forwarder could change any of them before."""
    signer, verifier = signer_of(keys, "ann"), verifier_of(keys)
    fields = msgspec.msgpack.encode({1: {"kind": "green"}, 99: "of a later version"})
    genuine = signed(signer, block=fields)
    assert verifier.check(genuine) is Verdict.VERIFIED

    def with_block(change: dict[int, object]) -> bytes:
        return msgspec.msgpack.encode(msgspec.msgpack.decode(genuine.fields, strict=False) | change)

    key, ann = genuine.key, place_of("ann")
    altered = {
        "payload": make_publication(key, 1, b"poison", True, genuine.fields),
        "sequence": make_publication(key, 2, b"tea", True, genuine.fields),
        "opening": make_publication(key, 1, b"tea", False, genuine.fields),
        "topic": make_publication(stream_key(TOPIC + 1, ann, INCARNATION), 1, b"tea", True, genuine.fields),
        "incarnation": make_publication(stream_key(TOPIC, ann, INCARNATION + 1), 1, b"tea", True, genuine.fields),
        "publisher": make_publication(stream_key(TOPIC, place_of("bob"), 3), 1, b"tea", True, genuine.fields),
        "header": make_publication(key, 1, b"tea", True, with_block({1: {"kind": "black"}})),
        "unknown field": make_publication(key, 1, b"tea", True, with_block({99: "another"})),
        "added field": make_publication(key, 1, b"tea", True, with_block({3: 17})),
        "no signature in it": make_publication(key, 1, b"tea", True, with_block({6: "text"})),
        "cut off": make_publication(key, 1, b"tea", True, with_block({6: signer.digest})),
    }
    for what, publication in altered.items():
        assert verifier.check(publication) is Verdict.FORGED, what
    assert verifier_of(keys, cluster="other").check(genuine) is not Verdict.VERIFIED


def test_a_member_cannot_sign_for_another(keys: Path) -> None:
    """Bob holds a certificate of the cluster, and shows it: for his own name, then for Ann's."""
    verifier = verifier_of(keys)
    as_bob, as_ann = signer_of(keys, "bob"), signer_of(keys, "ann", held="bob")
    assert verifier.check(signed(as_bob, "ann")) is Verdict.FORGED
    assert verifier.check(signed(as_ann, "ann")) is Verdict.UNKNOWN, "his certificate is not for this name"
    assert verifier.check(signed(as_bob, "bob")) is Verdict.VERIFIED


def test_one_that_has_just_come_verifies_from_the_next_certificate_on(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    signer = Signer(security_from(keys, "ann"), "shop", "ann", lambda: now)
    carries = []
    for sequence in range(1, 600):
        publication = signed(signer, sequence=sequence, opening=sequence == 1)
        if read_fields(publication.fields).certificate is not None:
            carries.append(sequence)
    assert carries == [1, 257, 513]
    late = verifier_of(keys)
    assert late.check(signed(signer, sequence=600, opening=False)) is Verdict.UNKNOWN
    now = 1.0
    assert late.check(signed(signer, sequence=601, opening=False)) is Verdict.VERIFIED
    assert late.check(signed(signer, sequence=602, opening=False)) is Verdict.VERIFIED


def test_certificates_that_are_not_believed_verify_nothing(keys: Path, tmp_path: Path) -> None:
    stranger = make_authority(tmp_path, "shop", 30)
    make_node(tmp_path, stranger, "shop", "ann", 30)
    make_node(tmp_path / "late", authority_in(keys), "shop", "ann", 0)
    genuine = signed(signer_of(keys, "ann"))
    assert verifier_of(keys).check(signed(signer_of(tmp_path, "ann"))) is Verdict.UNKNOWN
    assert verifier_of(keys, refuse=("an*",)).check(genuine) is Verdict.UNKNOWN
    expired = Signer(Security(("x",), str(tmp_path / "late/ann.pem"), str(tmp_path / "late/ann.key")), "shop", "ann")
    assert verifier_of(keys).check(signed(expired)) is Verdict.UNKNOWN
    later = Verifier(
        replace(security_from(keys, "bob"), verify="mark"), "shop", lambda _: None, lambda: time.time() + 31 * 86_400
    )
    assert later.check(genuine) is Verdict.UNKNOWN


def test_a_revoked_certificate_verifies_nothing_once_the_list_is_read(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "shop", 30)
    for name in ("ann", "bob"):
        make_node(tmp_path, authority, "shop", name, 30)
    listed = revoke(tmp_path, authority, [], 30)
    security = replace(security_from(tmp_path, "bob"), verify="require", revoked=(str(listed),))
    signatures = Signatures(security, "shop", "bob", lambda _: None)
    publication = signed(signer_of(tmp_path, "ann"))
    assert signatures.verifier is not None and signatures.takes(signatures.verifier, publication) is None
    revoke(tmp_path, authority, [tmp_path / "ann.pem"], 30)
    signatures.renew(security)
    assert signatures.takes(signatures.verifier, publication) is Verdict.UNKNOWN


def test_what_is_refused_depends_on_the_setting_and_forged_ones_always_are(keys: Path) -> None:
    genuine = signed(signer_of(keys, "ann"))
    plain = make_publication(genuine.key, 1, b"tea", True)
    forged = make_publication(genuine.key, 1, b"poison", True, genuine.fields)
    found = {}
    for verify in ("mark", "require"):
        signatures = Signatures(replace(security_from(keys, "bob"), verify=verify), "shop", "bob", lambda _: None)
        assert signatures.verifier is not None and signatures.signer is None
        found[verify] = [signatures.takes(signatures.verifier, each) for each in (genuine, plain, forged)]
        assert signatures.counts == {"verified": 1, "unsigned": 1, "forged": 1}
    assert found == {"mark": [None, None, "forged"], "require": [None, "unsigned", "forged"]}


def test_a_delivery_is_verified_whenever_it_comes(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "RECENT", 2)
    verifier, signer = verifier_of(keys), signer_of(keys, "ann")
    publications = [signed(signer, sequence=sequence, opening=sequence == 1) for sequence in (1, 2, 3, 4)]
    assert all(verifier.check(publication) is Verdict.VERIFIED for publication in publications)

    def delivery(publication: Publication, payload: bytes) -> Deliver:
        return Deliver(TOPIC, place_of("ann"), INCARNATION, publication.sequence, payload, publication.fields)

    assert all(verifier.is_verified(delivery(publication, b"tea")) for publication in publications)
    assert not verifier.is_verified(delivery(publications[0], b"poison"))
    assert not verifier.is_verified(Deliver(TOPIC, place_of("ann"), INCARNATION, 9, b"tea"))


def test_what_was_verified_lends_nothing_to_another_of_its_number(keys: Path) -> None:
    """A genuine one may be verified and not kept; before, an unsigned one in its place was shown as verified."""
    verifier, genuine = verifier_of(keys), signed(signer_of(keys, "ann"))
    assert verifier.check(genuine) is Verdict.VERIFIED
    unsigned = write_fields(Fields(headers={"kind": "made up"}))
    assert not verifier.is_verified(Deliver(TOPIC, place_of("ann"), INCARNATION, 1, b"poison", unsigned))
    assert verifier.is_verified(Deliver(TOPIC, place_of("ann"), INCARNATION, 1, b"tea", genuine.fields))


@pytest.mark.parametrize("verify", ["mark", "require"])
def test_only_a_forgery_in_its_own_name_is_a_peers_fault(keys: Path, verify: str) -> None:
    """Before, where signatures were required: a node that does not verify was dropped for what another had forged."""
    verifier, genuine = verifier_of(keys, verify), signed(signer_of(keys, "ann"))
    forged = make_publication(genuine.key, 1, b"poison", True, genuine.fields)
    assert verifier.check(forged) is Verdict.FORGED
    ann = Hello("shop", place_of("ann"), "ann", INCARNATION, "", 1)
    bob = Hello("shop", place_of("bob"), "bob", INCARNATION, "", 2)
    assert verifier.blames(ann, forged, Verdict.FORGED)
    assert not verifier.blames(bob, forged, Verdict.FORGED)
    assert not verifier.blames(ann, forged, Verdict.UNKNOWN)
    later = msgspec.structs.replace(ann, incarnation=INCARNATION + 1)
    assert not verifier.blames(later, forged, Verdict.FORGED), "its former streams come back to it from others"


def test_a_publisher_is_believed_no_longer_than_the_list_of_its_authority(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "shop", 30)
    for name in ("ann", "bob"):
        make_node(tmp_path, authority, "shop", name, 30)
    listed = revoke(tmp_path, authority, [], 2)
    security = replace(security_from(tmp_path, "bob"), verify="mark", revoked=(str(listed),))
    now = time.time()
    verifier, signer = Verifier(security, "shop", lambda _: None, lambda: now), signer_of(tmp_path, "ann")
    assert verifier.check(signed(signer)) is Verdict.VERIFIED
    now += 3 * 86_400
    assert verifier.check(signed(signer, sequence=2, opening=False)) is Verdict.UNKNOWN


def test_what_is_kept_is_bounded_in_bytes(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "KNOWN_BYTES", 5 * signing.KEY_BYTES)
    verifier = verifier_of(keys)
    for number in range(20):
        name = f"client-{number}"
        assert verifier.check(signed(signer_of(keys, name, "client-*"), name)) is Verdict.VERIFIED
        assert verifier.known_bytes <= 5 * signing.KEY_BYTES
    huge = Signer(security_from(keys, "ann"), "shop", "a" * signing.LARGEST_CERTIFICATE)
    assert verifier.check(signed(huge)) is Verdict.UNKNOWN


def test_settings_that_cannot_be_are_refused(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"security\.sign: .* certificates"):
        Security(sign=True)
    with pytest.raises(InvalidInput, match=r"security\.verify: .* certificates"):
        Security(verify="mark")
    with pytest.raises(InvalidInput, match="must be one of off, mark, require"):
        Security(verify="yes")
    with pytest.raises(InvalidInput, match="no room for a signature"):
        signed(signer_of(keys, "ann"), block=write_fields(Fields(reply_to="x" * (FIELDS_BYTES_AT_MOST - 50))))
    Path(tmp_path / "odd.key").write_text("nothing")
    with pytest.raises(InvalidInput, match=r"security\.certificate, security\.key"):
        Signer(replace(security_from(keys, "ann"), key=str(tmp_path / "odd.key")), "shop", "ann")
