"""What made a result: versions and the machine, as far as they matter for repeating it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("omen-overlay", "numpy", "numba", "pyarrow", "pyspark", "matplotlib", "scipy")


def versions() -> dict[str, str]:
    """Of Python and the packages that compute."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """Cores, memory and system. No names: results are published."""
    return {
        "system": f"{platform.system()} on {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "memory_gib": _memory_gib(),
    }


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
