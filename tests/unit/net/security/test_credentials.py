"""Keys that others can read are no secret: they are not taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.security.config import Security
from omen.net.security.credentials import Credentials, check_private
from omen.net.security.key_files import make_cluster_keys, make_secret, security_from


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
