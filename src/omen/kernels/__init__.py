"""The fast parts: arrays in, arrays out. A module's kernels are compiled, or taken from the cache, when it is imported.

`python -m omen.kernels` compiles all of them ahead of time.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Iterator


def module_names() -> list[str]:
    """The modules of this package that hold kernels."""
    return sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("compiling", "__main__")
    )


def compile_all() -> Iterator[tuple[str, float]]:
    """Compile the kernels of one module after the other; yields its name and the seconds it took."""
    from omen.kernels import compiling

    compiling.announce(None)
    for name in module_names():
        started = time.perf_counter()
        importlib.import_module(f"{__name__}.{name}")
        yield name, time.perf_counter() - started
