"""Compile all kernels ahead of time: python -m omen.kernels."""

from __future__ import annotations

import time

from omen.kernels.building import compile_all, module_names


def main() -> None:
    started = time.perf_counter()
    count = len(module_names())
    for done, (name, seconds) in enumerate(compile_all(), start=1):
        print(f"kernels {done}/{count}: {name} {seconds:.1f} s", flush=True)
    print(f"{count} kernel modules ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
