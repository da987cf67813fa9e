"""Long runs of what the tests hold in small: python -m tools.soak PART [RUN]... [--again] [--list]

Each run is a command that anybody can give alone. Its output goes to build/soak, and one record of it (commit, command,
time, verdict) to bench/results/soak.jsonl, from which docs/soak.md is written. A run that has gone well at this commit
is not made again, so a soak that was interrupted goes on where it was. They take minutes to hours, and measure time:
nothing else should run beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "bench" / "results" / "soak.jsonl"
PAGE = ROOT / "docs" / "soak.md"
OUTPUT = ROOT / "build" / "soak"
SUMS = ("lost", "told", "silent", "duplicated", "disordered", "swollen")
"""Of runs that print one JSON object each: what is added up."""
WORST = (
    "longest_s",
    "edge_s",
    "joined_edge_s",
    "late_p99_ms",
    "window_mb",
    "memory_mb",
    "affected_p99_ms",
    "longest_ms",
    "goal_ms",
)
"""And of what the highest is told."""
COUNTED = re.compile(r"(lost|duplicated|out of order|gaps told) \d+")
"""Lines of a verdict that is printed as text (`tests/network/verdict.py`)."""
TAIL = 160
"""Characters of the last line that a record keeps, where a run prints text."""

BUSY = "network.busy --case {case} {load}"
HOUR_OF_KILLS = "--minutes 60 --kills 500 --fewest 2 --longest 75 --stops 40 --stop-seconds 8"
CHURN = ("kill", "join", "restart")
FUZZED = (
    *("hello", "frame", "core", "signed", "fields"),
    *("watching", "mqtt-packets", "mqtt-records", "http", "state"),
)
"""The targets of `tests.network.fuzz`: one for each decoder."""


def _busy(load: str, name: str) -> dict[str, str]:
    return {f"{case}-{name}": BUSY.format(case=case, load=load) for case in CHURN}


def _search(worlds: str, seeds: str, words: str = "") -> str:
    return f"omen.cli simulate --search --worlds {worlds} --seeds {seeds} --workers 2 {words}".strip()


def _fuzz(target: str) -> str:
    return f"tests.network.fuzz --engine atheris --seconds 600 --target {target} --corpus build/corpus/{target}"


def _stalls(nodes: int, connectivity: int, words: str) -> str:
    return f"tests.network.stalls --nodes {nodes} --connectivity {connectivity} {words}"


PARTS: Mapping[str, Mapping[str, str]] = {
    "busy": {
        **_busy("--rate 1000 --times 10", "1000"),
        **_busy("--rate 20 --topics 30 --times 10", "topics"),
        **_busy("--rate 5000 --times 10", "5000"),
        **_busy("--rate 500 --payload 10000 --times 10", "10kb"),
        "burst-1mib": "network.busy --case burst --rate 0 --payload 1048576 --count 400 --times 4",
        "burst-20kb": "network.busy --case burst --rate 0 --payload 20000 --count 20000 --times 8",
        "limit-rate": "network.busy --limit rate --rate 5000",
        "limit-topics": "network.busy --limit topics --rate 5000",
        "limit-bytes": "network.busy --limit bytes --rate 5000000",
        "chaos": "network.busy_chaos --minutes 10 --kills 60",
        "chaos-small-windows": "network.busy_chaos --minutes 2 --kills 12 --window-bytes 200000",
        "worlds": _search("busy", "80000..81999"),
        "worlds-cramped": _search("cramped", "80000..80299"),
        "neighbourhoods": "tests.simulation.neighbourhoods --count 2000",
    },
    "worlds": {
        "reported": _search("within", "900000..901999"),
        **{f"within-{n}": _search("within", f"400{n}0000..400{n}9999") for n in range(10)},
        "beyond": _search("beyond", "40000000..40004999"),
        "twofold": _search("twofold", "980000..980299"),
        "dispensable": "tests.simulation.dispensable --count 100",
        "explore-3": "omen.cli simulate --explore --nodes 3 --events 2 --delays 3 --seconds 3600 --workers 2",
        "explore-4": "omen.cli simulate --explore --nodes 4 --events 2 --delays 2 --seconds 3600 --workers 2",
    },
    "cluster": {
        "cold-3": "tests.network.cold_starts --nodes 3 --times 50 --seed 1",
        "cold-5": "tests.network.cold_starts --nodes 5 --times 50 --seed 1",
        "cold-20": "tests.network.cold_starts --nodes 20 --times 50 --seed 1",
        "cut": "tests.network.cutting --seconds 660 --after 40 --rate 16",
        "cuts-compressed": "tests.network.cutting --seconds 0.6 6.6 18 --faster 100 --after 8",
        "idle": "bench.idle --nodes 20 --seconds 60",
        "upgrade": "tests.network.upgrading --nodes 12 --topics 50 --rate 500",
        "restart": "tests.network.upgrading --nodes 12 --topics 50 --rate 500 --before here",
        "everything": "tests.network.everything --nodes 12 --minutes 60",
    },
    "chaos": {
        "kills": f"tests.network.chaos --nodes 40 {HOUR_OF_KILLS}",
        "leave-and-crash": "tests.network.leave_and_crash --rounds 200",
    },
    "sieges": {
        **{
            attack: f"tests.network.sieges --attack {attack}"
            for attack in ("storm", "descriptors", "changing", "dials", "nonsense", "streams", "errands", "hellos")
        },
        "many-topics": "tests.network.many_topics",
        "mutated-messages": "tests.simulation.hostile --messages 1000000",
    },
    "fuzz": {target: _fuzz(target) for target in FUZZED},
    "stalls": {
        **{f"killed-{n}-k{k}": _stalls(n, k, "--times 20") for n in (16, 40) for k in (1, 2)},
        **{f"frozen-{n}-k{k}": _stalls(n, k, "--times 6 --freeze 12") for n in (16, 40) for k in (1, 2)},
    },
    "mqtt": {
        "chaos": "tests.network.mqtt_chaos --nodes 12 --clients 300 --seconds 600 --kills 3",
        "restart": "tests.network.mqtt_chaos --nodes 12 --clients 300 --seconds 120 --restart",
        "fuzz": "tests.network.fuzz_mqtt --seconds 3600",
    },
    "page": {
        "leaks": "bench.live_page leaks --nodes 100 --seconds 3600",
        "real-leaks": "bench.live_page real-leaks --nodes 8 --seconds 3600",
    },
}
"""By part and name: what is given to `python -m`. Seeds are in the commands, or are the defaults of these."""


NOT_RUN = ("pipeline", "report", "sweep")
"""Rooms that no run loads: a change there leaves what was recorded true."""
NOT_SIMULATED = (*NOT_RUN, "systems", "net", "mqtt", "web", "cli")
"""And those that no simulated world loads, but for the words of a command line."""
SIMULATED = ("worlds",)
"""The parts whose runs are simulated worlds alone."""


def places(part: str) -> tuple[str, ...]:
    """What the runs of a part load, for git."""
    rooms = NOT_SIMULATED if part in SIMULATED else NOT_RUN
    scripts = ("tests/simulation",) if part in SIMULATED else ("tests/network", "tests/simulation", "bench/*.py")
    return ("src", *(f":(exclude)src/omen/{room}" for room in rooms), *scripts, ":(exclude,glob)**/test_*.py")


@dataclass(frozen=True)
class Record:
    """One run. `commit`: the last one that changed what is run; with a + where the tree differed from it."""

    part: str
    run: str
    command: str
    commit: str
    date: str
    minutes: float
    load: float
    status: int
    result: str

    @property
    def went_well(self) -> bool:
        return self.status == 0


def summarise(lines: Sequence[str]) -> str:
    """What a run came to: sums over the objects it printed, or what its verdict counts and the end of its last line."""
    told = [line for line in lines if line.strip()]
    objects = [json.loads(line) for line in told if line.startswith("{")]
    sums = {
        name: sum(each[name] for each in objects if each.get(name))
        for name in SUMS
        if any(name in each for each in objects)
    }
    if sums:
        told_of = ((name, [each[name] for each in objects if each.get(name)]) for name in WORST)
        sums |= {f"highest {name}": max(values) for name, values in told_of if values}
        counted = ", ".join(f"{name} {total:g}" for name, total in sums.items())
        return f"{len(objects)} run{'s' if len(objects) > 1 else ''}: {counted}"
    counts = [line.strip() for line in told[:-1] if COUNTED.fullmatch(line.strip())]
    return "; ".join([*counts, told[-1].strip()[-TAIL:]]) if told else "nothing printed"


def read_records(path: Path = RECORDS) -> list[Record]:
    if not path.exists():
        return []
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def code_now(part: str) -> str:
    """The last commit that changed what the runs of a part load."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()

    commit = git("log", "-1", "--format=%h", "--", *places(part))
    return commit + ("+" if git("status", "--porcelain", "--", *places(part)) else "")


