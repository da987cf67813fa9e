"""Who may come in by the front door: user names and passwords, hashed, in a file that is read again when it changes."""

from __future__ import annotations

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from omen.errors import CannotWrite, InvalidInput

_COST, _BLOCK, _PARALLEL = 1 << 12, 8, 1


def hash_password(password: str) -> str:
    """What stands in the file behind `name:`."""
    salt = os.urandom(16)
    return f"scrypt${salt.hex()}${_digest(password.encode(), salt).hex()}"


def _digest(password: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL, dklen=32)


def write_user(path: str | Path, name: str, password: str) -> None:
    """Add a user to a file, or replace its line. Only the owner may read the file."""
    if not name or ":" in name or not name.isprintable() or not password:
        raise InvalidInput(f"user {name[:40]!r}: needs a printable name without a colon, and a password")
    target = Path(path)
    try:
        lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
        kept = [line for line in lines if line.partition(":")[0] != name]
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(target.name + ".new")
        aside.touch(mode=0o600)
        aside.write_text("\n".join([*kept, f"{name}:{hash_password(password)}", ""]), encoding="utf-8")
        aside.replace(target)
    except OSError as error:
        raise CannotWrite(f"{path}: the users of MQTT cannot be written: {error.strerror or error}") from None


class Users:
    """The users in a file, one per line as `name:hash`. What was right is remembered: hashing is slow."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._read_at = 0
        self._hashes: dict[str, tuple[bytes, bytes]] = {}
        self._seen: dict[str, bytes] = {}
        self.read()

    def read(self) -> None:
        """InvalidInput: it cannot be read, or a line is not of that form. What was read before stays then."""
        try:
            changed_at = self._path.stat().st_mtime_ns
            if changed_at == self._read_at:
                return
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            cause = getattr(error, "strerror", None) or error
            raise InvalidInput(f"{self._path}: the users of MQTT cannot be read: {cause}") from None
        hashes = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, rest = line.strip().partition(":")
            parts = rest.split("$")
            try:
                if not name or len(parts) != 3 or parts[0] != "scrypt":
                    raise ValueError
                hashes[name] = (bytes.fromhex(parts[1]), bytes.fromhex(parts[2]))
            except ValueError:
                raise InvalidInput(f"{self._path}:{number}: must be NAME:scrypt$SALT$HASH (omen keys user)") from None
        self._hashes, self._seen, self._read_at = hashes, {}, changed_at

    def knows(self, name: str, password: bytes) -> bool:
        with suppress(InvalidInput):  # while it is being written the former one counts
            self.read()
        known = self._hashes.get(name)
        if known is None:
            return False
        quick = hashlib.blake2b(password, key=known[0]).digest()
        if hmac.compare_digest(self._seen.get(name, b""), quick):
            return True
        if not hmac.compare_digest(_digest(password, known[0]), known[1]):
            return False
        self._seen[name] = quick
        return True
