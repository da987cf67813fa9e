"""Where other members may be found: addresses in the settings, lines of a file, each a name with any number of hosts.

Names are resolved and the file is looked at again at each try: what stands behind them may have moved.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from pathlib import Path

from omen.errors import InvalidInput
from omen.net.names import join_address, split_address

COMMENT = "#"


class SeedList:
    """The seeds of a node. `error`: why the file could not be read when it was last looked at."""

    def __init__(self, addresses: tuple[str, ...], path: str = "") -> None:
        self._addresses = addresses
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._in_file: tuple[str, ...] = ()
        self.error = ""

    def __bool__(self) -> bool:
        return bool(self._addresses or self._path)

    def set_addresses(self, addresses: tuple[str, ...], path: str = "") -> None:
        """Other settings are in force. Of another file nothing is known yet."""
        self._in_file = self._in_file if path == self._path else ()
        self._addresses, self._path, self._stamp, self.error = addresses, path, None, ""

    def current(self) -> tuple[str, ...]:
        """All of them now, each once. A file that cannot be read leaves those it named before."""
        if self._path:
            self._look_at_file()
        return tuple(dict.fromkeys((*self._addresses, *self._in_file)))

    def _look_at_file(self) -> None:
        try:
            state = Path(self._path).stat()
            stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
            if stamp != self._stamp:
                self._in_file = read_seeds(self._path)
                self._stamp = stamp
            self.error = ""
        except OSError as error:
            self.error = f"join_file {self._path}: {error.strerror}"
        except InvalidInput as error:
            self.error = str(error)


def read_seeds(path: str) -> tuple[str, ...]:
    """The addresses in a file, one per line; what follows a # is a comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not text: {error}") from error
    seeds = [line.partition(COMMENT)[0].strip() for line in lines]
    for number, seed in enumerate(seeds, start=1):
        if seed:
            split_address(seed, f"{path}:{number}")
    return tuple(filter(None, seeds))


async def resolve(seed: str) -> tuple[str, ...]:
    """The addresses behind a seed: a name may have several. Raises OSError where it has none."""
    host, port = split_address(seed)
    try:
        ipaddress.ip_address(host)
        return (seed,)
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(join_address(str(place[0]), int(place[1])) for *_, place in found))
