"""omen compile: the kernels, ahead of time."""

from __future__ import annotations

import argparse
import time
from typing import Any

from omen.cli.output import print_json, say

EPILOG = "example:\n  omen compile\n"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compile",
        help="compile the kernels for this machine, so that no later command has to",
        description="Compile the kernels for this machine. Does nothing that is done already.",
        epilog=EPILOG,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=compile_kernels)


def compile_kernels(arguments: argparse.Namespace) -> int:
    from omen.kernels.building import compile_all, module_names

    started = time.perf_counter()
    names = module_names()
    seconds: dict[str, float] = {}
    for name, took in compile_all():
        seconds[name] = round(took, 3)
        say(f"kernels {len(seconds)}/{len(names)}: {name} {took:.1f} s")
    if arguments.json:
        print_json({"modules": seconds, "compile_s": round(time.perf_counter() - started, 3)})
    else:
        print(f"{len(names)} kernel modules ready in {time.perf_counter() - started:.1f} s")
    return 0
