"""Compile all kernels ahead of time: python -m omen.kernels."""

from __future__ import annotations

from omen.kernels import compile_all, module_names

names = module_names()
total = 0.0
for done, (name, seconds) in enumerate(compile_all(), start=1):
    total += seconds
    print(f"kernels {done}/{len(names)}: {name} {seconds:.1f} s", flush=True)
print(f"{len(names)} kernel modules ready in {total:.1f} s")
