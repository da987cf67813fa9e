"""Outputs appear whole or not at all: they are written aside, then put in place by a rename."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omen.errors import CannotWrite
from omen.tables.parts import SUFFIXES, shown

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Hands out a path to write to; on leaving without an error that file takes the place of `path`."""
    target = _real_path(path)
    with _explain(path):
        if target.is_dir():
            raise CannotWrite(f"{shown(path)}: is a folder: name a file to write")
        if target.exists() and not target.is_file():
            raise CannotWrite(f"{shown(path)}: is not a regular file")
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = _sibling(target, "new")
        try:
            yield aside
            aside.replace(target)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


def replace_folder(path: str | Path, marker: str, tables: Collection[str], fill: Callable[[Path], None]) -> None:
    """Write a folder by `fill` and put it in the place of `path`.

    A folder in that place is replaced if it is empty or holds `marker`, a file that all our outputs of that kind have.
    What stands in it that is neither the marker nor one of our `tables` is the user's, and moves over.
    """
    require_replaceable(path, marker)
    target = _real_path(path)
    with _explain(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = _sibling(target, "new")
        try:
            aside.mkdir()
            fill(aside)
            old = _swap(aside, target) if target.is_dir() else aside.rename(target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        if old != target:
            own = {marker, *(table + suffix for table in tables for suffix in ("", *SUFFIXES))}
            for entry in sorted(old.iterdir()):
                if entry.name not in own:
                    entry.rename(target / entry.name)
            shutil.rmtree(old)


def require_replaceable(path: str | Path, marker: str) -> None:
    """Refuse a path that `replace_folder` would: for callers that must know before a long computation."""
    target = _real_path(path)
    with _explain(path):
        if target.exists() and not target.is_dir():
            raise CannotWrite(f"{shown(path)}: is a file: name a folder to write")
        if target.is_dir() and any(target.iterdir()) and not (target / marker).is_file():
            raise CannotWrite(f"{shown(path)}: is not empty and has no {marker}: left as it is, name another folder")


def _swap(new: Path, target: Path) -> Path:
    """Put `new` in the place of the folder `target`; where the old one is then.

    In one step where the system can (Linux), so that there is no moment without a folder in that place.
    """
    if _exchange(new, target):
        return new
    old = _sibling(target, "old")
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    try:
        exchange = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    return bool(exchange(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _sibling(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name[:100]}.{what}-{secrets.token_hex(4)}")


def _real_path(path: str | Path) -> Path:
    """Where links lead to: what they point at is replaced, not they."""
    try:
        target = Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise CannotWrite(f"{shown(path)}: cannot be written: {shown(error)}") from None
    if not target.name:
        raise CannotWrite(f"{shown(path)}: is not a place to write to")
    return target


@contextmanager
def _explain(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotWrite(f"{shown(path)}: cannot be written: {shown(reason)}") from None
