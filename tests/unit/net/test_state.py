"""What a node leaves in a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omen.errors import CannotWrite
from omen.net.state import is_running, last_incarnation, path_of, read_states, write_state


def test_a_state_is_found_again_with_the_process_that_wrote_it(tmp_path: Path) -> None:
    write_state(tmp_path, "a/b", {"name": "a/b", "incarnation": 7})
    (state,) = read_states(tmp_path)
    assert (state["name"], state["pid"], is_running(state)) == ("a/b", os.getpid(), True)
    assert last_incarnation(tmp_path, "a/b") == 7
    assert not is_running({**state, "begun": state["begun"] - 1}), "another process has its number now"


def test_a_state_that_the_last_release_wrote_still_counts(tmp_path: Path) -> None:
    path_of(tmp_path, "n1").write_text(json.dumps({"name": "n1", "life": 41}))
    assert last_incarnation(tmp_path, "n1") == 41


@pytest.mark.parametrize("text", ["", "[]", "{", '{"incarnation": "x"}'])
def test_a_state_that_cannot_be_read_is_as_none(tmp_path: Path, text: str) -> None:
    path_of(tmp_path, "n1").write_text(text)
    assert last_incarnation(tmp_path, "n1") == last_incarnation("", "n1") == last_incarnation(tmp_path, "n2") == 0


def test_a_state_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="cannot keep the node's state"):
        write_state(tmp_path / "file", "n1", {})
