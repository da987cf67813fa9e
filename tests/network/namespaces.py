"""Two networks on one machine with a cable between them that can be pulled: network namespaces, where there are any."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
SIDES = ("a", "b")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cable:
    """Each side has an address of its own that it reaches without the cable: 10.77.1.1 and 10.77.2.1."""

    def __init__(self) -> None:
        self._names = {side: f"omen-{os.getpid()}-{side}" for side in (*SIDES, "middle")}

    def address_of(self, side: str) -> str:
        return f"10.77.{1 + SIDES.index(side)}.1"

    def lay(self) -> None:
        middle = self._names["middle"]
        for name in self._names.values():
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", middle, "link", "add", "bridge", "type", "bridge")
        _ip("-n", middle, "link", "set", "bridge", "up")
        for number, side in enumerate(SIDES, 1):
            name = self._names[side]
            _ip("-n", name, "link", "add", "cable", "type", "veth", "peer", "name", f"to-{side}", "netns", middle)
            _ip("-n", name, "addr", "add", f"{self.address_of(side)}/32", "dev", "lo")
            _ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
            _ip("-n", middle, "link", "set", f"to-{side}", "master", "bridge", "up")
        for number, side in enumerate(SIDES, 1):
            other = SIDES[2 - number]
            way = ("via", f"10.77.0.{3 - number}", "src", self.address_of(side))
            _ip("-n", self._names[side], "route", "add", f"{self.address_of(other)}/32", *way)

    def cut(self) -> None:
        """Nothing comes through any more, and no node is told: packets vanish."""
        _ip("-n", self._names["middle"], "link", "set", "to-b", "down")

    def heal(self) -> None:
        _ip("-n", self._names["middle"], "link", "set", "to-b", "up")

    def enter(self, side: str) -> None:
        """Move this process to one side."""
        with Path(f"/run/netns/{self._names[side]}").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "cannot enter a network namespace")

    def remove(self) -> None:
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextmanager
def laid_cable() -> Iterator[Cable | None]:
    """A cable, or None where this machine does not allow it."""
    cable = Cable()
    try:
        try:
            cable.lay()
        except (OSError, subprocess.CalledProcessError):
            yield None
            return
        yield cable
    finally:
        cable.remove()
