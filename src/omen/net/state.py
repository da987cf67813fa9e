"""What a node leaves in a folder: its last incarnation, so that the next is higher, and where it can be found."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from omen.errors import CannotWrite

SUFFIX = ".json"


def path_of(folder: str | Path, name: str) -> Path:
    """The file of one node; a name may hold any printable character."""
    safe = "".join(char if char.isalnum() or char in "-_." else f"%{ord(char):x}" for char in name)
    return Path(folder) / f"{safe}{SUFFIX}"


def read_state(folder: str | Path, name: str) -> dict[str, Any]:
    """What was written last; empty where there is nothing, or nothing readable."""
    try:
        values = json.loads(path_of(folder, name).read_text())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def last_incarnation(folder: str | Path, name: str) -> int:
    """0: none is known."""
    state = read_state(folder, name) if folder else {}
    incarnation = state.get("incarnation", state.get("life", 0))  # `life`: as version 0.1.0 wrote it
    return incarnation if isinstance(incarnation, int) else 0


def write_state(folder: str | Path, name: str, values: dict[str, Any]) -> None:
    """Whole or not at all, with which process it was."""
    path = path_of(folder, name)
    process = {"pid": os.getpid(), "begun": begun_at(os.getpid())}
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(values | process))
        aside.replace(path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        raise CannotWrite(f"{path}: cannot keep the node's state there: {error.strerror}") from error


def read_states(folder: str | Path) -> list[dict[str, Any]]:
    """All nodes that left something in a folder, by name."""
    found = []
    for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
        try:
            values = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(values, dict) and "name" in values:
            found.append(values)
    return found


def is_running(state: dict[str, Any]) -> bool:
    """Whether the process a node wrote its state from is still that process."""
    pid = state.get("pid")
    if not isinstance(pid, int):
        return False
    begun = begun_at(pid)
    return begun is not None and begun == state.get("begun", begun)


def begun_at(pid: int) -> int | None:
    """When a process began, as the kernel counts; None where there is none or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(pid, 0)
        except OSError:
            return None
        return 0
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
