"""omen cluster, as far as no node is started; tests/network has the rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commands import run


def test_tls_asks_for_cryptography_before_anything_is_designed_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "cryptography.x509", raising=False)
    assert run("cluster up --tls --workload", tmp_path / "nowhere", "--state", tmp_path / "c") == 2
    told = capsys.readouterr().err
    assert "omen-overlay[keys]" in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "c").exists()
