"""What a settings file says about security."""

from __future__ import annotations

from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.security.config import Rule, Security
from omen.net.security.credentials import Credentials
from omen.net.settings import NodeConfig, read_node_config

CERTIFICATE = Security(("ca.pem",), "ann.pem", "ann.key")


def test_nothing_listens_beyond_loopback_unless_it_is_protected_or_said_to_be_open() -> None:
    for listen in ("10.0.0.1:7070", "[2001:db8::1]:7070", "myhost:7070"):
        with pytest.raises(InvalidInput, match=r"can be reached from other machines.*open = true"):
            NodeConfig(listen=listen)
        with pytest.raises(InvalidInput, match="give yours another name than 'omen'"):
            NodeConfig(listen=listen, security=Security(open=True))
        NodeConfig(listen=listen, security=Security(open=True), cluster="mine")
        NodeConfig(listen=listen, security=Security(secrets=("secret",)))
        NodeConfig(listen=listen, security=CERTIFICATE)
    for listen in ("127.0.0.1:0", "127.8.9.1:0", "[::1]:0", "localhost:0"):
        NodeConfig(listen=listen)
    assert NodeConfig().listen.startswith("127.0.0.1:")
    assert not NodeConfig().http


def test_half_a_set_of_keys_a_short_secret_and_rules_without_certificates_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"security\.key"):
        Security(authorities=("ca.pem",), certificate="n.pem")
    (tmp_path / "short").write_text("sesame\n")
    with pytest.raises(InvalidInput, match="can be guessed"):
        Credentials(Security(secrets=(str(tmp_path / "short"),)))
    with pytest.raises(InvalidInput, match="No such file"):
        Credentials(Security(secrets=(str(tmp_path / "none"),)))
    with pytest.raises(InvalidInput, match="go by the names in certificates"):
        NodeConfig(access=(Rule(("*",), ("*",), ("*",)),))


def test_a_settings_file_gives_keys_relative_to_itself_and_rules_as_tables(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(
        'name = "n1"\n[security]\nauthorities = ["ca.pem"]\ncertificate = "n1.pem"\nkey = "n1.key"\n'
        '[[access]]\ntopics = ["prices/*"]\npublish = ["trader-*"]\nsubscribe = ["*"]\n'
    )
    settings = read_node_config(path)
    assert settings.security.certificate == str(tmp_path / "n1.pem")
    assert settings.access == (Rule(("prices/*",), ("trader-*",), ("*",)),)
    path.write_text('name = "n1"\n[[access]]\ntopic = ["prices/*"]\n')
    with pytest.raises(InvalidInput, match=r"unknown setting access\.topic; did you mean 'topics'"):
        read_node_config(path)
