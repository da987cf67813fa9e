"""Is this the same protocol, step by step, as another version of the code?

    python -m bench.traces --against PATH_OF_ITS_SRC [--worlds 200] [--publishing 20] [--twofold 20]

Each version reads the scenarios next to its own src, for keys may have been renamed; those that both have are compared.

Both versions run every scenario and the same random worlds, each in a process of its own, and the traces must be equal
line for line. A line is what a core was told or told the world, when and at which node. Messages stand in it as the
bytes they are on the wire, so that no name of a class matters; timers by their order; notifications by NOTIFICATIONS,
the one mapping between names of then and now.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

NOTIFICATIONS = {
    "step": "RepairStageEntered",
    "handled": "RepairFinished",
    "arrived": "RequestHandled",
    "lost": "PeerDeclaredFailed",
    "renewed": "Rejoined",
    "audit": "SplitTopicsLinked",
    "link": "LinkUp",
    "spared": "LinkPruned",
    "left": "Left",
    "deliver": "Deliver",
    "gap": "Gap",
    "held": "Held",
}
"""What version 0.1.0 called a notification, and what it is called since."""
REASONS = {"nobody there": "unreachable"}
"""Why a message does not arrive, likewise."""
SEVERAL_FIELDS = ("step", "handled", "audit", "deliver", "gap", "held")


def first_of(*modules: str) -> Any:
    """The first of these modules that this version has."""
    for name in modules:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(modules)


def plain(value: Any) -> Any:
    """A value without the names of classes: structs and dataclasses as lists of their fields."""
    if hasattr(value, "__struct_fields__"):
        return [plain(getattr(value, field)) for field in value.__struct_fields__]
    if hasattr(value, "__dataclass_fields__"):
        return [plain(getattr(value, field)) for field in value.__dataclass_fields__]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


class Tracer:
    """Digests what a world traces."""

    def __init__(self) -> None:
        self._encode = first_of("omen.protocol.messages.wire", "omen.protocol.frames").encode
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines = 0

    def __call__(self, time: int, node: int, what: Any) -> None:
        line = f"{time} {node} {self._describe(what)}\n"
        self._hash.update(line.encode())
        self.lines += 1

    def digest(self) -> str:
        return self._hash.hexdigest()

    def _describe(self, what: Any) -> str:
        kind = type(what).__name__
        if isinstance(what, str):
            return what
        if kind == "Received":
            return f"received {what.sender} {self._bytes(what.message)}"
        if kind == "Dropped":
            return f"dropped {what.to} {self._bytes(what.message)} {REASONS.get(what.why, what.why)}"
        if kind == "TimerFired":
            return "timer"
        if kind == "Notify":  # as version 0.1.0 had it
            detail = what.detail
            fields = plain(detail) if what.what in SEVERAL_FIELDS else [plain(detail)]
            return f"{NOTIFICATIONS[what.what]} {fields if detail is not None else []}"
        return f"{kind} {plain(what)}"

    def _bytes(self, message: Any) -> str:
        return message.hex() if isinstance(message, bytes) else self._encode(message).hex()


def trace(scenario: Any, seed: int, publishing: bool) -> tuple[int, str]:
    """How many lines a scenario's trace has, and their digest."""
    from omen.sim.publishing import PublishingRun
    from omen.sim.running import Run

    run = (PublishingRun if publishing else Run)(scenario, seed)
    tracer = Tracer()
    setattr(run.world, "tracer" if hasattr(run.world, "tracer") else "_trace", tracer)
    run.go()
    return tracer.lines, tracer.digest()


def dump(scenarios: Path, worlds: int, publishing: int, twofold: int) -> None:
    """A line for each scenario and world of the version that is imported."""
    from omen.sim.drawing import draw_beyond, draw_scenario, draw_within

    read_scenario = first_of("omen.sim.reading", "omen.sim.scenario").read_scenario
    for path in sorted(scenarios.glob("*.toml")):
        print(path.name, *trace(read_scenario(path), 7, False), flush=True)
    draws = {"within": draw_within, "beyond": draw_beyond, "plain": draw_scenario}
    for name, count in (("within", worlds * 3 // 5), ("beyond", worlds // 5), ("plain", worlds - worlds * 4 // 5)):
        for seed in range(count):
            print(name, seed, *trace(draws[name](seed), seed, False), flush=True)
    for seed in range(publishing):
        print("publishing", seed, *trace(draw_scenario(seed), seed, True), flush=True)
    if twofold:
        from omen.sim.drawing import draw_twofold  # not in every version

        for seed in range(twofold):
            print("twofold", seed, *trace(draw_twofold(seed), seed, False), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.traces", description=__doc__)
    parser.add_argument("--against", metavar="SRC", type=Path, help="the folder src of the other version")
    parser.add_argument("--scenarios", metavar="DIR", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worlds", metavar="N", type=int, default=200)
    parser.add_argument("--publishing", metavar="N", type=int, default=20, help="worlds in which nodes publish")
    parser.add_argument("--twofold", metavar="N", type=int, default=20, help="worlds at connectivity 2; 0: for 0.1.0")
    parser.add_argument("--dump", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.dump:
        dump(arguments.scenarios, arguments.worlds, arguments.publishing, arguments.twofold)
        return 0
    asked = {"--worlds": arguments.worlds, "--publishing": arguments.publishing, "--twofold": arguments.twofold}
    numbers = [word for name, count in asked.items() for word in (name, str(count))]
    command = [sys.executable, __file__, "--dump", *numbers, "--scenarios"]
    sources = [Path(__file__).resolve().parent.parent / "src", arguments.against.resolve()]
    running = [
        subprocess.Popen(
            [*command, str(source.parent / "scenarios")],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for source in sources
    ]
    found = [process.communicate()[0].splitlines() for process in running]
    named = [{" ".join(line.split()[:-2]): line for line in lines} for lines in found]
    both = named[0].keys() & named[1].keys()
    now, then = ([lines[name] for name in named[0] if name in both] for lines in named)
    differing = [f"{one}  |  {other}" for one, other in zip(now, then, strict=False) if one != other]
    print(*differing, sep="\n")
    steps = sum(int(line.split()[-2]) for line in now)
    print(
        f"{len(now)} runs, {steps:,} steps: {len(differing)} differ"
        + ("" if len(now) == len(then) else ", some missing")
    )
    return int(bool(differing) or len(now) != len(then) or any(process.returncode for process in running))


if __name__ == "__main__":
    sys.exit(main())
