"""How every kernel is compiled: one signature each, given up front, kept in numba's cache.

A kernel is loaded from the cache, or compiled, when its module is imported. numba's own cache knows a kernel by the
text of its own module; ours also by the text of every kernel module it takes helpers from, so that a changed helper is
never answered with machine code that still holds the old one.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

COLD_SECONDS = 45  # all kernels on two cores of 2020s hardware; said to a user who has to wait for it

_HERE = Path(__file__).parent
_IMPORT = re.compile(rb"^\s*from omen\.kernels(?:\.(\w+) import| import (\([^)]*\)|.+))", re.MULTILINE)
_told = False


def compiled(signature: str | None = None) -> Callable[[Kernel], Kernel]:
    """Compile a function for one signature at import, or, without one, as a helper inlined into its callers' types."""

    def compile_kernel(function: Kernel) -> Kernel:
        kernel: Any = numba.njit(nogil=True, no_cfunc_wrapper=True)(function)
        try:
            kernel._cache = _KernelCache(function)
        except RuntimeError:  # no place to keep it: neither beside the module nor in the user's cache folder
            announce("compiling kernels; they cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written")
        if signature:
            kernel.compile(signature)
            kernel.disable_compile()
        result: Kernel = kernel
        return result

    return compile_kernel


def announce(line: str | None) -> None:
    """Say once in a process, on stderr, that the compiler takes a while. None: the user was told already."""
    global _told
    if not _told and line is not None:
        print(f"omen: {line}", file=sys.stderr, flush=True)
    _told = True


class _KernelCache(FunctionCache):  # type: ignore[misc]  # numba carries no types
    """numba's cache, that tells when it has to compile and knows the modules a kernel takes its helpers from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._impl.locator.get_cache_path(),
            filename_base=self._impl.filename_base,
            source_stamp=_stamp(Path(function.__code__.co_filename)),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # a damaged cache entry is one that is not there
            found = None
            with suppress(OSError):
                self.flush()
        if found is None:
            announce(f"compiling kernels for this machine, once: about {COLD_SECONDS} s")
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(
            OSError
        ):  # disk full or folder gone: the kernel works all the same, and is compiled again next time
            super().save_overload(sig, data)


def imported_modules(module: Path) -> set[str]:
    """The names of the kernel modules that a module imports, by its text."""
    found = _IMPORT.findall(module.read_bytes())
    return {name.decode() for one, several in found for name in re.findall(rb"\w+", one or several)}


@cache
def _stamp(module: Path) -> str:
    """What the machine code of a module's kernels depends on, apart from numba and the processor."""
    seen: set[Path] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            waiting.extend(_HERE / f"{name}.py" for name in imported_modules(path))
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for path in sorted(seen):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
