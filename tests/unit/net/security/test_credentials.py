"""A node looks at its own certificate as its peers will; keys that others can read are no secret."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials, check_own, check_private
from omen.net.security.key_files import (
    authority_in,
    make_authority,
    make_cluster_keys,
    make_node,
    make_secret,
    revoke,
    security_from,
)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_key_or_secret_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Before: any mode was taken."""
    make_cluster_keys(tmp_path, "omen", ["ann"])
    security = security_from(tmp_path, "ann")
    Credentials(security)
    Path(security.key).chmod(mode)
    with pytest.raises(InvalidInput, match=rf"ann.key: mode {mode:o} lets others read it: chmod 600"):
        Credentials(security)
    secret = make_secret(tmp_path / "secret")
    Credentials(Security(secrets=(str(secret),)))
    secret.chmod(mode)
    with pytest.raises(InvalidInput, match="secret: mode"):
        Credentials(Security(secrets=(str(secret),)))


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone\.key: No such file"):
        check_private(str(tmp_path / "gone.key"))


def meet(server: Security, client: Security) -> None:
    """A handshake in memory, as two nodes make it; raises what it ends with."""
    ours, theirs = Credentials(server).contexts, Credentials(client).contexts
    assert ours is not None and theirs is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = ours.server.wrap_bio(to_server, to_client, server_side=True)
    dialling = theirs.client.wrap_bio(to_client, to_server)
    for _ in range(4):
        for end in (dialling, accepting):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def test_a_revoked_certificate_is_believed_no_longer_and_others_are(tmp_path: Path) -> None:
    """Before: there were no lists."""
    make_cluster_keys(tmp_path, "omen", ["ann", "bob", "eve"])
    listed = str(revoke(tmp_path, authority_in(tmp_path), [], 30))
    ann = replace(security_from(tmp_path, "ann"), revoked=(listed,))
    bob, eve = security_from(tmp_path, "bob"), security_from(tmp_path, "eve")
    meet(ann, bob)
    meet(ann, eve)
    credentials = Credentials(ann)
    assert revoke(tmp_path, authority_in(tmp_path), [eve.certificate], 30) == Path(listed)
    assert credentials.has_changed() and credentials.renew(ann)
    meet(ann, bob)
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
        meet(ann, eve)
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
        meet(eve, replace(bob, revoked=(listed,)))
    revoke(tmp_path, authority_in(tmp_path), [], 30)
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
        meet(ann, eve)


def test_a_certificate_of_another_authority_is_not_this_ones_to_revoke(tmp_path: Path) -> None:
    make_cluster_keys(tmp_path / "one", "omen", ["ann"])
    make_cluster_keys(tmp_path / "two", "tea", ["ann"])
    with pytest.raises(InvalidInput, match="not a certificate of"):
        revoke(tmp_path / "one", authority_in(tmp_path / "one"), [tmp_path / "two" / "ann.pem"], 30)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    make_node(folder, make_authority(folder, "omen", 30), "omen", "ann", 30)
    return folder


def test_a_good_certificate_passes_and_so_does_none(keys: Path) -> None:
    check_own(Credentials(security_from(keys, "ann")), "omen", "ann")
    check_own(Credentials(Security()), "omen", "ann")


def test_a_certificate_of_another_node_or_cluster_is_found_at_start(keys: Path) -> None:
    ann = Credentials(security_from(keys, "ann"))
    with pytest.raises(InvalidInput, match=r"ann\.pem: it is for 'ann', and this node is 'bob'"):
        check_own(ann, "omen", "bob")
    with pytest.raises(InvalidInput, match="it is for no node of cluster 'other'"):
        check_own(ann, "other", "ann")


def test_a_certificate_that_has_expired_is_found_at_start(tmp_path: Path) -> None:
    make_node(tmp_path, make_authority(tmp_path, "omen", 30), "omen", "ann", 0)
    with pytest.raises(InvalidInput, match=r"security\.certificate: .*ann\.pem: certificate has expired"):
        check_own(Credentials(security_from(tmp_path, "ann")), "omen", "ann")


def test_a_certificate_of_a_foreign_authority_is_found_at_start(keys: Path, tmp_path: Path) -> None:
    make_authority(tmp_path, "omen", 30)
    foreign = Security((str(tmp_path / "ca.pem"),), str(keys / "ann.pem"), str(keys / "ann.key"))
    with pytest.raises(InvalidInput, match=r"is it signed by one of security\.authorities\?"):
        check_own(Credentials(foreign), "omen", "ann")


def test_a_key_that_is_not_the_certificates_is_found_at_start(keys: Path, tmp_path: Path) -> None:
    make_node(tmp_path, make_authority(tmp_path, "omen", 30), "omen", "ann", 30)
    with pytest.raises(InvalidInput, match="the key is not that of the certificate"):
        Credentials(Security((str(keys / "ca.pem"),), str(keys / "ann.pem"), str(tmp_path / "ann.key")))
