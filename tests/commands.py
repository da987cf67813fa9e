"""The command line as tests call it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omen.cli.main import main


def run(words: str, *more: object) -> int:
    return main([*words.split(), *map(str, more)])


def run_json(capsys: pytest.CaptureFixture[str], words: str, *more: object) -> Any:
    assert run(words, *more, "--json") in (0, 1)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1
    return json.loads(printed)
