"""Alerts of TLS: taken from a handshake that fails, and put into words at the end they were meant for."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from omen.net.security.alerts import BANNED, CROWDED, alert_in, refused_by_alert, turning_away
from omen.net.security.credentials import Contexts, Credentials, explain
from omen.net.security.hello import Reason, Refused, read_hello
from omen.net.security.key_files import make_cluster_keys, security_from


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        make_cluster_keys(folder / name, "omen", ["ann"], 30)
    return folder


def contexts_of(keys: Path, shown: str, believed: str) -> Contexts:
    security = replace(security_from(keys / shown, "ann"), authorities=(str(keys / believed / "ca.pem"),))
    contexts = Credentials(security).contexts
    assert contexts is not None
    return contexts


def error_of(end: ssl.SSLObject) -> ssl.SSLError | None:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return None
    except ssl.SSLError as error:
        return error
    return None


def test_the_end_that_dialled_hears_why_its_certificate_is_refused_although_it_is_connected(keys: Path) -> None:
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts_of(keys, "ours", "ours").server.wrap_bio(inward, outward, server_side=True)
    client = contexts_of(keys, "theirs", "ours").client.wrap_bio(outward, inward)
    assert error_of(client) is None and error_of(server) is None
    assert error_of(client) is None, "TLS 1.3: connected, for all it knows"
    found = error_of(server)
    assert isinstance(found, ssl.SSLCertVerificationError) and explain(found).reason is Reason.CERTIFICATE
    assert outward.pending == 0, "taken out, to be sent on the socket"
    outward.write(alert_in(found))
    with pytest.raises(ssl.SSLError) as told:
        client.read(10)
    refusal = explain(told.value)
    assert str(refusal).endswith("it does not believe the authority of this node's certificate")
    assert (refusal.reason, refusal.by_peer) == (Reason.CERTIFICATE, True)


@pytest.mark.parametrize(
    ("record", "reason", "words"),
    [
        (BANNED, Reason.BANNED, "banned there for a while"),
        (CROWDED, Reason.CONNECTION_LIMIT, "takes no more connections now"),
    ],
)
def test_one_turned_away_reads_why_in_place_of_a_handshake(
    keys: Path, record: bytes, reason: Reason, words: str
) -> None:
    refusal = Refused("at the door", reason)
    assert turning_away(refusal, encrypted=True) == record
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = contexts_of(keys, "ours", "ours").client.wrap_bio(outward, inward)
    assert error_of(client) is None
    outward.write(record)
    found = error_of(client)
    assert found is not None
    said = explain(found)
    assert said.said is reason and words in str(said)
    with pytest.raises(Refused, match="at the door") as told:
        read_hello(turning_away(refusal, encrypted=False))
    assert told.value.said is reason


def test_alerts_without_words_of_their_own_are_told_as_they_are() -> None:
    error = ssl.SSLError(1, "x")
    error.reason = "TLSV13_ALERT_MISSING_EXTENSION"
    refusal = refused_by_alert(error)
    assert refusal is not None and "missing extension" in str(refusal)
    error.reason = "WRONG_VERSION_NUMBER"
    assert refused_by_alert(error) is None


@pytest.mark.parametrize("begins", [BANNED, bytes.fromhex("1603010200")])
def test_a_node_without_certificates_says_so_where_the_other_has_some(begins: bytes) -> None:
    with pytest.raises(Refused, match="the other end uses certificates, and this node does not"):
        read_hello(begins)
