"""Keys that others can read are no secret: they are not taken."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials, check_private
from omen.net.security.key_files import authority_in, make_cluster_keys, make_secret, revoke, security_from


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
