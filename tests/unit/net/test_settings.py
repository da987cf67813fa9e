"""Settings files: with mistakes, and with names of the last release."""

from __future__ import annotations

import warnings
from importlib.resources import files
from pathlib import Path

import pytest

from omen.errors import InvalidInput
from omen.net.settings import NodeConfig, read_node_config
from omen.protocol.membership.ring import place_of
from omen.protocol.messages.base import LinkRules


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nmae = 'a'", "did you mean 'name'"),
        ("name = 'a b'", "without blanks"),
        ("listen = 'nowhere'", "must be HOST:PORT"),
        ("listen = '0.0.0.0:7070'", "say which one in `advertise`"),
        ("advertise = '0.0.0.0:7070'", "advertise '0.0.0.0:7070' is every address, and no peer can connect to it"),
        ("advertise = '[::]:7070'", "is every address, and no peer can connect to it"),
        ("listen = '0.0.0.0:7070'\nadvertise = '0:7070'", "is every address, and no peer can connect to it"),
        ("advertise = '127.0.0.1:0'", "no peer can connect to port 0"),
        ("topics = 'tea'", "list of texts"),
        ("[protocol]\nresilience = 'three'", "protocol.resilience: must be a whole number"),
        ("[protocol]\nresilience = 0", "protocol.resilience: must be a whole number, 1 or more, not 0"),
        ("[protocol]\ngossip_period = 0", "number of seconds from 0.001"),
        ("[protocol]\ngossip_period = 1e-9", "number of seconds from 0.001"),
        ("[protocol]\naudit_period = nan", "protocol.audit_period: must be a number of seconds"),
        ("[protocol]\naudit_period = inf", "protocol.audit_period: must be a number of seconds"),
        ("[protocol]\nmax_links = -1", "protocol.max_links: must be a whole number, 0 or more, not -1"),
        ("[protocol]\nzone = 7", "protocol.zone: must be a text, not 7"),
        (f"[protocol]\nzone = '{'z' * 65}'", "protocol.zone 'zzz.*: must be printable, 64 letters at most"),
        ("[protocol]\nforbid = 'bob'", "protocol.forbid: must be a list of texts"),
        ("[protocol]\nforbid = ['bob b']", "node name 'bob b': must be .* without blanks"),
        ("name = 'ann'\n[protocol]\nforbid = ['bob', 'ann']", "protocol.forbid names 'ann': that is this node itself"),
        (f"[protocol]\nforbid = {[f'n{n}' for n in range(257)]}", "protocol.forbid names 257 nodes: 256 at most"),
        ("[protocol]\nsigma = 0.5", "protocol.sigma is 0.5: must be a number, 1 or more"),
        ("[protocol]\nrho = nan", "protocol.rho: must be a number, 0 or more, not nan"),
        ("[protocol.dissemination]\ntotal_window_bytes = 0", "protocol.dissemination.total_window_bytes: .* 1 or more"),
        ("[protocol.dissemination]\nstreams = 0", "protocol.dissemination.streams: .* 1 or more"),
        ("[limits]\njoin_timeout_s = inf", "limits.join_timeout_s: must be a number"),
        ("[limits]\nframe_bytes = 100000", "less than the largest publication"),
        ("[limits]\nframe_bytes = 2000000000", "limits.frame_bytes: 1073741824 at most"),
        ("engine = 'fast'", "one of lazy, soon, eager"),
        ("name = ", "not TOML"),
    ],
)
def test_a_settings_file_with_a_mistake_says_where(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "node.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=complaint):
        read_node_config(path)


@pytest.mark.parametrize(
    ("table", "former", "present", "value"),
    [
        ("protocol", "mend_rho", "repair_rho", 7.5),
        ("protocol.dissemination", "windows_bytes", "total_window_bytes", 1 << 22),
    ],
)
def test_a_setting_by_its_former_name_is_taken_with_a_warning(
    tmp_path: Path, table: str, former: str, present: str, value: float
) -> None:
    path = tmp_path / "node.toml"
    path.write_text(f"[{table}]\n{former} = {value}\n")
    with pytest.warns(DeprecationWarning, match=rf"{table}\.{former} is deprecated.* use {table}\.{present}"):
        config = read_node_config(path)
    settings = config.protocol if table == "protocol" else config.protocol.dissemination
    assert getattr(settings, present) == value
    path.write_text(f"[{table}]\n{former} = {value}\n{present} = {value}\n")
    with pytest.raises(InvalidInput, match=f"{former} is the former name of"):
        read_node_config(path)


def test_the_example_file_needs_no_warning_and_changes_no_default(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(files("omen.net").joinpath("node.toml").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_node_config(path) == NodeConfig(name="n1")


def test_the_rules_for_a_nodes_links_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text("[protocol]\nmax_links = 8\nzone = 'north'\nforbid = ['bob', 'ann', 'bob']\nsigma = 4\n")
    protocol = read_node_config(path).protocol
    places = tuple(sorted((place_of("ann"), place_of("bob"))))
    assert (protocol.link_rules, protocol.sigma) == (LinkRules(8, "north", places), 4.0)
    assert NodeConfig().protocol.link_rules is None