def run_one(part: str, name: str, commit: str) -> Record:
    command = PARTS[part][name]
    output = OUTPUT / part / f"{name}.txt"
    output.parent.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(str(ROOT / place) for place in ("src", "tests", "."))
    begun, moment, load = time.monotonic(), datetime.now(UTC), os.getloadavg()[0]
    with output.open("w", encoding="utf-8") as file, (output.with_suffix(".err")).open("w", encoding="utf-8") as errors:
        words = [sys.executable, "-m", *command.split()]
        done = subprocess.run(words, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, stdout=file, stderr=errors)
    return Record(
        part,
        name,
        f"python -m {command}",
        commit,
        moment.isoformat(timespec="minutes"),
        round((time.monotonic() - begun) / 60, 1),
        round(load, 1),
        done.returncode,
        summarise(output.read_text(encoding="utf-8").splitlines()),
    )


def page_of(records: Iterable[Record]) -> str:
    """The last record of each run, in the order of the parts."""
    latest = {(record.part, record.run): record for record in records}
    lines = [
        "# Soaks",
        "",
        "What takes too long for the tests, the last time each was run: `make soak PART=NAME`, one part at a time and",
        "nothing else beside it. A run that ends with 1 found something. What the figures mean is on the pages that",
        "promise them: [publications](dissemination.md), [reliability](reliability.md), [security](security.md),",
        "[a crash that is not noticed](connectivity.md), [MQTT](mqtt.md), [the live page](live-page.md).",
        "",
    ]
    for part, runs in PARTS.items():
        rows = [record for name in runs if (record := latest.get((part, name))) is not None]
        lines += [f"## {part}", ""]
        if missing := [name for name in runs if (part, name) not in latest]:
            lines += [f"Not run yet: {', '.join(missing)}.", ""]
        if rows:
            lines += ["| command | commit | day | minutes | load before | ended with | result |"]
            lines += ["| --- | --- | --- | ---: | ---: | ---: | --- |"]
            lines += [
                f"| `{row.command}` | {row.commit} | {row.date[:10]} | {row.minutes} | {row.load} | {row.status} "
                f"| {row.result.replace('|', '/')} |"
                for row in rows
            ]
            lines += [""]
    return "\n".join(lines)


