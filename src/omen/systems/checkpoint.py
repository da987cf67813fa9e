"""Where a long replay writes down how far it is, so that it can go on after being killed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from omen.churn import Trace
from omen.interests import Label
from omen.overlay import Overlay
from omen.systems.system import Surroundings
from omen.tables import replace_file

_FORMAT = 1
_COST = 20  # saving may take this small a share of the time


class Exceeded(NamedTuple):
    """A node that had more links than the rules of a fleet allow: the most it had, the place in the trace of the event
    after which it was so for the first time, and after how many events it was.
    """

    node: Label
    max_links: int
    most: int
    first: int
    events: int


class Saved(msgspec.Struct, rename={"splits": "broken"}):
    """How far a replay was: events handled, their rows by column, what the judge found, the state of the system."""

    format: int
    fingerprint: str
    position: int
    columns: dict[str, bytes]
    judged: int
    splits: list[tuple[int, int]]
    system: bytes
    exceeded: list[Exceeded] = []


@dataclass
class Found:
    """What was found so far: how often the judge was asked, (position, topics split) of each time that it found topics
    split, and the nodes that were above their caps.
    """

    judged: int = 0
    splits: list[tuple[int, int]] = field(default_factory=list)
    exceeded: dict[Label, Exceeded] = field(default_factory=dict)


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
        found: Found,
        system: Callable[[], bytes],
    ) -> None:
        """`system` gives the state of the system; what that takes counts as well."""
        started = time.monotonic()
        exceeded = list(found.exceeded.values())
        saved = Saved(
            _FORMAT, fingerprint, position, dict(columns), found.judged, list(found.splits), system(), exceeded
        )
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
    around: Surroundings, trace: Trace, overlay: Overlay | None, system: str, options: Mapping[str, Any], verify: str
) -> str:
    """What a replay is made from, in short: equal for equal inputs."""
    digest = hashlib.blake2b(digest_size=16)
    workload, within = around.workload, around.within
    for labels in (workload.nodes, workload.topics):
        digest.update(repr(labels.tolist()).encode())
    arrays = [workload.node_offsets, workload.node_topics]
    arrays += [] if overlay is None else [overlay.u, overlay.v]
    if within is not None:
        rules = within.rules
        digest.update(repr((within.sigma, rules.zone_names)).encode())
        arrays += [rules.caps, rules.zones, rules.zone_costs, rules.u, rules.v, rules.rule, rules.cost]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    for event in trace:
        digest.update(repr(event).encode())
    digest.update(repr((overlay is None, system, sorted(options.items()), verify)).encode())
    return digest.hexdigest()
