"""Compile kernels ahead of time: python -m omen.kernels [MODULE ...], all of them where none is named."""

from __future__ import annotations

import os
import sys
import time

from omen.kernels.building import compile_all, compile_some, module_names

GENTLY = 10  # named modules are compiled for a process that goes on meanwhile


def main(names: list[str]) -> None:
    started = time.perf_counter()
    if names:
        os.nice(GENTLY)
    count = len(names or module_names())
    for done, (name, seconds) in enumerate(compile_some(names) if names else compile_all(), start=1):
        print(f"kernels {done}/{count}: {name} {seconds:.1f} s", flush=True)
    print(f"{count} kernel modules ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