def write_page() -> None:
    PAGE.write_text(page_of(read_records()), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("part", choices=(*PARTS, "page-only"), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="only these runs of the part")
    parser.add_argument("--again", action="store_true", help="also those that have gone well at this commit")
    parser.add_argument("--list", action="store_true", help="print the commands and end")
    told = parser.parse_args(argv)
    if told.part == "page-only":
        write_page()
        return 0
    known = PARTS[told.part]
    if unknown := [name for name in told.runs if name not in known]:
        parser.error(f"{told.part} has no run {unknown[0]!r} (it has {', '.join(known)})")
    wanted = told.runs or list(known)
    if told.list:
        for name in wanted:
            print(f"{name:20s} python -m {known[name]}")
        return 0
    commit = code_now(told.part)
    now = [record for record in read_records() if record.part == told.part and record.commit == commit]
    done = {record.run for record in now if record.went_well}
    well = True
    for name in wanted:
        if name in done and not told.again:
            print(f"{name}: has gone well at {commit}", flush=True)
            continue
        print(f"{name}: python -m {known[name]}", flush=True)
        record = run_one(told.part, name, commit)
        well = well and record.went_well
        with RECORDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")
        write_page()
        print(f"{name}: ended with {record.status} after {record.minutes} min: {record.result}", flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
