"""Nodes as commands run them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from omen.net.observe.logs import LOGGER
from omen.net.running import prepare_node


def test_a_deprecated_setting_stands_in_the_log_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger(LOGGER)
    monkeypatch.setattr(logger, "handlers", list(logger.handlers))
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    path = tmp_path / "node.toml"
    path.write_text("name = 'n1'\n[protocol]\nmend_rho = 7.5\n")
    assert prepare_node(str(path)).protocol.repair_rho == 7.5
    assert 'warning n1: deprecated what="the setting protocol.mend_rho' in capsys.readouterr().err
