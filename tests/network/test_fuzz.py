"""The fuzzer itself: each decoder has a target, and what is found is told, whichever engine found it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.network import fuzz
from tests.network.fuzz_decoders import DECODERS
from tools.soak import FUZZED

from omen.net.mqtt import records, stored
from omen.protocol.messages.publications import read_fields
from omen.protocol.messages.records import Record

ROOT = Path(__file__).parents[2]
NO_TEXT = b"\xa2\xcf\xff"
ENDS_WITHOUT_A_WORD = """
import os
def instrument_func(function): return function
def Setup(arguments, one): globals()["one"] = one
def Fuzz():
    one(bytes(5))
    os._exit(0)
"""


def test_each_target_is_soaked_and_takes_mutated_samples() -> None:
    assert set(FUZZED) == set(fuzz.TARGETS) and set(DECODERS) < set(FUZZED)
    campaign = fuzz.Campaign("own", None)
    fuzz.run_own(campaign, 0.01, 7, tuple(DECODERS))
    assert not campaign.findings.seen and set(campaign.inputs) == set(DECODERS)


def test_text_that_is_none_is_unreadable_and_no_error_of_another_kind() -> None:
    """Before: a member's publication whose header is no text raised in those it was delivered to, and took the
    deliveries behind it along.
    """
    with pytest.raises(msgspec.DecodeError):
        read_fields(b"\x81\x04" + NO_TEXT)
    with pytest.raises(msgspec.DecodeError):
        read_fields(b"\x81\x01" + b"\x91" * 60_000)
    assert records.read_record(msgspec.msgpack.encode(["x"])[:0] + b"\x82\xa4type\x03\xa4node" + NO_TEXT) is None
    head = msgspec.msgpack.encode(stored.SessionHead("c", "n1", True, 5, None)).replace(b"\xa2n1", NO_TEXT)
    assert stored.read_head(Record(1, stored.head_key("c"), 1, 2, head, 5)) is None


def test_a_finding_ends_the_fuzzer_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fuzz.main(["--engine", "own", "--seconds", "0.01", "--target", "state"]) == 0

    def fail(_: bytes) -> str:
        raise ZeroDivisionError

    monkeypatch.setitem(fuzz.TARGETS, "state", fail)
    assert fuzz.main(["--engine", "own", "--seconds", "0.01", "--target", "state"]) == 1


def test_what_atheris_finds_is_told_though_it_ends_the_process_without_a_word(tmp_path: Path) -> None:
    """Before: exit code 0 and nothing printed, whatever was found."""
    (tmp_path / "atheris.py").write_text(ENDS_WITHOUT_A_WORD)
    (tmp_path / "sitecustomize.py").write_text("import omen.net.state as state\nstate.path_of = lambda *_: 1 / 0\n")
    path = os.pathsep.join(map(str, (tmp_path, ROOT / "src", ROOT / "tests", ROOT)))
    command = [sys.executable, "-m", "tests.network.fuzz", "--engine", "atheris", "--target", "state"]
    environment = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(
        [*command, "--corpus", str(tmp_path / "corpus")], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 1 and "1 findings" in run.stdout.splitlines()[-1]
