"""Worlds that were explored to their end, kept in a file: an exploration that was stopped goes on with the others."""

from __future__ import annotations

from pathlib import Path

import msgspec

from omen.sim.explore import Found
from omen.sim.scenario import Scenario
from omen.sim.writing import write_scenario


class KeptWorld(msgspec.Struct, frozen=True):
    """`world`: the scenario as it is written, so that no other is taken for it."""

    world: str
    budget: tuple[int, int]
    found: Found


class KeptWorlds:
    """One line for each world that was seen to its end without a failure; the others are explored again."""

    def __init__(self, path: Path | None, budget: tuple[int, int]) -> None:
        self._path = path
        self._budget = budget
        self._found: dict[str, Found] = {}
        if path is not None and path.exists():
            for line in path.read_bytes().splitlines():
                self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            kept = msgspec.json.decode(line, type=KeptWorld)
        except msgspec.DecodeError:  # the end of a line that was being written when the exploration was stopped
            return
        if kept.budget == self._budget:
            self._found[kept.world] = kept.found

    def find(self, world: Scenario) -> Found | None:
        return self._found.get(write_scenario(world))

    def add(self, world: Scenario, found: Found) -> None:
        if self._path is None or not found.complete or found.failure is not None:
            return
        line = msgspec.json.encode(KeptWorld(write_scenario(world), self._budget, found))
        with self._path.open("ab") as file:
            file.write(b"\n" + line + b"\n")
