"""How every kernel is compiled: one signature each, given up front, kept in numba's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(signature: str | None = None) -> Callable[[Kernel], Kernel]:
    """Compile a function for one signature at import, or, without one, as a helper inlined into its callers' types."""

    def compile_kernel(function: Kernel) -> Kernel:
        options = {"cache": True, "nogil": True, "boundscheck": False}
        kernel: Kernel = numba.njit(signature, **options)(function) if signature else numba.njit(**options)(function)
        return kernel

    return compile_kernel
