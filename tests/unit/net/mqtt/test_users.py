"""Users and their passwords in a file."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from omen.cli.main import main
from omen.errors import InvalidInput
from omen.net.mqtt.users import Users, hash_password


def test_the_command_adds_and_changes_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "users"
    for name, password in (("ann", "one"), ("bob", "two"), ("ann", "three")):
        monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
        assert main(["keys", "user", name, "--out", str(path)]) == 0
    users = Users(path)
    assert users.knows("ann", b"three")
    assert users.knows("ann", b"three")  # remembered
    assert not users.knows("ann", b"one")
    assert users.knows("bob", b"two")
    assert not users.knows("eve", b"two")
    assert "three" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_that_changes_is_read_again_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# people\nann:{hash_password('a')}\n")
    users = Users(path)
    path.write_text(f"bob:{hash_password('b')}\n")
    os.utime(path, ns=(1, 1))
    assert users.knows("bob", b"b")
    assert not users.knows("ann", b"a")
    path.write_text("nonsense\n")
    assert users.knows("bob", b"b")
    with pytest.raises(InvalidInput, match=":1: must be NAME"):
        Users(path)
