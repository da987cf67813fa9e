"""The files that protect a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.errors import MissingDependency
from omen.net.security.credentials import Credentials
from omen.net.security.key_files import make_authority, make_node, make_secret, read_certificate, security_from


def test_the_command_makes_an_authority_certificates_and_a_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["keys", "ca", "--cluster", "shop"]) == 0
    assert main(["keys", "node", "n1", "client-*", "--cluster", "shop", "--days", "7", "--json"]) == 0
    assert main(["keys", "secret"]) == 0
    assert {Path(f"keys/{name}").stat().st_mode & 0o777 for name in ("n1.key", "ca.key", "secret")} == {0o600}
    facts = read_certificate("keys/n1.pem")
    assert (facts.names, facts.cluster, (facts.ends - facts.begins).days) == (("n1",), "shop", 7)
    assert main(["keys", "show", "keys/ca.pem", "keys/client-any.pem"]) == 0
    assert "authority" in capsys.readouterr().out
    assert main(["keys", "ca", "--cluster", "shop"]) == 2
    assert "an authority is there already" in capsys.readouterr().err
    assert main(["keys", "node", "n2", "--cluster", "other"]) == 2
    assert main(["keys", "secret"]) == 2
    Credentials(security_from(tmp_path / "keys", "n1"))


def test_running_nodes_do_without_the_package_that_makes_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, make_authority(tmp_path, "omen", 30), "omen", "ann", 30)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert Credentials(security_from(tmp_path, "ann")).contexts is not None
    make_secret(tmp_path / "secret")
    with pytest.raises(MissingDependency, match=r"omen-overlay\[keys\]"):
        make_authority(tmp_path, "omen", 30)
