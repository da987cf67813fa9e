"""Where a long replay writes down how far it is, so that it can go on after being killed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omen.churn import Trace
from omen.interests import Interests
from omen.overlay import Overlay
from omen.tables import replace_file

_FORMAT = 1
_COST = 20  # saving may take this small a share of the time


class Saved(msgspec.Struct, rename={"splits": "broken"}):
    """How far a replay was: events handled, their rows by column, what the judge found, the state of the system."""

    format: int
    fingerprint: str
    position: int
    columns: dict[str, bytes]
    judged: int
    splits: list[tuple[int, int]]
    system: bytes


class Checkpoint:
    """A file that is replaced now and then while a replay runs, and is removed when it ends.

    One that belongs to another replay (other inputs or options) or to another user, or that cannot be read, is not gone
    on from, nor removed unless it was replaced.
    """

    def __init__(self, path: str | Path, every_s: float) -> None:
        self.path = Path(path)
        self.every_s = every_s
        self._last = time.monotonic()
        self._cost = 0.0
        self._ours = False

    def load(self, fingerprint: str) -> Saved | None:
        try:
            if hasattr(os, "getuid") and self.path.stat().st_uid != os.getuid():
                return None
            saved = msgspec.msgpack.decode(self.path.read_bytes(), type=Saved)
        except (OSError, msgspec.DecodeError):
            return None
        if (saved.format, saved.fingerprint) != (_FORMAT, fingerprint):
            return None
        self._ours = True
        return saved

    @property
    def due(self) -> bool:
        return time.monotonic() - self._last >= max(self.every_s, _COST * self._cost)

    def save(
        self,
        fingerprint: str,
        position: int,
        columns: Mapping[str, bytes],
        judged: int,
        splits: Iterable[tuple[int, int]],
        system: Callable[[], bytes],
    ) -> None:
        """`system` gives the state of the system; what that takes counts as well."""
        started = time.monotonic()
        saved = Saved(_FORMAT, fingerprint, position, dict(columns), judged, list(splits), system())
        with replace_file(self.path) as aside:
            aside.write_bytes(msgspec.msgpack.encode(saved))
        self._ours = True
        self._last = time.monotonic()
        self._cost = self._last - started

    def remove(self) -> None:
        """Take the file away if this replay wrote it or went on from it."""
        if self._ours:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def fingerprint(
    workload: Interests, trace: Trace, overlay: Overlay | None, system: str, options: Mapping[str, Any], verify: str
) -> str:
    """What a replay is made from, in short: equal for equal inputs."""
    digest = hashlib.blake2b(digest_size=16)
    for labels in (workload.nodes, workload.topics):
        digest.update(repr(labels.tolist()).encode())
    arrays = [workload.node_offsets, workload.node_topics]
    arrays += [] if overlay is None else [overlay.u, overlay.v]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    for event in trace:
        digest.update(repr(event).encode())
    digest.update(repr((overlay is None, system, sorted(options.items()), verify)).encode())
    return digest.hexdigest()
